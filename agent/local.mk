# The agent is one static program that runs in foreign roots. Its objects are
# compiled apart from the server's, because it never carries their
# instrumentation; libagent.a is the same code for the unit tests.
agent_sources = \
	agent/answer.c \
	agent/answer.h \
	agent/command.c \
	agent/command.h \
	agent/config.c \
	agent/config.h \
	agent/env.c \
	agent/env.h \
	agent/init.c \
	agent/init.h \
	agent/job.c \
	agent/job.h \
	agent/journal.c \
	agent/journal.h \
	agent/lane.c \
	agent/lane.h \
	agent/launch.c \
	agent/launch.h \
	agent/listen.c \
	agent/listen.h \
	agent/noise.c \
	agent/noise.h \
	agent/oom.c \
	agent/oom.h \
	agent/output.c \
	agent/output.h \
	agent/procscan.c \
	agent/procscan.h \
	agent/program.c \
	agent/program.h \
	agent/request.c \
	agent/request.h \
	agent/server.c \
	agent/server.h \
	agent/spawn.c \
	agent/spawn.h \
	agent/stream.c \
	agent/stream.h \
	agent/tree.c \
	agent/tree.h \
	agent/user.c \
	agent/user.h \
	agent/waiter.c \
	agent/waiter.h \
	agent/workdir.c \
	agent/workdir.h
agent_base_sources = \
	src/base/alloc.c \
	src/base/base64.c \
	src/base/clock.c \
	src/base/err.c \
	src/base/file.c \
	src/base/id.c \
	src/base/json.c \
	src/base/json_reader.c \
	src/base/json_scan.c \
	src/base/log.c \
	src/base/text.c
agent_http_sources = \
	src/http/http_answer.c \
	src/http/http_conn.c \
	src/http/http_exchange.c \
	src/http/http_head.c \
	src/http/http_parser.c \
	src/http/http_send.c \
	src/http/http_server.c \
	src/http/http_uri.c

pkglibexec_PROGRAMS += agent/orchard-agent
agent_orchard_agent_SOURCES = agent/main.c agent/nonames.c $(agent_sources) $(agent_base_sources) $(agent_http_sources)
agent_orchard_agent_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
agent_orchard_agent_CFLAGS = $(WARN_CFLAGS) $(HARDEN_CFLAGS) -ffunction-sections -fdata-sections \
	$(AGENT_EVENT_CFLAGS) $(AGENT_JSON_CFLAGS) $(AGENT_MD_CFLAGS)
agent_orchard_agent_LDFLAGS = -static -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
agent_orchard_agent_LDADD = $(AGENT_EVENT_LIBS) $(AGENT_JSON_LIBS) $(AGENT_MD_LIBS)

TESTS += tests/agent/test-agent.sh
EXTRA_DIST += tests/agent/test-agent.sh tests/agent/test_agent.py tests/agent/rig.py
EXTRA_DIST += agent/README.md docs/agent-protocol.md docs/decisions/0004-agent.md

if HAVE_CMOCKA
check_LIBRARIES += agent/libagent.a
agent_libagent_a_SOURCES = $(agent_sources)
agent_libagent_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
agent_tests = \
	tests/unit/agent/test_journal \
	tests/unit/agent/test_lane \
	tests/unit/agent/test_noise \
	tests/unit/agent/test_output \
	tests/unit/agent/test_program \
	tests/unit/agent/test_user
check_PROGRAMS += $(agent_tests)
TESTS += $(agent_tests)
agent_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)
agent_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
agent_test_ldadd = agent/libagent.a src/http/libhttp.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS)

tests_unit_agent_test_journal_SOURCES = tests/unit/agent/test_journal.c
tests_unit_agent_test_journal_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_journal_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_journal_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_lane_SOURCES = tests/unit/agent/test_lane.c
tests_unit_agent_test_lane_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_lane_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_lane_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_noise_SOURCES = tests/unit/agent/test_noise.c
tests_unit_agent_test_noise_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_noise_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_noise_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_output_SOURCES = tests/unit/agent/test_output.c
tests_unit_agent_test_output_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_output_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_output_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_program_SOURCES = tests/unit/agent/test_program.c
tests_unit_agent_test_program_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_program_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_program_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_user_SOURCES = tests/unit/agent/test_user.c
tests_unit_agent_test_user_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_user_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_user_LDADD = $(agent_test_ldadd)
endif
