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
	{ HTTP_POST,   "/sandboxes",                     handle_sandbox_create,    ROUTE_KEY,     BODY_OBJECT },
	{ HTTP_GET,    "/sandboxes",                     handle_sandbox_list,      ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}",           handle_sandbox_get,       ROUTE_KEY,     BODY_NONE },
	{ HTTP_PATCH,  "/sandboxes/{sandbox}",           handle_sandbox_patch,     ROUTE_KEY,     BODY_OPTIONAL },
	{ HTTP_DELETE, "/sandboxes/{sandbox}",           handle_sandbox_delete,    ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/sandboxes/{sandbox}/wait",      handle_sandbox_wait,      ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/sandboxes/{sandbox}/heartbeat", handle_sandbox_heartbeat, ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/sandboxes/{sandbox}/exec",      handle_exec,              ROUTE_KEY,     BODY_OBJECT },
	{ HTTP_GET,    "/sandboxes/{sandbox}/jobs",      handle_job_list,          ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/jobs/{job}",                    handle_job_get,           ROUTE_KEY,     BODY_NONE },
	{ HTTP_GET,    "/jobs/{job}/wait",               handle_job_wait,          ROUTE_KEY,     BODY_NONE },
	{ HTTP_POST,   "/jobs/{job}/cancel",             handle_job_cancel,        ROUTE_KEY,     BODY_NONE },
	/* clang-format on */
};

const size_t routes_count = sizeof routes / sizeof routes[0];
