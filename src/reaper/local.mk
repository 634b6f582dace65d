noinst_LIBRARIES += src/reaper/libreaper.a
src_reaper_libreaper_a_SOURCES = \
	src/reaper/reaper.c \
	src/reaper/reaper.h \
	src/reaper/reaper_priv.h \
	src/reaper/reconcile.c \
	src/reaper/recovery.c \
	src/reaper/rules.c \
	src/reaper/rules.h \
	src/reaper/sweep.c
EXTRA_DIST += src/reaper/README.md
