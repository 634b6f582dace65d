noinst_LIBRARIES += src/worker/libworker.a
src_worker_libworker_a_SOURCES = \
	src/worker/api.c \
	src/worker/api.h \
	src/worker/auth.c \
	src/worker/auth.h \
	src/worker/body.c \
	src/worker/body.h \
	src/worker/file_target.c \
	src/worker/file_target.h \
	src/worker/handle_archive.c \
	src/worker/handle_exec.c \
	src/worker/handle_file_json.c \
	src/worker/handle_files.c \
	src/worker/handle_job.c \
	src/worker/handle_job.h \
	src/worker/handle_metrics.c \
	src/worker/handle_output.c \
	src/worker/handle_patch.c \
	src/worker/handle_pty.c \
	src/worker/handle_sandbox.c \
	src/worker/handle_service.c \
	src/worker/handle_stdin.c \
	src/worker/handle_stream.c \
	src/worker/handshake.c \
	src/worker/handshake.h \
	src/worker/key.c \
	src/worker/key.h \
	src/worker/openapi.c \
	src/worker/openapi.h \
	src/worker/openapi_refusal.c \
	src/worker/openapi_refusal.h \
	src/worker/piece.c \
	src/worker/piece.h \
	src/worker/problem.c \
	src/worker/problem.h \
	src/worker/query.c \
	src/worker/query.h \
	src/worker/relay.c \
	src/worker/relay.h \
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
nodist_src_worker_libworker_a_SOURCES = src/worker/openapi_parts.c

# The parts of the API's description, as C strings without their indentation.
openapi_parts = \
	docs/openapi/base.json \
	docs/openapi/service.json \
	docs/openapi/sandboxes.json \
	docs/openapi/commands.json \
	docs/openapi/files.json \
	docs/openapi/archives.json \
	docs/openapi/patches.json \
	docs/openapi/terminals.json
src/worker/openapi_parts.c: $(openapi_parts) src/worker/local.mk
	@$(MKDIR_P) src/worker
	$(AM_V_GEN){ \
		echo '/* clang-format off: made of docs/openapi */'; \
		echo '#include "worker/openapi.h"'; \
		echo 'const char *const openapi_parts[] = {'; \
		for part in $(filter %.json,$^); do \
			$(SED) -e 's/[\\"]/\\&/g' -e 's/^[[:space:]]*\(.*\)$$/"\1"/' "$$part" && echo , || exit 1; \
		done; \
		echo 'NULL };'; \
	} >$@.tmp && mv $@.tmp $@
CLEANFILES += src/worker/openapi_parts.c
EXTRA_DIST += $(openapi_parts) src/worker/README.md docs/rest-api.md docs/decisions/0002-prefork-workers.md

if HAVE_CMOCKA
worker_tests = \
	tests/unit/worker/test_api \
	tests/unit/worker/test_auth \
	tests/unit/worker/test_handle_exec \
	tests/unit/worker/test_handle_files \
	tests/unit/worker/test_handle_patch \
	tests/unit/worker/test_handle_pty \
	tests/unit/worker/test_handle_sandbox \
	tests/unit/worker/test_handle_service \
	tests/unit/worker/test_handle_streams \
	tests/unit/worker/test_openapi \
	tests/unit/worker/test_problem \
	tests/unit/worker/test_router \
	tests/unit/worker/test_worker
check_PROGRAMS += $(worker_tests)
TESTS += $(worker_tests)
worker_test_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
worker_test_ldadd = src/worker/libworker.a src/cluster/libcluster.a src/master/libmaster.a src/runtime/libruntime.a \
	src/redis/libredis.a src/http/libhttp.a src/ipc/libipc.a \
	src/conf/libconf.a src/base/libbase.a \
	$(CMOCKA_LIBS) $(HIREDIS_LIBS) $(EVENT_EXTRA_LIBS) $(EVENT_LIBS) $(JSON_LIBS) $(CONFUSE_LIBS) $(MD_LIBS) -lm
# The handlers run for real above a domain whose outcomes the test sets.
worker_fixture = \
	tests/unit/worker/api_fixture.c \
	tests/unit/worker/api_fixture.h \
	tests/unit/worker/fake_domain.c \
	tests/unit/worker/fake_domain.h \
	tests/unit/worker/fake_file_call.c \
	tests/unit/worker/fake_file_call.h

tests_unit_worker_test_api_SOURCES = tests/unit/worker/test_api.c $(worker_fixture)
tests_unit_worker_test_api_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_api_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_auth_SOURCES = tests/unit/worker/test_auth.c
tests_unit_worker_test_auth_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_auth_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_exec_SOURCES = tests/unit/worker/test_handle_exec.c $(worker_fixture)
tests_unit_worker_test_handle_exec_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_exec_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_files_SOURCES = tests/unit/worker/test_handle_files.c $(worker_fixture)
tests_unit_worker_test_handle_files_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_files_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_patch_SOURCES = tests/unit/worker/test_handle_patch.c $(worker_fixture)
tests_unit_worker_test_handle_patch_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_patch_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_pty_SOURCES = tests/unit/worker/test_handle_pty.c $(worker_fixture)
tests_unit_worker_test_handle_pty_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_pty_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_sandbox_SOURCES = tests/unit/worker/test_handle_sandbox.c $(worker_fixture)
tests_unit_worker_test_handle_sandbox_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_sandbox_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_service_SOURCES = tests/unit/worker/test_handle_service.c $(worker_fixture)
tests_unit_worker_test_handle_service_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_service_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_handle_streams_SOURCES = tests/unit/worker/test_handle_streams.c $(worker_fixture)
tests_unit_worker_test_handle_streams_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_handle_streams_LDADD = $(worker_test_ldadd)
tests_unit_worker_test_openapi_SOURCES = tests/unit/worker/test_openapi.c $(worker_fixture)
tests_unit_worker_test_openapi_CFLAGS = $(worker_test_cflags)
tests_unit_worker_test_openapi_LDADD = $(worker_test_ldadd)
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
