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
