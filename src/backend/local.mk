noinst_LIBRARIES += src/backend/libbackend.a
src_backend_libbackend_a_SOURCES = \
	src/backend/agent_client.h \
	src/backend/driver.h \
	src/backend/job_store.h \
	src/backend/record_log.h
