noinst_LIBRARIES += src/reaper/libreaper.a
src_reaper_libreaper_a_SOURCES =
