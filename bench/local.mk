# Built and run by `make bench` only: nanoseconds per operation of what the processes share.
EXTRA_PROGRAMS += bench/bench_ipc
bench_bench_ipc_SOURCES = bench/bench_ipc.c
bench_bench_ipc_LDADD = src/backend/libbackend.a src/ipc/libipc.a src/base/libbase.a \
	$(JSON_LIBS) $(ZLIB_LIBS) $(MD_LIBS)
CLEANFILES += bench/bench_ipc

.PHONY: bench
bench: bench/bench_ipc
	bench/bench_ipc
