/* bed.h - a real spawner in a process of its own, its directories below /tmp, and a client that speaks to it. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_SPAWNER_BED_H
#define ORCHARD_TESTS_SPAWNER_BED_H

#include "base/cleanup.h"
#include "base/id.h"
#include "ipc/spawn_msg.h"

#include <stdbool.h>
#include <sys/types.h>

struct bed {
	char dir[64]; /* state/, run/, images/ */
	char image[128]; /* a dir: image with busybox */
	struct config *config;
	pid_t spawner;
	int fd; /* connected to it */
	uint64_t seq;
};

/* Exits 77 with a loud message where sandboxes can't be made at all (not root). */
void bed_require_root(void);
void bed_open(struct bed *bed);
/* Before bed_start_spawner: another value of a setting, by its name in the environment; until the next bed_open. */
void bed_set(struct bed *bed, const char *name, const char *value);
void bed_close(struct bed *bed);
void bed_start_spawner(struct bed *bed); /* waits until it is ready, connects */
void bed_stop_spawner(struct bed *bed, int signal);
int bed_connect(struct bed *bed);

struct bed_box {
	char id[64];
	char uid[ID_UUID_SIZE];
	char token[ID_TOKEN_SIZE];
	struct spawn_reply made;
};
/* A request with small limits, ready to be changed and sent. */
void bed_fill_create(struct bed *bed, struct spawn_create *create, struct bed_box *box);
void bed_send(int fd, const void *data, size_t len);
/* The next packet of that op for seq (progress and others are skipped). */
void bed_receive(int fd, uint32_t op, uint64_t seq, void *packet, size_t len);
/* Returns the code of the answer; *ret_reply may be NULL. */
int bed_create(struct bed *bed, struct spawn_create *create, struct spawn_reply *ret_reply);
int bed_make(struct bed *bed, struct bed_box *box);
int bed_destroy(struct bed *bed, const struct bed_box *box);
/* Whether LIST has that uid, and its item. */
bool bed_find(struct bed *bed, const char *uid, struct spawn_item *ret_item);
unsigned bed_count(struct bed *bed); /* how many LIST has */

/* Runs a shell command in it by its agent; stdout and stderr in out, returns the exit code (-1: no answer). */
int bed_exec(const struct bed_box *box, const char *command, char *out, size_t size);
/* Asserts that the command prints exactly that. */
void bed_expect(const struct bed_box *box, const char *command, const char *output);

/* Nothing is left of it: no process, cgroup, directory, socket. */
void bed_assert_gone(const struct bed *bed, const struct bed_box *box, pid_t pid);
int run_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
