# The agent is one static program that runs in foreign roots. Its objects are
# compiled apart from the server's, because it never carries their
# instrumentation; libagent.a is the same code for the unit tests.
agent_sources = \
	$(agent_files_sources) \
	$(agent_tar_sources) \
	agent/ambient.c \
	agent/ambient.h \
	agent/answer.c \
	agent/answer.h \
	agent/archive.c \
	agent/archive.h \
	agent/birth.c \
	agent/birth.h \
	agent/command.c \
	agent/command.h \
	agent/config.c \
	agent/config.h \
	agent/disk.c \
	agent/disk.h \
	agent/env.c \
	agent/env.h \
	agent/feed.c \
	agent/feed.h \
	agent/group.c \
	agent/group.h \
	agent/hold.c \
	agent/hold.h \
	agent/init.c \
	agent/init.h \
	agent/install.c \
	agent/install.h \
	agent/job.c \
	agent/job.h \
	agent/job_routes.c \
	agent/job_routes.h \
	agent/journal.c \
	agent/journal.h \
	agent/lane.c \
	agent/lane.h \
	agent/launch.c \
	agent/launch.h \
	agent/listen.c \
	agent/listen.h \
	agent/login.c \
	agent/login.h \
	agent/oom.c \
	agent/oom.h \
	agent/output.c \
	agent/output.h \
	agent/output_poll.c \
	agent/output_poll.h \
	agent/procscan.c \
	agent/procscan.h \
	agent/program.c \
	agent/program.h \
	agent/query.c \
	agent/query.h \
	agent/refusal.c \
	agent/refusal.h \
	agent/request.c \
	agent/request.h \
	agent/server.c \
	agent/server.h \
	agent/spawn.c \
	agent/spawn.h \
	agent/spool.c \
	agent/spool.h \
	agent/stdin_post.c \
	agent/stdin_post.h \
	agent/stream.c \
	agent/stream.h \
	agent/tree.c \
	agent/tree.h \
	agent/usage.c \
	agent/usage.h \
	agent/user.c \
	agent/user.h \
	agent/waiter.c \
	agent/waiter.h \
	agent/workdir.c \
	agent/workdir.h
include agent/terminal/local.mk
agent_base_sources = \
	src/base/alloc.c \
	src/base/base64.c \
	src/base/clock.c \
	src/base/err.c \
	src/base/file.c \
	src/base/file_tree.c \
	src/base/fork.c \
	src/base/id.c \
	src/base/json.c \
	src/base/json_names.c \
	src/base/json_reader.c \
	src/base/json_scan.c \
	src/base/json_write.c \
	src/base/log.c \
	src/base/text.c
agent_http_sources = \
	src/http/http_answer.c \
	src/http/http_conn.c \
	src/http/http_exchange.c \
	src/http/http_head.c \
	src/http/http_leave.c \
	src/http/http_parser.c \
	src/http/http_read.c \
	src/http/http_send.c \
	src/http/http_server.c \
	src/http/http_text.c \
	src/http/http_uri.c

pkglibexec_PROGRAMS += agent/orchard-agent
agent_orchard_agent_SOURCES = agent/main.c agent/nonames.c $(agent_sources) $(agent_terminal_sources) $(agent_base_sources) $(agent_http_sources)
agent_orchard_agent_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
agent_orchard_agent_CFLAGS = $(WARN_CFLAGS) $(HARDEN_CFLAGS) -ffunction-sections -fdata-sections \
	$(AGENT_EVENT_CFLAGS) $(AGENT_JSON_CFLAGS) $(AGENT_MD_CFLAGS) $(AGENT_ZLIB_CFLAGS)
agent_orchard_agent_LDFLAGS = -static -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
agent_orchard_agent_LDADD = $(AGENT_EVENT_LIBS) $(AGENT_JSON_LIBS) $(AGENT_MD_LIBS) $(AGENT_ZLIB_LIBS)

TESTS += tests/agent/test-agent.sh tests/agent/test-archive.sh tests/agent/test-container.sh tests/agent/test-files.sh tests/agent/test-hold.sh tests/agent/test-streams.sh
EXTRA_DIST += tests/agent/test-agent.sh tests/agent/test-archive.sh tests/agent/test-container.sh tests/agent/test-files.sh tests/agent/test-hold.sh tests/agent/test-streams.sh
EXTRA_DIST += tests/agent/test_agent.py tests/agent/test_archive.py tests/agent/test_container.py tests/agent/test_files.py tests/agent/test_hold.py tests/agent/test_streams.py tests/agent/rig.py
EXTRA_DIST += agent/README.md docs/agent-protocol.md docs/decisions/0004-agent.md

if HAVE_CMOCKA
check_LIBRARIES += agent/libagent.a
agent_libagent_a_SOURCES = $(agent_sources) $(agent_terminal_sources)
agent_libagent_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
agent_tests = \
	tests/unit/agent/test_feed \
	tests/unit/agent/test_helper_relay \
	tests/unit/agent/test_journal \
	tests/unit/agent/test_lane \
	tests/unit/agent/test_output \
	tests/unit/agent/test_output_range \
	tests/unit/agent/test_program \
	tests/unit/agent/test_range \
	tests/unit/agent/test_replay \
	tests/unit/agent/test_tree \
	tests/unit/agent/test_usage \
	tests/unit/agent/test_user \
	tests/unit/agent/test_ws_frame
check_PROGRAMS += $(agent_tests)
TESTS += $(agent_tests)
agent_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)
agent_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
agent_test_ldadd = agent/libagent.a src/http/libhttp.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS) $(ZLIB_LIBS)

tests_unit_agent_test_feed_SOURCES = tests/unit/agent/test_feed.c
tests_unit_agent_test_feed_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_feed_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_feed_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_helper_relay_SOURCES = tests/unit/agent/test_helper_relay.c
tests_unit_agent_test_helper_relay_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_helper_relay_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_helper_relay_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_journal_SOURCES = tests/unit/agent/test_journal.c
tests_unit_agent_test_journal_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_journal_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_journal_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_lane_SOURCES = tests/unit/agent/test_lane.c
tests_unit_agent_test_lane_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_lane_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_lane_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_output_SOURCES = tests/unit/agent/test_output.c
tests_unit_agent_test_output_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_output_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_output_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_output_range_SOURCES = tests/unit/agent/test_output_range.c
tests_unit_agent_test_output_range_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_output_range_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_output_range_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_program_SOURCES = tests/unit/agent/test_program.c
tests_unit_agent_test_program_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_program_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_program_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_range_SOURCES = tests/unit/agent/test_range.c
tests_unit_agent_test_range_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_range_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_range_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_tree_SOURCES = tests/unit/agent/test_tree.c
tests_unit_agent_test_tree_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_tree_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_tree_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_usage_SOURCES = tests/unit/agent/test_usage.c
tests_unit_agent_test_usage_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_usage_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_usage_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_user_SOURCES = tests/unit/agent/test_user.c
tests_unit_agent_test_user_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_user_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_user_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_replay_SOURCES = tests/unit/agent/test_replay.c
tests_unit_agent_test_replay_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_replay_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_replay_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_ws_frame_SOURCES = tests/unit/agent/test_ws_frame.c
tests_unit_agent_test_ws_frame_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_ws_frame_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_ws_frame_LDADD = $(agent_test_ldadd)
endif
