/*
 * command.h - one command from its start to its end.
 *
 * It ends when its leader process ends; what it wrote until then is complete,
 * what background processes write later is drained and dropped. Where the output waits for
 * a reader, so does the end, up to the timeout. Timeout and
 * cancel end the whole tree: TERM, the grace, KILL until nothing of it is left.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_COMMAND_H
#define ORCHARD_AGENT_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct agent_config;
struct command_set;
struct event_base;
struct exec_request;
struct job;
struct rusage;
struct spawn_ground;
struct tree_keeper;

struct command_set_options {
	struct event_base *base;
	const struct agent_config *config;
	const struct spawn_ground *ground;
	struct tree_keeper *keeper;
	/* The job's result is filled in; call job_end(). */
	void (*on_end)(struct job *job, void *arg);
	void *arg;
};

struct command_set *command_set_create(const struct command_set_options *options);
/* The sandbox is being ended: nothing that has not begun begins any more. */
void command_set_stop(struct command_set *set);
/* What still runs is killed and never reported. */
void command_set_free(struct command_set *set);
/* The request is not needed afterwards. on_end may be called before this returns (it could not start). */
void command_start(struct command_set *set, struct job *job, const struct exec_request *request);
/* Nothing happens when it is being ended already. */
void command_cancel(struct job *job);
/* More was written than the sandbox may: ends all that runs. */
void command_set_on_disk_full(struct command_set *set);
/* A child of ours has been waited for; true when it was the leader of a command. */
bool command_set_on_exit(struct command_set *set, pid_t pid, int status, const struct rusage *usage);

#endif
