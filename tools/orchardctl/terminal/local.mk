# A program of a sandbox at the terminal here.
tools_orchardctl_libctl_a_SOURCES += \
	tools/orchardctl/terminal/cmd_shell.c \
	tools/orchardctl/terminal/frame.c \
	tools/orchardctl/terminal/frame.h \
	tools/orchardctl/terminal/keys.c \
	tools/orchardctl/terminal/keys.h \
	tools/orchardctl/terminal/link.c \
	tools/orchardctl/terminal/link.h \
	tools/orchardctl/terminal/outbox.c \
	tools/orchardctl/terminal/outbox.h \
	tools/orchardctl/terminal/screen.c \
	tools/orchardctl/terminal/screen.h \
	tools/orchardctl/terminal/session.c \
	tools/orchardctl/terminal/session.h \
	tools/orchardctl/terminal/session_link.c \
	tools/orchardctl/terminal/session_tty.c \
	tools/orchardctl/terminal/target.c \
	tools/orchardctl/terminal/target.h \
	tools/orchardctl/terminal/terminal.h \
	tools/orchardctl/terminal/terminal_spec.c \
	tools/orchardctl/terminal/tty.c \
	tools/orchardctl/terminal/tty.h

if HAVE_CMOCKA
terminal_ctl_tests = \
	tests/unit/ctl/test_keys \
	tests/unit/ctl/test_frame \
	tests/unit/ctl/test_screen
check_PROGRAMS += $(terminal_ctl_tests)
TESTS += $(terminal_ctl_tests)
tests_unit_ctl_test_keys_SOURCES = tests/unit/ctl/test_keys.c
tests_unit_ctl_test_keys_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_keys_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_keys_LDADD = $(ctl_test_ldadd)
tests_unit_ctl_test_frame_SOURCES = tests/unit/ctl/test_frame.c
tests_unit_ctl_test_frame_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_frame_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_frame_LDADD = $(ctl_test_ldadd)
tests_unit_ctl_test_screen_SOURCES = tests/unit/ctl/test_screen.c
tests_unit_ctl_test_screen_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_screen_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_screen_LDADD = $(ctl_test_ldadd)
endif
