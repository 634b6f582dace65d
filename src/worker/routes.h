/* routes.h - the routes of the REST API: the table, and the handlers that it names. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_ROUTES_H
#define ORCHARD_WORKER_ROUTES_H

#include "worker/router.h"

extern const struct route routes[];
extern const size_t routes_count;

/* handle_service.c */
void handle_root(struct request *request);
void handle_health(struct request *request);
void handle_ready(struct request *request);
void handle_resources(struct request *request);
/* handle_metrics.c */
void handle_metrics(struct request *request);
/* handle_sandbox.c */
void handle_sandbox_create(struct request *request);
void handle_sandbox_list(struct request *request);
void handle_sandbox_get(struct request *request);
void handle_sandbox_patch(struct request *request);
void handle_sandbox_delete(struct request *request);
void handle_sandbox_wait(struct request *request);
void handle_sandbox_heartbeat(struct request *request);
/* handle_exec.c */
void handle_exec(struct request *request);
/* handle_job.c */
void handle_job_list(struct request *request);
void handle_job_get(struct request *request);
void handle_job_wait(struct request *request);
void handle_job_cancel(struct request *request);

#endif
