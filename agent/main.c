/*
 * main.c - orchard-agent: PID 1 of a sandbox.
 *
 * Order matters: signals are blocked first, inherited descriptors are hidden
 * next, then the configuration is read and its descriptor closed, and only then
 * is anything served.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/command.h"
#include "agent/config.h"
#include "agent/init.h"
#include "agent/listen.h"
#include "agent/server.h"
#include "agent/spawn.h"
#include "agent/tree.h"
#include "agent/workdir.h"
#include "base/err.h"
#include "base/log.h"

#include <config.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

enum { AGENT_BIG_ALLOCATION = 64 << 10 };

struct agent {
	struct event_base *base;
	struct agent_config config;
	struct spawn_ground ground;
	struct init *init;
	struct tree_keeper *keeper;
	struct command_set *commands;
	struct server *server;
	bool orphans;
};

struct agent_options {
	const char *listen, *config;
	int listen_fd, config_fd;
};

static const char agent_usage[] =
	"usage: orchard-agent (--listen-fd N | --listen ADDRESS:PORT) (--config-fd N | --config FILE)\n"
	"\n"
	"Runs commands in a sandbox, as its PID 1. See docs/agent-protocol.md.\n"
	"  --listen-fd N          serve on this inherited listening socket\n"
	"  --listen ADDRESS:PORT  serve on TCP; IPv6 addresses in brackets\n"
	"  --config-fd N          read the configuration from this descriptor\n"
	"  --config FILE          read the configuration from this file\n"
	"  --version, --help\n";

static void
agent_on_exit(pid_t pid, int status, const struct rusage *usage, void *arg)
{
	struct agent *agent = arg;

	if (!command_set_on_exit(agent->commands, pid, status, usage))
		agent->orphans = true;
}

static void
agent_on_reaped(void *arg)
{
	struct agent *agent = arg;

	if (agent->orphans)
		tree_keeper_on_orphans(agent->keeper);
	agent->orphans = false;
}

static void
agent_on_done(void *arg)
{
	struct agent *agent = arg;

	event_base_loopbreak(agent->base);
}

static void
agent_on_term(void *arg)
{
	struct agent *agent = arg;

	server_stop(agent->server);
	init_shut_down(agent->init, agent_on_done, agent);
}

static void
agent_on_job_end(struct job *job, void *arg)
{
	struct agent *agent = arg;

	server_on_job_end(agent->server, job);
}

static int
agent_read_config(const struct agent_options *options, struct agent_config *config, struct err *err)
{
	int fd = options->config_fd;
	int rc;

	if (fd < 0)
		fd = open(options->config, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "open %s", options->config);
	rc = agent_config_read(fd, config, err);
	close(fd);
	return rc;
}

static int
agent_start(struct agent *agent, const struct agent_options *options, struct err *err)
{
	struct init_options init = {
		.on_exit = agent_on_exit,
		.on_reaped = agent_on_reaped,
		.on_term = agent_on_term,
		.arg = agent,
	};
	struct command_set_options commands = { .on_end = agent_on_job_end, .arg = agent };
	int listen_fd;

	spawn_ground_init(&agent->ground);
	if (agent_read_config(options, &agent->config, err) < 0)
		return -1;
	if (workdir_make(agent->config.working_dir, agent->config.user, err) < 0)
		log_warn("%s", err->msg);
	agent->base = event_base_new();
	if (agent->base == NULL)
		return err_set(err, ERR_INTERNAL, "cannot make an event loop");
	init.base = agent->base;
	if (init_create(&init, &agent->init, err) < 0)
		return -1;
	agent->keeper = tree_keeper_create(agent->base, agent->config.cgroup_fd, agent->ground.proc_fd);
	commands.base = agent->base;
	commands.config = &agent->config;
	commands.ground = &agent->ground;
	commands.keeper = agent->keeper;
	agent->commands = command_set_create(&commands);
	listen_fd = listen_open(options->listen_fd, options->listen, err);
	if (listen_fd < 0)
		return -1;
	if (server_create(agent->base, listen_fd, &agent->config, &agent->server, err) < 0)
		return -1;
	server_set_commands(agent->server, agent->commands);
	return 0;
}

/* 0, or the exit status plus one. */
static int
agent_parse(int argc, char **argv, struct agent_options *options)
{
	static const struct option known[] = {
		{ "listen-fd", required_argument, NULL, 'l' },
		{ "listen", required_argument, NULL, 'a' },
		{ "config-fd", required_argument, NULL, 'c' },
		{ "config", required_argument, NULL, 'f' },
		{ "version", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'l':
			options->listen_fd = atoi(optarg);
			break;
		case 'a':
			options->listen = optarg;
			break;
		case 'c':
			options->config_fd = atoi(optarg);
			break;
		case 'f':
			options->config = optarg;
			break;
		case 'v':
			puts("orchard-agent " PACKAGE_VERSION);
			return 1;
		case 'h':
			fputs(agent_usage, stdout);
			return 1;
		default:
			fputs(agent_usage, stderr);
			return 3;
		}
	}
	if (optind == argc && (options->listen_fd >= 3 || options->listen != NULL) &&
		(options->config_fd >= 0 || options->config != NULL))
		return 0;
	fputs(agent_usage, stderr);
	return 3;
}

int
main(int argc, char **argv)
{
	static struct agent agent;
	struct agent_options options = { .listen_fd = -1, .config_fd = -1 };
	struct err err;
	int status = agent_parse(argc, argv, &options);

	if (status != 0)
		return status - 1;
	init_early();
	log_init("agent", LOG_LEVEL_INFO);
	mallopt(M_MMAP_THRESHOLD, AGENT_BIG_ALLOCATION);
	mallopt(M_TRIM_THRESHOLD, AGENT_BIG_ALLOCATION);
	if (agent_start(&agent, &options, &err) < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	event_base_dispatch(agent.base);
	command_set_free(agent.commands);
	return 0;
}
