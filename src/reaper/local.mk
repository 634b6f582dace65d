noinst_LIBRARIES += src/reaper/libreaper.a
src_reaper_libreaper_a_SOURCES = \
	src/reaper/adoption.c \
	src/reaper/hearing.c \
	src/reaper/membership.c \
	src/reaper/orphan.c \
	src/reaper/prefetch.c \
	src/reaper/reaper.c \
	src/reaper/reaper.h \
	src/reaper/reaper_priv.h \
	src/reaper/reconcile.c \
	src/reaper/recovery.c \
	src/reaper/sweep.c
EXTRA_DIST += src/reaper/README.md

if HAVE_CMOCKA
reaper_tests = \
	tests/unit/reaper/test_duties \
	tests/unit/reaper/test_sweep
check_PROGRAMS += $(reaper_tests)
TESTS += $(reaper_tests)

tests_unit_reaper_test_duties_SOURCES = tests/unit/reaper/test_duties.c $(domain_fixture)
tests_unit_reaper_test_duties_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/domain
tests_unit_reaper_test_duties_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_reaper_test_duties_LDADD = src/reaper/libreaper.a src/cluster/libcluster.a src/master/libmaster.a $(domain_test_ldadd)

tests_unit_reaper_test_sweep_SOURCES = tests/unit/reaper/test_sweep.c $(domain_fixture)
tests_unit_reaper_test_sweep_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/domain
tests_unit_reaper_test_sweep_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_reaper_test_sweep_LDADD = src/reaper/libreaper.a src/cluster/libcluster.a src/master/libmaster.a $(domain_test_ldadd)
endif
