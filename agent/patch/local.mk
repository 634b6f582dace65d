agent_sources += \
	agent/patch/beyond.c \
	agent/patch/beyond.h \
	agent/patch/guard.c \
	agent/patch/guard.h \
	agent/patch/names.c \
	agent/patch/names.h \
	agent/patch/patch.c \
	agent/patch/patch.h \
	agent/patch/tool.c \
	agent/patch/tool.h
if HAVE_CMOCKA
patch_tests = \
	tests/unit/agent/test_patch_beyond \
	tests/unit/agent/test_patch_guard \
	tests/unit/agent/test_patch_names
check_PROGRAMS += $(patch_tests)
TESTS += $(patch_tests)
tests_unit_agent_test_patch_beyond_SOURCES = tests/unit/agent/test_patch_beyond.c
tests_unit_agent_test_patch_beyond_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_patch_beyond_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_patch_beyond_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_patch_guard_SOURCES = tests/unit/agent/test_patch_guard.c
tests_unit_agent_test_patch_guard_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_patch_guard_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_patch_guard_LDADD = $(agent_test_ldadd)
tests_unit_agent_test_patch_names_SOURCES = tests/unit/agent/test_patch_names.c
tests_unit_agent_test_patch_names_CPPFLAGS = $(agent_test_cppflags)
tests_unit_agent_test_patch_names_CFLAGS = $(agent_test_cflags)
tests_unit_agent_test_patch_names_LDADD = $(agent_test_ldadd)
endif
EXTRA_DIST += agent/patch/README.md
