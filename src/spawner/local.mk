noinst_LIBRARIES += src/spawner/libspawner.a
src_spawner_libspawner_a_SOURCES = \
	src/spawner/adopt.c \
	src/spawner/blanks.c \
	src/spawner/blanks.h \
	src/spawner/box.c \
	src/spawner/box.h \
	src/spawner/box_state.c \
	src/spawner/box_state.h \
	src/spawner/dispatch.c \
	src/spawner/dispatch.h \
	src/spawner/dispatch_tell.c \
	src/spawner/early.c \
	src/spawner/early.h \
	src/spawner/living.c \
	src/spawner/net_keeper.c \
	src/spawner/net_keeper.h \
	src/spawner/number_pool.c \
	src/spawner/number_pool.h \
	src/spawner/request.c \
	src/spawner/site.c \
	src/spawner/site.h \
	src/spawner/spawner.c \
	src/spawner/spawner.h \
	src/spawner/cgroup/cgroup.c \
	src/spawner/cgroup/cgroup.h \
	src/spawner/cgroup/cgroup_dir.c \
	src/spawner/cgroup/cgroup_dir.h \
	src/spawner/cgroup/cgroup_earlier.c \
	src/spawner/cgroup/cgroup_earlier.h \
	src/spawner/cgroup/cgroup_find.c \
	src/spawner/cgroup/cgroup_find.h \
	src/spawner/cgroup/cgroup_host.c \
	src/spawner/cgroup/cgroup_io.c \
	src/spawner/cgroup/cgroup_io.h \
	src/spawner/cgroup/cgroup_stat.c \
	src/spawner/disk/disk.c \
	src/spawner/disk/disk.h \
	src/spawner/disk/disk_measure.c \
	src/spawner/disk/disk_usage.c \
	src/spawner/disk/disk_usage.h \
	src/spawner/disk/disk_watch.c \
	src/spawner/disk/disk_watch.h \
	src/spawner/images/image_cache.c \
	src/spawner/images/image_cache.h \
	src/spawner/images/image_run.c \
	src/spawner/images/image_run.h \
	src/spawner/images/image_sweeper.c \
	src/spawner/images/image_sweeper.h \
	src/spawner/make/agent_config.c \
	src/spawner/make/agent_config.h \
	src/spawner/make/blank.c \
	src/spawner/make/blank.h \
	src/spawner/make/blank_root.c \
	src/spawner/make/blank_root.h \
	src/spawner/make/box_dir.c \
	src/spawner/make/box_dir.h \
	src/spawner/make/box_socket.c \
	src/spawner/make/box_socket.h \
	src/spawner/make/create_times.c \
	src/spawner/make/create_times.h \
	src/spawner/make/enter.c \
	src/spawner/make/enter.h \
	src/spawner/make/enter_clone.c \
	src/spawner/make/enter_clone.h \
	src/spawner/make/enter_msg.c \
	src/spawner/make/enter_msg.h \
	src/spawner/make/filter.c \
	src/spawner/make/filter.h \
	src/spawner/make/id_map.c \
	src/spawner/make/id_map.h \
	src/spawner/make/inside.h \
	src/spawner/make/inside_root.c \
	src/spawner/make/inside_self.c \
	src/spawner/make/make.c \
	src/spawner/make/make.h \
	src/spawner/make/maker.h \
	src/spawner/make/maker_builtin.c \
	src/spawner/make/maker_oci.c \
	src/spawner/make/pieces.c \
	src/spawner/make/pieces.h \
	src/spawner/make/rootfs.c \
	src/spawner/make/rootfs.h \
	src/spawner/make/runtime_home.c \
	src/spawner/make/runtime_home.h \
	src/spawner/make/unmake.c \
	src/spawner/pool/child.c \
	src/spawner/pool/child.h \
	src/spawner/pool/helper.c \
	src/spawner/pool/helper.h \
	src/spawner/pool/pool.c \
	src/spawner/pool/pool.h \
	src/spawner/pool/pool_held.c \
	src/spawner/pool/pool_impl.h

