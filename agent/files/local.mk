# Calls that touch the files of a sandbox; part of the agent.
agent_files_sources = \
	agent/files/entry.c \
	agent/files/fault.c \
	agent/files/fault.h \
	agent/files/file_call.c \
	agent/files/file_call.h \
	agent/files/get.c \
	agent/files/helper.c \
	agent/files/helper.h \
	agent/files/helper_priv.h \
	agent/files/helper_relay.c \
	agent/files/helper_run.c \
	agent/files/helper_side.c \
	agent/files/helper_side.h \
	agent/files/list.c \
	agent/files/put.c \
	agent/files/range.c \
	agent/files/range.h \
	agent/files/routes.c \
	agent/files/routes.h \
	agent/files/paths.c
EXTRA_DIST += agent/files/README.md
