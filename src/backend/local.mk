noinst_LIBRARIES += src/backend/libbackend.a
src_backend_libbackend_a_SOURCES = \
	src/backend/agent_ack.c \
	src/backend/agent_call.c \
	src/backend/agent_client.c \
	src/backend/agent_client.h \
	src/backend/agent_priv.h \
	src/backend/agent_relay.c \
	src/backend/agent_relay.h \
	src/backend/agent_stream.c \
	src/backend/driver.h \
	src/backend/driver_asker.c \
	src/backend/driver_asker.h \
	src/backend/driver_asker_answer.c \
	src/backend/driver_env.c \
	src/backend/driver_env.h \
	src/backend/driver_image.c \
	src/backend/image_reference.c \
	src/backend/image_reference.h \
	src/backend/job_store.c \
	src/backend/job_store.h \
	src/backend/key_store.c \
	src/backend/key_store.h \
	src/backend/record_batch.c \
	src/backend/record_batch.h \
	src/backend/record_log.c \
	src/backend/record_log.h \
	src/backend/record_log_impl.h \
	src/backend/record_segment.c \
	src/backend/record_segment.h \
	src/backend/record_sweep.c

if HAVE_CMOCKA
check_PROGRAMS += tests/unit/backend/test_agent_client
TESTS += tests/unit/backend/test_agent_client
tests_unit_backend_test_agent_client_SOURCES = tests/unit/backend/test_agent_client.c
tests_unit_backend_test_agent_client_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_backend_test_agent_client_LDADD = src/backend/libbackend.a src/http/libhttp.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS)

check_PROGRAMS += tests/unit/backend/test_driver_image
TESTS += tests/unit/backend/test_driver_image
tests_unit_backend_test_driver_image_SOURCES = tests/unit/backend/test_driver_image.c
tests_unit_backend_test_driver_image_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_backend_test_driver_image_LDADD = src/backend/libbackend.a src/base/libbase.a $(CMOCKA_LIBS) \
	$(JSON_LIBS) $(MD_LIBS)

check_PROGRAMS += tests/unit/backend/test_job_store
TESTS += tests/unit/backend/test_job_store
tests_unit_backend_test_job_store_SOURCES = tests/unit/backend/test_job_store.c
tests_unit_backend_test_job_store_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/ipc
tests_unit_backend_test_job_store_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_backend_test_job_store_LDADD = src/backend/libbackend.a tests/unit/ipc/libcrash.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(ZLIB_LIBS) $(MD_LIBS)

check_PROGRAMS += tests/unit/backend/test_record_batch
TESTS += tests/unit/backend/test_record_batch
tests_unit_backend_test_record_batch_SOURCES = tests/unit/backend/test_record_batch.c
tests_unit_backend_test_record_batch_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/ipc
tests_unit_backend_test_record_batch_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_backend_test_record_batch_LDADD = src/backend/libbackend.a tests/unit/ipc/libcrash.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(ZLIB_LIBS) $(MD_LIBS)

check_PROGRAMS += tests/unit/backend/test_record_log
TESTS += tests/unit/backend/test_record_log
tests_unit_backend_test_record_log_SOURCES = tests/unit/backend/test_record_log.c
tests_unit_backend_test_record_log_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/ipc
tests_unit_backend_test_record_log_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_backend_test_record_log_LDADD = src/backend/libbackend.a tests/unit/ipc/libcrash.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(ZLIB_LIBS) $(MD_LIBS)
endif
