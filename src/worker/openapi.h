/*
 * openapi.h - the description of the REST API that GET /openapi.json gives.
 *
 * People write the files of docs/openapi: paths, parameters, schemas, examples, and for each operation the codes it refuses
 * with, as "x-problems". What the code knows is filled in from it: the version, who needs a key, the ids in
 * paths, X-Request-ID, and for every refusal its status, its headers and its body.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_OPENAPI_H
#define ORCHARD_WORKER_OPENAPI_H

#include <stddef.h>

struct json_object;
struct route;

/* The texts of docs/openapi, NULL behind the last. */
extern const char *const openapi_parts[];

enum { OPENAPI_PATH_SIZE = 128 };

/* The path of a route as the description has it: "/jobs/{job_id}". */
void openapi_path(const struct route *route, char ret_path[OPENAPI_PATH_SIZE]);
/* "get" */
const char *openapi_method(const struct route *route);
/* The whole document; owned by the caller. Operations that no route has are left as they are. */
struct json_object *openapi_build(const struct route *routes, size_t count);
/* Its text, made at the first call and kept for the life of the process. */
const char *openapi_text(size_t *ret_len);

#endif
