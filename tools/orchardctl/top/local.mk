# What sandboxes use, live.
tools_orchardctl_libctl_a_SOURCES += \
	tools/orchardctl/top/cmd_top.c \
	tools/orchardctl/top/usage.c \
	tools/orchardctl/top/usage.h

if HAVE_CMOCKA
top_ctl_tests = \
	tests/unit/ctl/test_usage
check_PROGRAMS += $(top_ctl_tests)
TESTS += $(top_ctl_tests)
tests_unit_ctl_test_usage_SOURCES = tests/unit/ctl/test_usage.c
tests_unit_ctl_test_usage_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_usage_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_usage_LDADD = $(ctl_test_ldadd)
endif
