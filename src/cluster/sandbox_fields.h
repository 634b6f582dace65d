/*
 * sandbox_fields.h - a sandbox's record as the fields of a hash in Redis, and back.
 *
 * Three kinds, by who may write them: the home (the replica that made it) alone, any replica by a PATCH, any replica
 * as signs of life. The version belongs to the scripts. Fields of other versions of this server are left alone.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SANDBOX_FIELDS_H
#define ORCHARD_CLUSTER_SANDBOX_FIELDS_H

#include "base/cleanup.h"
#include "ipc/sandbox_table.h"

#include <stdint.h>

struct err;
struct redis_answer;
struct redis_args;
struct shared_clock;

enum sandbox_fields { SANDBOX_FIELDS_HOME, SANDBOX_FIELDS_PATCH, SANDBOX_FIELDS_SIGNS };

enum { SANDBOX_HOST_SIZE = ID_UUID_SIZE };

/* As it stands in Redis. */
struct shared_sandbox {
	struct sandbox_record record; /* home is always named, ours too; ages are of the boot clock */
	char host[SANDBOX_HOST_SIZE]; /* of its home: the boot id */
};

/* Adds names and values of that kind; they borrow from the record. */
void sandbox_fields_put(struct redis_args *args, enum sandbox_fields kind, const struct sandbox_record *record,
	const struct shared_clock *shared);
/* Adds where it is: the id of its home, and of the host that is on. */
void sandbox_fields_put_host(struct redis_args *args, const char *home, const char *host);
/* Of what its home says; never 0. Ages count as they are in shared memory. */
uint64_t sandbox_fields_digest(const struct sandbox_record *record);

/*
 * Reads the flat list of a HGETALL. ERR_INVALID: it says things that this server does not understand; whoever reads it
 * leaves it where it is.
 */
int sandbox_fields_read(const struct redis_answer *fields, const struct shared_clock *shared,
	struct shared_sandbox *ret_sandbox, struct err *err) MUSTCHECK;

#endif
