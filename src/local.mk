# The server: main.c and every layer, top-down.
sbin_PROGRAMS += src/orchardd
src_orchardd_SOURCES = src/main.c
src_orchardd_LDADD = \
	src/worker/libworker.a \
	src/reaper/libreaper.a \
	src/spawner/libspawner.a \
	src/domain/libdomain.a \
	src/backend/libbackend.a \
	src/master/libmaster.a \
	src/http/libhttp.a \
	src/ipc/libipc.a \
	src/conf/libconf.a \
	src/base/libbase.a \
	$(EVENT_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(ARCHIVE_LIBS) $(ZLIB_LIBS) $(MD_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS) -lm
