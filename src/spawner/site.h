/*
 * site.h - what all sandboxes of this host share, opened once at start.
 *
 * Directories are held by descriptor: whoever owns a parent directory can move
 * names about, but not make the spawner work in another place. Helpers inherit
 * the whole struct by fork.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_SITE_H
#define ORCHARD_SPAWNER_SITE_H

#include "base/cleanup.h"
#include "spawner/cgroup/cgroup.h"
#include "spawner/disk/disk.h"
#include "network/net.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct err;
struct maker;
struct runtime;

enum { SITE_IDS = 65536 };

struct site {
	const struct config *config;
	const struct maker *maker;
	struct runtime *runtime; /* owned; of the maker */
	uid_t user; /* the service user: owns the sockets, may connect */
	gid_t group;
	int sandboxes_fd; /* state_dir/sandboxes */
	int trash_fd; /* state_dir/trash */
	int images_fd; /* state_dir/images */
	int sockets_fd; /* run_dir/sandboxes */
	int runtimes_fd; /* run_dir/runtime */
	int memory_fd; /* run_dir/spawner: what a later spawner is to know until the next boot */
	int pieces_fd; /* a tmpfs of our own with the dev/ of every sandbox */
	int agent_fd; /* the agent's program, sealed; -1: could not be read */
	int null_fd;
	struct net net;
	struct sock_fprog filter; /* empty: none */
	uint64_t capabilities; /* of commands */
	bool agent_clones; /* sandboxes can make no namespaces at all, so their agents get clone3, to start commands by it */
	struct cgroup_host cgroup;
	struct disk_host disk;
	char boot_id[37];
	char agent_problem[256]; /* why agent_fd is -1 */
};

/* Makes the directories, a mount namespace of our own and the shared pieces. */
int site_open(struct site *site, const struct config *config, struct err *err) MUSTCHECK;
void site_close(struct site *site);
/*
 * Makes those of its directories anew that somebody has removed, for this process: each one has descriptors of its
 * own. What was in them is lost.
 */
void site_keep_dirs(const struct site *site);

/* First host id of the range number slot. */
static inline uid_t
site_first_id(int64_t idmap_base, uint32_t slot)
{
	return (uid_t)(idmap_base + (int64_t)slot * SITE_IDS);
}

#endif
