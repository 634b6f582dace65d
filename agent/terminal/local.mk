# Sources and tests of the agent's terminals; compiled as agent/local.mk says.
agent_terminal_sources = \
	agent/terminal/pty.c \
	agent/terminal/pty.h \
	agent/terminal/replay.c \
	agent/terminal/replay.h \
	agent/terminal/terminal.c \
	agent/terminal/terminal.h \
	agent/terminal/terminal_client.c \
	agent/terminal/terminal_client.h \
	agent/terminal/terminal_describe.c \
	agent/terminal/terminal_end.c \
	agent/terminal/terminal_launch.c \
	agent/terminal/terminal_launch.h \
	agent/terminal/terminal_request.c \
	agent/terminal/terminal_request.h \
	agent/terminal/terminal_set.c \
	agent/terminal/terminal_set.h \
	agent/terminal/terminal_state.h \
	agent/terminal/terminals.c \
	agent/terminal/terminals.h \
	agent/terminal/ws_conn.c \
	agent/terminal/ws_conn.h \
	agent/terminal/ws_frame.c \
	agent/terminal/ws_frame.h \
	agent/terminal/ws_handshake.c \
	agent/terminal/ws_handshake.h
EXTRA_DIST += agent/terminal/README.md
