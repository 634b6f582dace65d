noinst_LIBRARIES += src/cluster/libcluster.a
src_cluster_libcluster_a_SOURCES = \
	src/cluster/changes.c \
	src/cluster/changes.h \
	src/cluster/cluster.c \
	src/cluster/cluster.h \
	src/cluster/host.c \
	src/cluster/host.h \
	src/cluster/job_board.c \
	src/cluster/job_board.h \
	src/cluster/job_board_impl.h \
	src/cluster/job_live.c \
	src/cluster/job_live.h \
	src/cluster/job_roll.c \
	src/cluster/job_script.c \
	src/cluster/job_script.h \
	src/cluster/key_kept.c \
	src/cluster/key_kept.h \
	src/cluster/key_script.c \
	src/cluster/key_script.h \
	src/cluster/key_share.c \
	src/cluster/key_share.h \
	src/cluster/lane_lease.c \
	src/cluster/lane_lease.h \
	src/cluster/lane_pass.c \
	src/cluster/lane_script.c \
	src/cluster/lane_script.h \
	src/cluster/lanes.c \
	src/cluster/lanes.h \
	src/cluster/lanes_impl.h \
	src/cluster/replicas.c \
	src/cluster/replicas.h \
	src/cluster/sandbox_answer.c \
	src/cluster/sandbox_feed.c \
	src/cluster/sandbox_feed.h \
	src/cluster/sandbox_fields.c \
	src/cluster/sandbox_fields.h \
	src/cluster/sandbox_mirror.c \
	src/cluster/sandbox_mirror.h \
	src/cluster/sandbox_script.c \
	src/cluster/sandbox_script.h \
	src/cluster/sandbox_share.c \
	src/cluster/sandbox_share.h \
	src/cluster/sandbox_share_priv.h \
	src/cluster/sandbox_teller.c \
	src/cluster/sandbox_teller.h \
	src/cluster/shared_return.h \
	src/cluster/shared_clock.h
EXTRA_DIST += src/cluster/README.md

if HAVE_CMOCKA
cluster_tests = \
	tests/unit/cluster/test_changes \
	tests/unit/cluster/test_job_script \
	tests/unit/cluster/test_key_kept \
	tests/unit/cluster/test_key_script \
	tests/unit/cluster/test_key_share \
	tests/unit/cluster/test_lane_lease \
	tests/unit/cluster/test_lane_script \
	tests/unit/cluster/test_lanes \
	tests/unit/cluster/test_replicas \
	tests/unit/cluster/test_sandbox_mirror \
	tests/unit/cluster/test_sandbox_script \
	tests/unit/cluster/test_sandbox_share
check_PROGRAMS += $(cluster_tests)
TESTS += $(cluster_tests)

cluster_server = \
	tests/unit/cluster/redis_server.c \
	tests/unit/cluster/redis_server.h $(redis_test_rig)
cluster_test_ldadd = src/cluster/libcluster.a src/redis/libredis.a src/ipc/libipc.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(HIREDIS_LIBS) $(EVENT_EXTRA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS)

tests_unit_cluster_test_changes_SOURCES = tests/unit/cluster/test_changes.c $(redis_test_rig)
tests_unit_cluster_test_changes_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_changes_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cluster_test_changes_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_job_script_SOURCES = tests/unit/cluster/test_job_script.c $(cluster_server)
tests_unit_cluster_test_job_script_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_job_script_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_cluster_test_job_script_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_key_kept_SOURCES = tests/unit/cluster/test_key_kept.c
tests_unit_cluster_test_key_kept_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cluster_test_key_kept_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_key_script_SOURCES = tests/unit/cluster/test_key_script.c $(cluster_server)
tests_unit_cluster_test_key_script_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_key_script_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_cluster_test_key_script_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_key_share_SOURCES = tests/unit/cluster/test_key_share.c $(redis_test_rig)
tests_unit_cluster_test_key_share_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_key_share_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cluster_test_key_share_LDADD = src/cluster/libcluster.a src/backend/libbackend.a $(cluster_test_ldadd) $(ZLIB_LIBS)

tests_unit_cluster_test_lane_lease_SOURCES = tests/unit/cluster/test_lane_lease.c
tests_unit_cluster_test_lane_lease_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cluster_test_lane_lease_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_lane_script_SOURCES = tests/unit/cluster/test_lane_script.c $(cluster_server)
tests_unit_cluster_test_lane_script_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_lane_script_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_cluster_test_lane_script_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_lanes_SOURCES = tests/unit/cluster/test_lanes.c $(cluster_server)
tests_unit_cluster_test_lanes_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_lanes_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_cluster_test_lanes_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_replicas_SOURCES = tests/unit/cluster/test_replicas.c $(redis_test_rig)
tests_unit_cluster_test_replicas_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_replicas_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cluster_test_replicas_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_sandbox_mirror_SOURCES = tests/unit/cluster/test_sandbox_mirror.c
tests_unit_cluster_test_sandbox_mirror_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_cluster_test_sandbox_mirror_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_sandbox_script_SOURCES = tests/unit/cluster/test_sandbox_script.c $(cluster_server)
tests_unit_cluster_test_sandbox_script_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_sandbox_script_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_cluster_test_sandbox_script_LDADD = $(cluster_test_ldadd)

tests_unit_cluster_test_sandbox_share_SOURCES = tests/unit/cluster/test_sandbox_share.c tests/unit/cluster/replicas.c \
	tests/unit/cluster/replicas.h $(cluster_server)
tests_unit_cluster_test_sandbox_share_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/redis
tests_unit_cluster_test_sandbox_share_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_cluster_test_sandbox_share_LDADD = $(cluster_test_ldadd)
endif
