noinst_LIBRARIES += src/runtime/libruntime.a
src_runtime_libruntime_a_SOURCES = \
	src/runtime/runtime.h \
	src/runtime/runtime_bundle.c \
	src/runtime/runtime_bundle.h \
	src/runtime/runtime_call.c \
	src/runtime/runtime_call.h \
	src/runtime/runtime_find.c \
	src/runtime/runtime_seccomp.c

EXTRA_DIST += src/runtime/README.md

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/runtime/test_bundle tests/unit/runtime/test_call
TESTS += tests/unit/runtime/test_bundle tests/unit/runtime/test_call

tests_unit_runtime_test_bundle_SOURCES = tests/unit/runtime/test_bundle.c
tests_unit_runtime_test_bundle_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_runtime_test_bundle_LDADD = src/runtime/libruntime.a src/conf/libconf.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(CONFUSE_LIBS) $(JSON_LIBS) $(MD_LIBS)

tests_unit_runtime_test_call_SOURCES = tests/unit/runtime/test_call.c
tests_unit_runtime_test_call_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_runtime_test_call_LDADD = src/runtime/libruntime.a src/conf/libconf.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(CONFUSE_LIBS) $(JSON_LIBS) $(MD_LIBS)
endif
