noinst_LIBRARIES += src/domain/libdomain.a
src_domain_libdomain_a_SOURCES = \
	src/domain/env_spec.c \
	src/domain/env_spec.h \
	src/domain/exec.c \
	src/domain/exec.h \
	src/domain/exec_agent.c \
	src/domain/exec_finish.c \
	src/domain/exec_priv.h \
	src/domain/exec_resume.c \
	src/domain/exec_spec.c \
	src/domain/exec_submit.c \
	src/domain/job.c \
	src/domain/job.h \
	src/domain/job_json.c \
	src/domain/job_list.c \
	src/domain/job_priv.h \
	src/domain/job_wait.c \
	src/domain/resources.c \
	src/domain/resources.h \
	src/domain/sandbox.c \
	src/domain/sandbox.h \
	src/domain/sandbox_create.c \
	src/domain/sandbox_delete.c \
	src/domain/sandbox_json.c \
	src/domain/sandbox_list.c \
	src/domain/sandbox_make.c \
	src/domain/sandbox_priv.h \
	src/domain/sandbox_probe.c \
	src/domain/sandbox_spec.c \
	src/domain/sandbox_wait.c \
	src/domain/service.c \
	src/domain/service.h \
	src/domain/service_priv.h \
	src/domain/watch.c \
	src/domain/watch.h
EXTRA_DIST += src/domain/README.md

if HAVE_CMOCKA
domain_tests = \
	tests/unit/domain/test_exec \
	tests/unit/domain/test_sandbox \
	tests/unit/domain/test_specs
check_PROGRAMS += $(domain_tests)
TESTS += $(domain_tests)
domain_test_ldadd = src/domain/libdomain.a src/backend/libbackend.a src/http/libhttp.a src/ipc/libipc.a \
	src/conf/libconf.a src/base/libbase.a $(CMOCKA_LIBS) $(EVENT_LIBS) $(CONFUSE_LIBS) $(JSON_LIBS) \
	$(MD_LIBS) $(ZLIB_LIBS) -lpthread -lm

domain_fixture = \
	tests/unit/domain/fake_agent.c \
	tests/unit/domain/fake_driver.c \
	tests/unit/domain/fakes.h \
	tests/unit/domain/fixture.c \
	tests/unit/domain/fixture.h

tests_unit_domain_test_exec_SOURCES = tests/unit/domain/test_exec.c $(domain_fixture)
tests_unit_domain_test_exec_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_exec_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_sandbox_SOURCES = tests/unit/domain/test_sandbox.c $(domain_fixture)
tests_unit_domain_test_sandbox_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_sandbox_LDADD = $(domain_test_ldadd)

tests_unit_domain_test_specs_SOURCES = tests/unit/domain/test_specs.c
tests_unit_domain_test_specs_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_unit_domain_test_specs_LDADD = $(domain_test_ldadd)
endif
