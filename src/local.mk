# The server: main.c and every layer, top-down.
sbin_PROGRAMS += src/orchardd
src_orchardd_SOURCES = src/main.c
src_orchardd_LDADD = \
	src/worker/libworker.a \
	src/gateway/libgateway.a \
	src/reaper/libreaper.a \
	src/spawner/libspawner.a \
	src/controller/libcontroller.a \
	src/domain/libdomain.a \
	src/cluster/libcluster.a \
	src/backend/libbackend.a \
	src/spawn/libspawn.a \
	src/master/libmaster.a \
	src/image/libimage.a \
	src/network/libnetwork.a \
	src/runtime/libruntime.a \
	src/kube/libkube.a \
	src/redis/libredis.a \
	src/http/libhttp.a \
	src/ipc/libipc.a \
	src/conf/libconf.a \
	src/base/libbase.a \
	$(EVENT_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(ARCHIVE_LIBS) $(ZLIB_LIBS) $(MD_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS) \
	$(YAML_LIBS) $(NFTABLES_LIBS) $(WEBSOCKETS_LIBS) $(HIREDIS_LIBS) $(EVENT_EXTRA_LIBS) -lm
