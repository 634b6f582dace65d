noinst_LIBRARIES += src/worker/libworker.a
src_worker_libworker_a_SOURCES = \
	src/worker/api.c \
	src/worker/api.h \
	src/worker/auth.c \
	src/worker/auth.h \
	src/worker/body.c \
	src/worker/body.h \
	src/worker/handle_exec.c \
	src/worker/handle_job.c \
	src/worker/handle_job.h \
	src/worker/handle_metrics.c \
	src/worker/handle_sandbox.c \
	src/worker/handle_service.c \
	src/worker/problem.c \
	src/worker/problem.h \
	src/worker/query.c \
	src/worker/query.h \
	src/worker/request.c \
	src/worker/request.h \
	src/worker/respond.c \
	src/worker/respond.h \
	src/worker/router.c \
	src/worker/router.h \
	src/worker/routes.c \
	src/worker/routes.h \
	src/worker/worker.c \
	src/worker/worker.h
EXTRA_DIST += src/worker/README.md docs/rest-api.md docs/decisions/0002-prefork-workers.md

if HAVE_CMOCKA
worker_tests = \
	tests/unit/worker/test_api \
	tests/unit/worker/test_auth \
	tests/unit/worker/test_handle_exec \
	tests/unit/worker/test_handle_sandbox \
	tests/unit/worker/test_handle_service \
	tests/unit/worker/test_problem \
	tests/unit/worker/test_router \
	tests/unit/worker/test_worker
check_PROGRAMS += $(worker_tests)
TESTS += $(worker_tests)
worker_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
worker_test_ldadd = src/worker/libworker.a src/master/libmaster.a src/http/libhttp.a src/ipc/libipc.a \
	src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS) -lm
# The handlers run for real above a domain whose outcomes the test sets.
worker_fixture = \
	tests/unit/worker/api_fixture.c \
	tests/unit/worker/api_fixture.h \
	tests/unit/worker/fake_domain.c \
	tests/unit/worker/fake_domain.h

tests_unit_worker_test_api_SOURCES = tests/unit/worker/test_api.c $(worker_fixture)
tests_unit_worker_test_api_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_api_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_auth_SOURCES = tests/unit/worker/test_auth.c
tests_unit_worker_test_auth_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_auth_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_exec_SOURCES = tests/unit/worker/test_handle_exec.c $(worker_fixture)
tests_unit_worker_test_handle_exec_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_exec_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_sandbox_SOURCES = tests/unit/worker/test_handle_sandbox.c $(worker_fixture)
tests_unit_worker_test_handle_sandbox_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_sandbox_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_service_SOURCES = tests/unit/worker/test_handle_service.c $(worker_fixture)
tests_unit_worker_test_handle_service_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_service_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_problem_SOURCES = tests/unit/worker/test_problem.c
tests_unit_worker_test_problem_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_problem_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_router_SOURCES = tests/unit/worker/test_router.c
tests_unit_worker_test_router_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_router_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_worker_SOURCES = tests/unit/worker/test_worker.c $(worker_fixture)
tests_unit_worker_test_worker_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_worker_LDADD = $(worker_test_ldadd)
endif
