noinst_LIBRARIES += src/spawner/libspawner.a
src_spawner_libspawner_a_SOURCES = \
	src/spawner/adopt.c \
	src/spawner/agent_config.c \
	src/spawner/agent_config.h \
	src/spawner/box.c \
	src/spawner/box.h \
	src/spawner/box_state.c \
	src/spawner/box_state.h \
	src/spawner/cgroup.c \
	src/spawner/cgroup.h \
	src/spawner/cgroup_dir.c \
	src/spawner/cgroup_dir.h \
	src/spawner/cgroup_host.c \
	src/spawner/cgroup_find.c \
	src/spawner/cgroup_find.h \
	src/spawner/child.c \
	src/spawner/child.h \
	src/spawner/dispatch.c \
	src/spawner/dispatch.h \
	src/spawner/enter.c \
	src/spawner/enter.h \
	src/spawner/filter.c \
	src/spawner/filter.h \
	src/spawner/image.c \
	src/spawner/image.h \
	src/spawner/image_cache.c \
	src/spawner/image_cache.h \
	src/spawner/imager.c \
	src/spawner/imager.h \
	src/spawner/inside.h \
	src/spawner/inside_root.c \
	src/spawner/inside_self.c \
	src/spawner/layer_file.c \
	src/spawner/layer_file.h \
	src/spawner/layer_tree.c \
	src/spawner/layer_tree.h \
	src/spawner/make.c \
	src/spawner/make.h \
	src/spawner/oci_blob.c \
	src/spawner/oci_blob.h \
	src/spawner/oci_layout.c \
	src/spawner/oci_layout.h \
	src/spawner/oci_manifest.c \
	src/spawner/oci_manifest.h \
	src/spawner/peer.c \
	src/spawner/peer.h \
	src/spawner/pieces.c \
	src/spawner/pieces.h \
	src/spawner/pool.c \
	src/spawner/pool.h \
	src/spawner/request.c \
	src/spawner/rootfs.c \
	src/spawner/rootfs.h \
	src/spawner/site.c \
	src/spawner/site.h \
	src/spawner/spawner.c \
	src/spawner/spawner.h \
	src/spawner/unmake.c \
	src/spawner/unpack.c \
	src/spawner/unpack.h \
	src/spawner/unpack_cage.c \
	src/spawner/unpack_cage.h \
	src/spawner/unpack_tar.c

if HAVE_CMOCKA
spawner_tests = \
	tests/unit/spawner/test_cage \
	tests/unit/spawner/test_imager \
	tests/unit/spawner/test_layer \
	tests/unit/spawner/test_cgroup_find \
	tests/unit/spawner/test_filter \
	tests/unit/spawner/test_life \
	tests/unit/spawner/test_restart \
	tests/unit/spawner/test_walls \
	tests/unit/spawner/test_sandbox
check_PROGRAMS += $(spawner_tests)
TESTS += $(spawner_tests)
spawner_test_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/spawner
spawner_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
spawner_test_ldadd = src/spawner/libspawner.a src/master/libmaster.a src/ipc/libipc.a src/conf/libconf.a \
	src/base/libbase.a $(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(ARCHIVE_LIBS) $(MD_LIBS) \
	$(CAP_LIBS) $(SECCOMP_LIBS)
spawner_test_bed = tests/unit/spawner/bed.c tests/unit/spawner/bed.h
spawner_test_kit = tests/unit/spawner/layout_kit.c tests/unit/spawner/layout_kit.h

tests_unit_spawner_test_sandbox_SOURCES = tests/unit/spawner/test_sandbox.c $(spawner_test_bed)
tests_unit_spawner_test_sandbox_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_sandbox_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_sandbox_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_imager_SOURCES = tests/unit/spawner/test_imager.c $(spawner_test_kit)
tests_unit_spawner_test_imager_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_imager_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_imager_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_layer_SOURCES = tests/unit/spawner/test_layer.c $(spawner_test_kit)
tests_unit_spawner_test_layer_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_layer_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_layer_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_cage_SOURCES = tests/unit/spawner/test_cage.c $(spawner_test_kit)
tests_unit_spawner_test_cage_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_cage_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_cage_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_cgroup_find_SOURCES = tests/unit/spawner/test_cgroup_find.c
tests_unit_spawner_test_cgroup_find_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_cgroup_find_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_cgroup_find_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_filter_SOURCES = tests/unit/spawner/test_filter.c
tests_unit_spawner_test_filter_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_filter_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_filter_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_life_SOURCES = tests/unit/spawner/test_life.c $(spawner_test_bed)
tests_unit_spawner_test_life_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_life_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_life_LDADD = $(spawner_test_ldadd)

tests_unit_spawner_test_restart_SOURCES = tests/unit/spawner/test_restart.c $(spawner_test_bed)
tests_unit_spawner_test_restart_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_restart_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_restart_LDADD = src/backend/libbackend.a $(spawner_test_ldadd)

tests_unit_spawner_test_walls_SOURCES = tests/unit/spawner/test_walls.c $(spawner_test_bed)
tests_unit_spawner_test_walls_CPPFLAGS = $(spawner_test_cppflags)
tests_unit_spawner_test_walls_CFLAGS = $(spawner_test_cflags)
tests_unit_spawner_test_walls_LDADD = $(spawner_test_ldadd)
endif