if HAVE_CMOCKA
spawner_tests = \
	tests/unit/spawner/test_cgroup_find \
	tests/unit/spawner/test_blanks \
	tests/unit/spawner/test_blank_roots \
	tests/unit/spawner/test_box_state \
	tests/unit/spawner/test_disk \
	tests/unit/spawner/test_early \
	tests/unit/spawner/test_filter \
	tests/unit/spawner/test_life \
	tests/unit/spawner/test_number_pool \
	tests/unit/spawner/test_remains \
	tests/unit/spawner/test_restart \
	tests/unit/spawner/test_walls \
	tests/unit/spawner/test_sandbox
check_PROGRAMS += $(spawner_tests)
TESTS += $(spawner_tests)
spawner_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/spawner
spawner_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
spawner_test_ldadd = src/spawner/libspawner.a src/spawn/libspawn.a src/image/libimage.a src/network/libnetwork.a src/master/libmaster.a src/runtime/libruntime.a src/ipc/libipc.a src/conf/libconf.a \
	src/base/libbase.a $(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(ARCHIVE_LIBS) $(MD_LIBS) \
	$(CAP_LIBS) $(SECCOMP_LIBS) $(NFTABLES_LIBS)
spawner_test_bed = tests/unit/spawner/bed.c tests/unit/spawner/bed.h

tests_unit_spawner_test_sandbox_SOURCES = tests/unit/spawner/test_sandbox.c $(spawner_test_bed)
tests_unit_spawner_test_sandbox_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_sandbox_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_sandbox_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_cgroup_find_SOURCES = tests/unit/spawner/test_cgroup_find.c
tests_unit_spawner_test_cgroup_find_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_cgroup_find_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_cgroup_find_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_blank_roots_SOURCES = tests/unit/spawner/test_blank_roots.c tests/unit/spawner/kids.c \
	tests/unit/spawner/kids.h $(spawner_test_bed)
tests_unit_spawner_test_blank_roots_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_blank_roots_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_blank_roots_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_blanks_SOURCES = tests/unit/spawner/test_blanks.c tests/unit/spawner/kids.c \
	tests/unit/spawner/kids.h $(spawner_test_bed)
tests_unit_spawner_test_blanks_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_blanks_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_blanks_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_box_state_SOURCES = tests/unit/spawner/test_box_state.c
tests_unit_spawner_test_box_state_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_box_state_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_box_state_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_disk_SOURCES = tests/unit/spawner/test_disk.c
tests_unit_spawner_test_disk_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_disk_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_disk_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_early_SOURCES = tests/unit/spawner/test_early.c $(spawner_test_bed)
tests_unit_spawner_test_early_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_early_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_early_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_filter_SOURCES = tests/unit/spawner/test_filter.c
tests_unit_spawner_test_filter_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_filter_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_filter_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_life_SOURCES = tests/unit/spawner/test_life.c $(spawner_test_bed)
tests_unit_spawner_test_life_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_life_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_life_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_number_pool_SOURCES = tests/unit/spawner/test_number_pool.c
tests_unit_spawner_test_number_pool_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_number_pool_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_number_pool_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_remains_SOURCES = tests/unit/spawner/test_remains.c $(spawner_test_bed)
tests_unit_spawner_test_remains_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_remains_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_remains_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_restart_SOURCES = tests/unit/spawner/test_restart.c $(spawner_test_bed)
tests_unit_spawner_test_restart_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_restart_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_restart_LDADD = src/backend/libbackend.a $(spawner_test_ldadd)

tests_unit_spawner_test_walls_SOURCES = tests/unit/spawner/test_walls.c $(spawner_test_bed)
tests_unit_spawner_test_walls_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_walls_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_walls_LDADD = $(spawner_test_ldadd)
endif
