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
EXTRA_DIST += src/worker/README.md

if HAVE_CMOCKA
worker_tests = \
	tests/unit/worker/test_auth \
	tests/unit/worker/test_problem \
	tests/unit/worker/test_router
check_PROGRAMS += $(worker_tests)
TESTS += $(worker_tests)
worker_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
worker_test_ldadd = src/worker/libworker.a src/http/libhttp.a src/ipc/libipc.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(MD_LIBS) -lm
tests_unit_worker_test_auth_SOURCES = tests/unit/worker/test_auth.c
tests_unit_worker_test_auth_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_auth_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_problem_SOURCES = tests/unit/worker/test_problem.c
tests_unit_worker_test_problem_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_problem_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_router_SOURCES = tests/unit/worker/test_router.c
tests_unit_worker_test_router_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_router_LDADD = $(worker_test_ldadd)
endif
