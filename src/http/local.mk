noinst_LIBRARIES += src/http/libhttp.a
src_http_libhttp_a_SOURCES = \
	src/http/http_answer.c \
	src/http/http_client.c \
	src/http/http_client.h \
	src/http/http_conn.c \
	src/http/http_conn.h \
	src/http/http_connect.c \
	src/http/http_exchange.c \
	src/http/http_head.c \
	src/http/http_leave.c \
	src/http/http_link.c \
	src/http/http_parse.h \
	src/http/http_parser.c \
	src/http/http_parser.h \
	src/http/http_pool.c \
	src/http/http_pool.h \
	src/http/http_read.c \
	src/http/http_read.h \
	src/http/http_send.c \
	src/http/http_send.h \
	src/http/http_server.c \
	src/http/http_server.h \
	src/http/http_stream.c \
	src/http/http_text.c \
	src/http/http_text.h \
	src/http/http_uri.c

if HAVE_CMOCKA
http_tests = \
	tests/unit/http/test_http_client \
	tests/unit/http/test_http_leave \
	tests/unit/http/test_http_life \
	tests/unit/http/test_http_parser \
	tests/unit/http/test_http_server \
	tests/unit/http/test_http_stream \
	tests/unit/http/test_http_take
check_PROGRAMS += $(http_tests)
TESTS += $(http_tests)
http_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
http_test_ldadd = src/http/libhttp.a src/base/libbase.a $(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS)
http_test_rig = tests/unit/http/http_rig.c tests/unit/http/http_rig.h

tests_unit_http_test_http_client_SOURCES = tests/unit/http/test_http_client.c
tests_unit_http_test_http_client_CFLAGS = $(http_test_cflags)
tests_unit_http_test_http_client_LDADD = $(http_test_ldadd)
tests_unit_http_test_http_leave_SOURCES = tests/unit/http/test_http_leave.c $(http_test_rig)
tests_unit_http_test_http_leave_CFLAGS = $(http_test_cflags)
tests_unit_http_test_http_leave_LDADD = $(http_test_ldadd)
tests_unit_http_test_http_life_SOURCES = tests/unit/http/test_http_life.c $(http_test_rig)
tests_unit_http_test_http_life_CFLAGS = $(http_test_cflags)
tests_unit_http_test_http_life_LDADD = $(http_test_ldadd)
tests_unit_http_test_http_parser_SOURCES = tests/unit/http/test_http_parser.c
tests_unit_http_test_http_parser_CFLAGS = $(http_test_cflags)
tests_unit_http_test_http_parser_LDADD = $(http_test_ldadd)
tests_unit_http_test_http_server_SOURCES = tests/unit/http/test_http_server.c $(http_test_rig)
tests_unit_http_test_http_server_CFLAGS = $(http_test_cflags)
tests_unit_http_test_http_server_LDADD = $(http_test_ldadd)
tests_unit_http_test_http_stream_SOURCES = tests/unit/http/test_http_stream.c $(http_test_rig)
tests_unit_http_test_http_stream_CFLAGS = $(http_test_cflags)
tests_unit_http_test_http_stream_LDADD = $(http_test_ldadd)
tests_unit_http_test_http_take_SOURCES = tests/unit/http/test_http_take.c $(http_test_rig)
tests_unit_http_test_http_take_CFLAGS = $(http_test_cflags)
tests_unit_http_test_http_take_LDADD = $(http_test_ldadd)
endif
