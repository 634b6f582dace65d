noinst_LIBRARIES += src/reaper/libreaper.a
src_reaper_libreaper_a_SOURCES = \
	src/reaper/reaper.c \
	src/reaper/reaper.h \
	src/reaper/reaper_priv.h \
	src/reaper/reconcile.c \
	src/reaper/recovery.c \
	src/reaper/rules.c \
	src/reaper/rules.h \
	src/reaper/sweep.c
EXTRA_DIST += src/reaper/README.md

if HAVE_CMOCKA
reaper_tests = \
	tests/unit/reaper/test_duties \
	tests/unit/reaper/test_rules
check_PROGRAMS += $(reaper_tests)
TESTS += $(reaper_tests)

tests_unit_reaper_test_duties_SOURCES = tests/unit/reaper/test_duties.c $(domain_fixture)
tests_unit_reaper_test_duties_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/domain
tests_unit_reaper_test_duties_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_reaper_test_duties_LDADD = src/reaper/libreaper.a $(domain_test_ldadd)

tests_unit_reaper_test_rules_SOURCES = tests/unit/reaper/test_rules.c
tests_unit_reaper_test_rules_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_reaper_test_rules_LDADD = src/reaper/libreaper.a $(CMOCKA_LIBS)
endif
