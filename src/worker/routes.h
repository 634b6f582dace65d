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
void handle_openapi(struct request *request);
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
/* handle_archive.c */
void handle_archive_put(struct request *request);
void handle_archive_get(struct request *request);
/* handle_exec.c, handle_patch.c */
void handle_exec(struct request *request);
void handle_patch(struct request *request);
/* handle_pty.c */
void handle_pty(struct request *request);
/* handle_files.c */
void handle_file_put(struct request *request);
void handle_file_get(struct request *request);
void handle_file_stat(struct request *request);
void handle_file_list(struct request *request);
void handle_file_delete(struct request *request);
/* handle_file_json.c */
void handle_file_upload(struct request *request);
void handle_file_download(struct request *request);
void handle_file_mkdir(struct request *request);
void handle_file_move(struct request *request);
/* handle_job.c */
void handle_job_list(struct request *request);
void handle_job_get(struct request *request);
void handle_job_wait(struct request *request);
void handle_job_cancel(struct request *request);
/* handle_output.c */
void handle_job_output(struct request *request);
/* handle_stream.c */
void handle_job_stream(struct request *request);
/* handle_stdin.c */
void handle_job_stdin(struct request *request);

#endif
