# Files and directories, in and out.
tools_orchardctl_libctl_a_SOURCES += \
	tools/orchardctl/copy/cmd_cp.c \
	tools/orchardctl/copy/copy.h \
	tools/orchardctl/copy/download.c \
	tools/orchardctl/copy/download.h \
	tools/orchardctl/copy/download_tree.c \
	tools/orchardctl/copy/links.c \
	tools/orchardctl/copy/links.h \
	tools/orchardctl/copy/merge.c \
	tools/orchardctl/copy/merge.h \
	tools/orchardctl/copy/pack.c \
	tools/orchardctl/copy/pack.h \
	tools/orchardctl/copy/place.c \
	tools/orchardctl/copy/place.h \
	tools/orchardctl/copy/progress.c \
	tools/orchardctl/copy/progress.h \
	tools/orchardctl/copy/remote.c \
	tools/orchardctl/copy/sink.c \
	tools/orchardctl/copy/sink.h \
	tools/orchardctl/copy/stream.c \
	tools/orchardctl/copy/sum.c \
	tools/orchardctl/copy/unpack.c \
	tools/orchardctl/copy/unpack.h \
	tools/orchardctl/copy/upload.c

if HAVE_CMOCKA
copy_ctl_tests = \
	tests/unit/ctl/test_place \
	tests/unit/ctl/test_progress \
	tests/unit/ctl/test_pack
check_PROGRAMS += $(copy_ctl_tests)
TESTS += $(copy_ctl_tests)
tests_unit_ctl_test_place_SOURCES = tests/unit/ctl/test_place.c
tests_unit_ctl_test_place_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_place_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_place_LDADD = $(ctl_test_ldadd)
tests_unit_ctl_test_progress_SOURCES = tests/unit/ctl/test_progress.c
tests_unit_ctl_test_progress_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_progress_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_progress_LDADD = $(ctl_test_ldadd)
tests_unit_ctl_test_pack_SOURCES = tests/unit/ctl/test_pack.c
tests_unit_ctl_test_pack_CPPFLAGS = $(ctl_cppflags)
tests_unit_ctl_test_pack_CFLAGS = $(ctl_test_cflags)
tests_unit_ctl_test_pack_LDADD = $(ctl_test_ldadd)
endif
