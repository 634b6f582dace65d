/* routes.c - one line per route. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

const struct route routes[] = {
	/* clang-format off */
	{ HTTP_GET,    "/",                              handle_root,              ROUTE_OPEN,    BODY_NONE },
	{ HTTP_GET,    "/health",                        handle_health,            ROUTE_OPEN,    BODY_NONE },
	{ HTTP_GET,    "/ready",                         handle_ready,             ROUTE_OPEN,    BODY_NONE },
	{ HTTP_GET,    "/resources",                     handle_resources,         ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/metrics",                       handle_metrics,           ROUTE_METRICS, BODY_NONE },
	{ HTTP_GET,    "/openapi.json",                  handle_openapi,           ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/sandboxes",                     handle_sandbox_create,    ROUTE_KEY,     BODY_OBJECT },
	{ HTTP_GET,    "/sandboxes",                     handle_sandbox_list,      ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}",           handle_sandbox_get,       ROUTE_KEY,     BODY_NONE },
	{ HTTP_PATCH,  "/sandboxes/{sandbox}",           handle_sandbox_patch,     ROUTE_KEY,     BODY_OPTIONAL },
	{ HTTP_DELETE, "/sandboxes/{sandbox}",           handle_sandbox_delete,    ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}/wait",      handle_sandbox_wait,      ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/sandboxes/{sandbox}/heartbeat", handle_sandbox_heartbeat, ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/sandboxes/{sandbox}/exec",      handle_exec,              ROUTE_KEY,     BODY_OBJECT },
	{ HTTP_POST,   "/sandboxes/{sandbox}/apply_patch", handle_patch,           ROUTE_KEY,     BODY_OBJECT },
	{ HTTP_GET,    "/sandboxes/{sandbox}/exec/pty",  handle_pty,               ROUTE_SOCKET,  BODY_NONE },
	{ HTTP_POST,   "/sandboxes/{sandbox}/files",      handle_file_upload,       ROUTE_KEY,     BODY_NAMES },
	{ HTTP_GET,    "/sandboxes/{sandbox}/files",      handle_file_download,     ROUTE_KEY,     BODY_NONE },
	{ HTTP_DELETE, "/sandboxes/{sandbox}/files",      handle_file_delete,       ROUTE_KEY,     BODY_NONE },
	{ HTTP_PUT,    "/sandboxes/{sandbox}/files/raw",  handle_file_put,          ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}/files/raw",  handle_file_get,          ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}/files/list", handle_file_list,         ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}/files/stat", handle_file_stat,         ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/sandboxes/{sandbox}/files/mkdir", handle_file_mkdir,        ROUTE_KEY,     BODY_NAMES },
	{ HTTP_POST,   "/sandboxes/{sandbox}/files/move", handle_file_move,         ROUTE_KEY,     BODY_NAMES },
	{ HTTP_PUT,    "/sandboxes/{sandbox}/archive",  handle_archive_put,        ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}/archive",  handle_archive_get,        ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}/jobs",      handle_job_list,          ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/jobs/{job}",                    handle_job_get,           ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/jobs/{job}/wait",               handle_job_wait,          ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/jobs/{job}/cancel",             handle_job_cancel,        ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/jobs/{job}/output",             handle_job_output,        ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/jobs/{job}/stream",             handle_job_stream,        ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/jobs/{job}/stdin",              handle_job_stdin,         ROUTE_KEY,     BODY_NONE },
	/* clang-format on */
};

const size_t routes_count = sizeof routes / sizeof routes[0];
