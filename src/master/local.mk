noinst_LIBRARIES += src/master/libmaster.a
src_master_libmaster_a_SOURCES = \
	src/master/check.c \
	src/master/check.h \
	src/master/child.c \
	src/master/child.h \
	src/master/dirs.c \
	src/master/dirs.h \
	src/master/listener.c \
	src/master/listener.h \
	src/master/lock_file.c \
	src/master/lock_file.h \
	src/master/master.c \
	src/master/master.h \
	src/master/privileges.c \
	src/master/privileges.h \
	src/master/reload.c \
	src/master/reload.h \
	src/master/role.c \
	src/master/role.h \
	src/master/sd_notify.c \
	src/master/sd_notify.h \
	src/master/server.c \
	src/master/server.h \
	src/master/service_user.c \
	src/master/service_user.h \
	src/master/supervise.c \
	src/master/supervise.h \
	src/master/syscall_filter.c \
	src/master/syscall_filter.h
