noinst_LIBRARIES += src/backend/libbackend.a
src_backend_libbackend_a_SOURCES = \
	src/backend/agent_ack.c \
	src/backend/agent_call.c \
	src/backend/agent_client.c \
	src/backend/agent_client.h \
	src/backend/agent_priv.h \
	src/backend/driver.h \
	src/backend/job_store.h \
	src/backend/record_log.h

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/backend/test_agent_client
TESTS += tests/unit/backend/test_agent_client
tests_unit_backend_test_agent_client_SOURCES = tests/unit/backend/test_agent_client.c
tests_unit_backend_test_agent_client_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_backend_test_agent_client_LDADD = src/backend/libbackend.a src/http/libhttp.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS)
endif
