noinst_LIBRARIES += src/domain/libdomain.a
src_domain_libdomain_a_SOURCES = \
	src/domain/env_spec.c \
	src/domain/env_spec.h \
	src/domain/file_call.c \
	src/domain/file_call.h \
	src/domain/idempotency.c \
	src/domain/idempotency.h \
	src/domain/keys.c \
	src/domain/keys.h \
	src/domain/resources.c \
	src/domain/resources.h \
	src/domain/service.c \
	src/domain/service.h \
	src/domain/service_priv.h \
	src/domain/service_share.c \
	src/domain/watch.c \
	src/domain/watch.h \
	src/domain/exec/exec.c \
	src/domain/exec/exec.h \
	src/domain/exec/exec_agent.c \
	src/domain/exec/exec_board.c \
	src/domain/exec/exec_cancel.c \
	src/domain/exec/exec_finish.c \
	src/domain/exec/exec_key.c \
	src/domain/exec/exec_lane.c \
	src/domain/exec/exec_move.c \
	src/domain/exec/exec_others.c \
	src/domain/exec/exec_priv.h \
	src/domain/exec/exec_resume.c \
	src/domain/exec/exec_retell.c \
	src/domain/exec/exec_spec.c \
	src/domain/exec/exec_submit.c \
	src/domain/exec/exec_tidy.c \
	src/domain/exec/exec_untold.c \
	src/domain/exec/patch_spec.c \
	src/domain/exec/patch_spec.h \
	src/domain/exec/patch_words.c \
	src/domain/exec/patch_words.h \
	src/domain/job/job.c \
	src/domain/job/job.h \
	src/domain/job/job_far.c \
	src/domain/job/job_feed.c \
	src/domain/job/job_feed.h \
	src/domain/job/job_json.c \
	src/domain/job/job_list.c \
	src/domain/job/job_output.c \
	src/domain/job/job_output.h \
	src/domain/job/job_priv.h \
	src/domain/job/job_stdin.c \
	src/domain/job/job_stdin.h \
	src/domain/job/job_take.c \
	src/domain/job/job_tap.c \
	src/domain/job/job_tap.h \
	src/domain/job/job_tap_impl.h \
	src/domain/job/job_tap_result.c \
	src/domain/job/job_wait.c \
	src/domain/sandbox/egress_spec.c \
	src/domain/sandbox/egress_spec.h \
	src/domain/sandbox/expiry.c \
	src/domain/sandbox/expiry.h \
	src/domain/sandbox/sandbox.c \
	src/domain/sandbox/sandbox.h \
	src/domain/sandbox/sandbox_ask.c \
	src/domain/sandbox/sandbox_create.c \
	src/domain/sandbox/sandbox_delete.c \
	src/domain/sandbox/sandbox_enter.c \
	src/domain/sandbox/sandbox_heard.c \
	src/domain/sandbox/sandbox_json.c \
	src/domain/sandbox/sandbox_key.c \
	src/domain/sandbox/sandbox_list.c \
	src/domain/sandbox/sandbox_make.c \
	src/domain/sandbox/sandbox_measure.c \
	src/domain/sandbox/sandbox_priv.h \
	src/domain/sandbox/sandbox_probe.c \
	src/domain/sandbox/sandbox_ready.c \
	src/domain/sandbox/sandbox_ready.h \
	src/domain/sandbox/sandbox_spec.c \
	src/domain/sandbox/sandbox_tombstone.c \
	src/domain/sandbox/sandbox_wait.c
EXTRA_DIST += src/domain/README.md

if HAVE_CMOCKA
domain_tests = \
	tests/unit/domain/test_exec \
	tests/unit/domain/test_exec_key \
	tests/unit/domain/test_exec_resume \
	tests/unit/domain/test_exec_tidy \
	tests/unit/domain/test_patch_words \
	tests/unit/domain/test_sandbox \
	tests/unit/domain/test_sandbox_heard \
	tests/unit/domain/test_shared \
	tests/unit/domain/test_shared_jobs \
	tests/unit/domain/test_shared_taken \
	tests/unit/domain/test_sandbox_key \
	tests/unit/domain/test_sandbox_measure \
	tests/unit/domain/test_sandbox_ready \
	tests/unit/domain/test_specs \
	tests/unit/domain/test_expiry \
	tests/unit/domain/test_late_store \
	tests/unit/domain/test_streams
