/*
 * puller.h - runs skopeo, the program that talks to registries, and hears what it says.
 *
 * It runs as a user without rights, in namespaces of its own but for the network: everything is read-only, state_dir
 * and run_dir are not there, and its working directory is the only place where it can write. It ends with its caller,
 * at the deadline, or when the work is done, and all it has started with it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_PULLER_H
#define ORCHARD_IMAGE_PULLER_H

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct config;
struct err;

struct puller {
	const struct config *config;
	uid_t uid;
	gid_t gid;
	int net_fd; /* the host's network */
	int auth_fd; /* a copy of the credentials, or -1 */
	int work_fd; /* its working directory: the caller's, owned by uid */
	int64_t deadline_ms; /* of all runs together, on the boot clock */
};

/* One run. args: the subcommand and what follows, ended by NULL; --authfile is put behind the subcommand. */
struct puller_job {
	const char *const *args;
	int64_t file_max; /* bytes that a file which it writes may have */
	void (*tick)(void *arg); /* several times a second; may be NULL */
	void *arg;
};

void puller_init(struct puller *puller);
/* While the caller still has all of root's rights and the host's network. */
int puller_open(struct puller *puller, const struct config *config, struct err *err) MUSTCHECK;
void puller_close(struct puller *puller);

/* *ret_out: what it printed, malloc'ed. Fails with words for people, ERR_UNAVAILABLE where another try may help. */
int puller_run(struct puller *puller, const struct puller_job *job, char **ret_out, size_t *ret_len,
	struct err *err) MUSTCHECK;

#endif
