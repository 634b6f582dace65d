noinst_LIBRARIES += src/base/libbase.a
src_base_libbase_a_SOURCES = \
	src/base/alloc.c \
	src/base/alloc.h \
	src/base/base64.c \
	src/base/cleanup.h \
	src/base/clock.c \
	src/base/clock.h \
	src/base/err.c \
	src/base/err.h \
	src/base/file.c \
	src/base/file.h \
	src/base/file_tree.c \
	src/base/fork.c \
	src/base/fork.h \
	src/base/id.c \
	src/base/id.h \
	src/base/ip_dest.c \
	src/base/ip_dest.h \
	src/base/ip_range.c \
	src/base/ip_range.h \
	src/base/json.c \
	src/base/json.h \
	src/base/json_names.c \
	src/base/json_reader.c \
	src/base/json_scan.c \
	src/base/json_scan.h \
	src/base/json_write.c \
	src/base/json_write.h \
	src/base/log.c \
	src/base/log.h \
	src/base/proc.c \
	src/base/proc.h \
	src/base/quantity.c \
	src/base/quantity.h \
	src/base/text.c \
	src/base/text.h

if HAVE_CMOCKA
base_tests = \
	tests/unit/base/test_clock \
	tests/unit/base/test_err \
	tests/unit/base/test_file \
	tests/unit/base/test_file_tree \
	tests/unit/base/test_fork \
	tests/unit/base/test_id \
	tests/unit/base/test_ip_dest \
	tests/unit/base/test_ip_range \
	tests/unit/base/test_json \
	tests/unit/base/test_json_reader \
	tests/unit/base/test_log \
	tests/unit/base/test_proc \
	tests/unit/base/test_quantity \
	tests/unit/base/test_text
check_PROGRAMS += $(base_tests)
TESTS += $(base_tests)
base_test_ldadd = src/base/libbase.a $(CMOCKA_LIBS) $(JSON_LIBS) $(MD_LIBS)

tests_unit_base_test_clock_SOURCES = tests/unit/base/test_clock.c
tests_unit_base_test_clock_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_clock_LDADD = $(base_test_ldadd)

tests_unit_base_test_err_SOURCES = tests/unit/base/test_err.c
tests_unit_base_test_err_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_err_LDADD = $(base_test_ldadd)

tests_unit_base_test_file_SOURCES = tests/unit/base/test_file.c
tests_unit_base_test_file_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_file_LDADD = $(base_test_ldadd)

tests_unit_base_test_file_tree_SOURCES = tests/unit/base/test_file_tree.c
tests_unit_base_test_file_tree_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_file_tree_LDADD = $(base_test_ldadd)

tests_unit_base_test_fork_SOURCES = tests/unit/base/test_fork.c
tests_unit_base_test_fork_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_fork_LDADD = $(base_test_ldadd)

tests_unit_base_test_id_SOURCES = tests/unit/base/test_id.c
tests_unit_base_test_id_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_id_LDADD = $(base_test_ldadd)

tests_unit_base_test_ip_dest_SOURCES = tests/unit/base/test_ip_dest.c
tests_unit_base_test_ip_dest_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_ip_dest_LDADD = $(base_test_ldadd)

tests_unit_base_test_ip_range_SOURCES = tests/unit/base/test_ip_range.c
tests_unit_base_test_ip_range_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_ip_range_LDADD = $(base_test_ldadd)

tests_unit_base_test_json_SOURCES = tests/unit/base/test_json.c
tests_unit_base_test_json_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_json_LDADD = $(base_test_ldadd)

tests_unit_base_test_json_reader_SOURCES = tests/unit/base/test_json_reader.c
tests_unit_base_test_json_reader_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_json_reader_LDADD = $(base_test_ldadd)

tests_unit_base_test_log_SOURCES = tests/unit/base/test_log.c
tests_unit_base_test_log_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_log_LDADD = $(base_test_ldadd)

tests_unit_base_test_quantity_SOURCES = tests/unit/base/test_quantity.c
tests_unit_base_test_quantity_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_quantity_LDADD = $(base_test_ldadd)

tests_unit_base_test_proc_SOURCES = tests/unit/base/test_proc.c
tests_unit_base_test_proc_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_proc_LDADD = $(base_test_ldadd)

tests_unit_base_test_text_SOURCES = tests/unit/base/test_text.c
tests_unit_base_test_text_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_base_test_text_LDADD = $(base_test_ldadd)
endif