check_PROGRAMS += $(domain_tests)
TESTS += $(domain_tests)
domain_test_ldadd = src/domain/libdomain.a src/cluster/libcluster.a src/backend/libbackend.a src/redis/libredis.a src/http/libhttp.a src/ipc/libipc.a \
	src/conf/libconf.a src/base/libbase.a $(CMOCKA_LIBS) $(EVENT_LIBS) $(CONFUSE_LIBS) $(JSON_LIBS) \
	$(MD_LIBS) $(ZLIB_LIBS) $(HIREDIS_LIBS) $(EVENT_EXTRA_LIBS) -lpthread -lm

domain_fixture = \
	tests/unit/domain/fake_agent.c \
	tests/unit/domain/fake_agent_io.c \
	tests/unit/domain/fake_clock.c \
	tests/unit/domain/fake_driver.c \
	tests/unit/domain/fakes.h \
	tests/unit/domain/fixture.c \
	tests/unit/domain/fixture.h

tests_unit_domain_test_exec_SOURCES = tests/unit/domain/test_exec.c $(domain_fixture)
tests_unit_domain_test_exec_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_exec_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_exec_key_SOURCES = tests/unit/domain/test_exec_key.c $(domain_fixture)
tests_unit_domain_test_exec_key_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_exec_key_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_exec_resume_SOURCES = tests/unit/domain/test_exec_resume.c $(domain_fixture)
tests_unit_domain_test_exec_resume_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_exec_resume_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_exec_tidy_SOURCES = tests/unit/domain/test_exec_tidy.c $(domain_fixture)
tests_unit_domain_test_exec_tidy_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_exec_tidy_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_expiry_SOURCES = tests/unit/domain/test_expiry.c
tests_unit_domain_test_expiry_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_expiry_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_patch_words_SOURCES = tests/unit/domain/test_patch_words.c
tests_unit_domain_test_patch_words_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_patch_words_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_late_store_SOURCES = tests/unit/domain/test_late_store.c tests/unit/domain/late_store.c \
	tests/unit/domain/late_store.h $(domain_fixture)
tests_unit_domain_test_late_store_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_late_store_LDADD = $(domain_test_ldadd)
tests_unit_domain_test_late_store_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=job_store_get_result \
	-Wl,--wrap=job_store_get_spec -Wl,--wrap=job_store_put_result -Wl,--wrap=job_store_put_spec \
	-Wl,--wrap=job_store_forget -Wl,--wrap=job_store_flush -Wl,--wrap=key_store_get -Wl,--wrap=key_store_put \
	-Wl,--wrap=key_store_renew

tests_unit_domain_test_sandbox_SOURCES = tests/unit/domain/test_sandbox.c $(domain_fixture)
tests_unit_domain_test_sandbox_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_sandbox_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_sandbox_heard_SOURCES = tests/unit/domain/test_sandbox_heard.c $(domain_fixture)
tests_unit_domain_test_sandbox_heard_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_sandbox_heard_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_sandbox_key_SOURCES = tests/unit/domain/test_sandbox_key.c $(domain_fixture)
tests_unit_domain_test_sandbox_key_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_sandbox_key_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_sandbox_measure_SOURCES = tests/unit/domain/test_sandbox_measure.c $(domain_fixture)
tests_unit_domain_test_sandbox_measure_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_sandbox_measure_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_sandbox_ready_SOURCES = tests/unit/domain/test_sandbox_ready.c $(domain_fixture)
tests_unit_domain_test_sandbox_ready_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_sandbox_ready_LDADD = $(domain_test_ldadd)

domain_pair = $(domain_fixture) tests/unit/domain/pair.c tests/unit/domain/pair.h $(cluster_server)
tests_unit_domain_test_shared_SOURCES = tests/unit/domain/test_shared.c $(domain_pair)
tests_unit_domain_test_shared_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/cluster -I$(top_srcdir)/tests/unit/redis
tests_unit_domain_test_shared_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_domain_test_shared_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_shared_jobs_SOURCES = tests/unit/domain/test_shared_jobs.c $(domain_pair)
tests_unit_domain_test_shared_jobs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/cluster -I$(top_srcdir)/tests/unit/redis
tests_unit_domain_test_shared_jobs_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_domain_test_shared_jobs_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_shared_taken_SOURCES = tests/unit/domain/test_shared_taken.c $(domain_pair)
tests_unit_domain_test_shared_taken_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit/cluster -I$(top_srcdir)/tests/unit/redis
tests_unit_domain_test_shared_taken_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(HIREDIS_CFLAGS)
tests_unit_domain_test_shared_taken_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_streams_SOURCES = tests/unit/domain/test_streams.c $(domain_fixture)
tests_unit_domain_test_streams_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_streams_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_specs_SOURCES = tests/unit/domain/test_specs.c
tests_unit_domain_test_specs_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_specs_LDADD = $(domain_test_ldadd)
endif
