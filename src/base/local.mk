noinst_LIBRARIES += src/base/libbase.a
src_base_libbase_a_SOURCES = \
	src/base/base64.c \
	src/base/cleanup.h \
	src/base/clock.c \
	src/base/clock.h \
	src/base/err.c \
	src/base/err.h \
	src/base/file.c \
	src/base/file.h \
	src/base/file_tree.c \
	src/base/id.c \
	src/base/id.h \
	src/base/json.c \
	src/base/json.h \
	src/base/json_reader.c \
	src/base/json_scan.c \
	src/base/json_scan.h \
	src/base/log.c \
	src/base/log.h \
	src/base/proc.c \
	src/base/proc.h \
	src/base/text.c \
	src/base/text.h

if HAVE_CMOCKA
base_tests = \
	tests/unit/base/test_json
check_PROGRAMS += $(base_tests)
TESTS += $(base_tests)
base_test_ldadd = src/base/libbase.a $(CMOCKA_LIBS) $(JSON_LIBS) $(MD_LIBS)

tests_unit_base_test_json_SOURCES = tests/unit/base/test_json.c
tests_unit_base_test_json_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_json_LDADD = $(base_test_ldadd)
endif
