# Built by `make bench` only. bench_ipc is run by it: nanoseconds per operation of what the processes share; the
# others are for bench.py: an agent that runs nothing, started in foreign roots, and the load. bench_agent
# (commands through agents without a server) and bench_net are started by hand.
EXTRA_PROGRAMS += bench/bench_ipc bench/bench_net bench/bench_agent bench/null_agent bench/load
bench_bench_ipc_SOURCES = bench/bench_ipc.c
bench_bench_ipc_LDADD = src/backend/libbackend.a src/ipc/libipc.a src/base/libbase.a \
	$(JSON_LIBS) $(ZLIB_LIBS) $(MD_LIBS)
bench_bench_net_SOURCES = bench/bench_net.c
bench_bench_net_LDADD = src/network/libnetwork.a src/ipc/libipc.a src/conf/libconf.a src/base/libbase.a \
	$(JSON_LIBS) $(CONFUSE_LIBS) $(MD_LIBS) $(NFTABLES_LIBS)
bench_bench_agent_SOURCES = bench/bench_agent.c
bench_bench_agent_LDADD = src/base/libbase.a $(JSON_LIBS) $(MD_LIBS)
bench_null_agent_SOURCES = bench/null_agent.c
bench_null_agent_LDFLAGS = -static
bench_load_SOURCES = bench/load.c
CLEANFILES += bench/bench_ipc bench/bench_net bench/bench_agent bench/null_agent bench/load

.PHONY: bench
bench: bench/bench_ipc bench/bench_agent bench/null_agent bench/load
	bench/bench_ipc
