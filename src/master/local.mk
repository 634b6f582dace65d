noinst_LIBRARIES += src/master/libmaster.a
src_master_libmaster_a_SOURCES = \
	src/master/check.c \
	src/master/check.h \
	src/master/host_io.c \
	src/master/host_io.h \
	src/master/host_limits.c \
	src/master/host_limits.h \
	src/master/child.c \
	src/master/child.h \
	src/master/dirs.c \
	src/master/dirs.h \
	src/master/listener.c \
	src/master/listener.h \
	src/master/lock_file.c \
	src/master/lock_file.h \
	src/master/memory.c \
	src/master/memory.h \
	src/master/master.c \
	src/master/master.h \
	src/master/privileges.c \
	src/master/privileges.h \
	src/master/reload.c \
	src/master/reload.h \
	src/master/replica_id.c \
	src/master/replica_id.h \
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

if HAVE_CMOCKA
master_tests = \
	tests/unit/master/test_dirs \
	tests/unit/master/test_gateway \
	tests/unit/master/test_listener \
	tests/unit/master/test_lock_file \
	tests/unit/master/test_orchard_conf \
	tests/unit/master/test_privileges \
	tests/unit/master/test_reload \
	tests/unit/master/test_sd_notify \
	tests/unit/master/test_start_stop \
	tests/unit/master/test_supervise
check_PROGRAMS += $(master_tests)
TESTS += $(master_tests)
master_stage = tests/unit/master/stage.c tests/unit/master/stage.h
master_test_ldadd = src/master/libmaster.a src/runtime/libruntime.a src/redis/libredis.a src/ipc/libipc.a src/conf/libconf.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(CONFUSE_LIBS) $(JSON_LIBS) $(MD_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS)

tests_unit_master_test_dirs_SOURCES = tests/unit/master/test_dirs.c
tests_unit_master_test_dirs_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_dirs_LDADD = $(master_test_ldadd)
tests_unit_master_test_gateway_SOURCES = tests/unit/master/test_gateway.c $(master_stage)
tests_unit_master_test_gateway_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_gateway_LDADD = $(master_test_ldadd)
tests_unit_master_test_listener_SOURCES = tests/unit/master/test_listener.c
tests_unit_master_test_listener_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_listener_LDADD = $(master_test_ldadd)
tests_unit_master_test_lock_file_SOURCES = tests/unit/master/test_lock_file.c
tests_unit_master_test_lock_file_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_lock_file_LDADD = $(master_test_ldadd)
tests_unit_master_test_orchard_conf_SOURCES = tests/unit/master/test_orchard_conf.c
tests_unit_master_test_orchard_conf_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_orchard_conf_LDADD = $(master_test_ldadd)
tests_unit_master_test_privileges_SOURCES = tests/unit/master/test_privileges.c
tests_unit_master_test_privileges_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_privileges_LDADD = $(master_test_ldadd)
tests_unit_master_test_sd_notify_SOURCES = tests/unit/master/test_sd_notify.c
tests_unit_master_test_sd_notify_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_sd_notify_LDADD = $(master_test_ldadd)
tests_unit_master_test_reload_SOURCES = tests/unit/master/test_reload.c $(master_stage)
tests_unit_master_test_reload_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_reload_LDADD = $(master_test_ldadd)
tests_unit_master_test_start_stop_SOURCES = tests/unit/master/test_start_stop.c $(master_stage)
tests_unit_master_test_start_stop_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_start_stop_LDADD = $(master_test_ldadd)
tests_unit_master_test_supervise_SOURCES = tests/unit/master/test_supervise.c $(master_stage)
tests_unit_master_test_supervise_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_master_test_supervise_LDADD = $(master_test_ldadd)
endif
