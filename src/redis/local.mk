noinst_LIBRARIES += src/redis/libredis.a
src_redis_libredis_a_SOURCES = \
	src/redis/answer.c \
	src/redis/answer.h \
	src/redis/answer_impl.h \
	src/redis/args.c \
	src/redis/args.h \
	src/redis/client.c \
	src/redis/client.h \
	src/redis/client_impl.h \
	src/redis/connect.c \
	src/redis/greet.c \
	src/redis/lookup.c \
	src/redis/lookup.h \
	src/redis/script.c \
	src/redis/script.h \
	src/redis/url.c \
	src/redis/url.h
src_redis_libredis_a_CFLAGS = $(AM_CFLAGS) $(HIREDIS_CFLAGS)

if HAVE_CMOCKA
redis_tests = \
	tests/unit/redis/test_client \
	tests/unit/redis/test_server \
	tests/unit/redis/test_url
check_PROGRAMS += $(redis_tests)
TESTS += $(redis_tests)
redis_test_ldadd = src/redis/libredis.a src/base/libbase.a $(CMOCKA_LIBS) $(HIREDIS_LIBS) $(EVENT_EXTRA_LIBS) \
	$(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS)
redis_test_rig = tests/unit/redis/redis_rig.c tests/unit/redis/redis_rig.h

tests_unit_redis_test_client_SOURCES = tests/unit/redis/test_client.c $(redis_test_rig)
tests_unit_redis_test_client_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_redis_test_client_LDADD = $(redis_test_ldadd)

tests_unit_redis_test_server_SOURCES = tests/unit/redis/test_server.c $(redis_test_rig)
tests_unit_redis_test_server_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_redis_test_server_LDADD = $(redis_test_ldadd)

tests_unit_redis_test_url_SOURCES = tests/unit/redis/test_url.c
tests_unit_redis_test_url_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_redis_test_url_LDADD = $(redis_test_ldadd)
endif
