noinst_LIBRARIES += src/worker/libworker.a
src_worker_libworker_a_SOURCES =
