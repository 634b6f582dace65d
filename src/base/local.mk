noinst_LIBRARIES += src/base/libbase.a
src_base_libbase_a_SOURCES = \
	src/base/cleanup.h \
	src/base/clock.h \
	src/base/err.h \
	src/base/file.h \
	src/base/id.h \
	src/base/json.h \
	src/base/log.h \
	src/base/proc.h \
	src/base/text.h
