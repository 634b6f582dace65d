noinst_LIBRARIES += src/base/libbase.a
src_base_libbase_a_SOURCES = \
	src/base/base64.c \
	src/base/cleanup.h \
	src/base/clock.c \
	src/base/clock.h \
	src/base/err.c \
	src/base/err.h \
	src/base/file.c \
	src/base/file.h \
	src/base/file_tree.c \
	src/base/id.c \
	src/base/id.h \
	src/base/json.h \
	src/base/log.c \
	src/base/log.h \
	src/base/proc.c \
	src/base/proc.h \
	src/base/text.c \
	src/base/text.h
