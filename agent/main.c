/*
 * main.c - orchard-agent: PID 1 of a sandbox.
 *
 * Order matters: signals are blocked first, inherited descriptors are hidden
 * next, then the configuration is read and its descriptor closed, and only then
 * is anything served.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/ambient.h"
#include "agent/command.h"
#include "agent/config.h"
#include "agent/disk.h"
#include "agent/files/helper.h"
#include "agent/init.h"
#include "agent/install.h"
#include "agent/listen.h"
#include "agent/patch/patch.h"
#include "agent/server.h"
#include "agent/spawn.h"
#include "agent/terminal/terminal_set.h"
#include "agent/terminal/terminals.h"
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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * How it ends when it is told to: as a program does that TERM kills. A container that ends with 0 has succeeded, and kubelet
 * then no longer tells that it had evicted it.
 */
enum { AGENT_TERMINATED = 128 + SIGTERM };
enum { AGENT_BIG_ALLOCATION = 64 << 10 };

struct agent {
	struct event_base *base;
	struct agent_config config;
	struct spawn_ground ground;
	struct init *init;
	struct tree_keeper *keeper;
	struct command_set *commands;
	struct helper_set *helpers;
	struct terminals *terminals;
	struct server *server;
	bool orphans;
};

struct agent_options {
	const char *listen, *config, *install;
	const char *tree; /* of install; NULL: this program */
	int listen_fd, config_fd;
};

static const char agent_usage[] =
	"usage: orchard-agent [--listen-fd N | --listen ADDRESS:PORT] [--config-fd N | --config FILE]\n"
	"       orchard-agent --install DIRECTORY [TREE]\n"
	"\n"
	"Runs commands in a sandbox, as its PID 1. See docs/agent-protocol.md.\n"
	"  --listen-fd N          serve on this inherited listening socket\n"
	"  --listen ADDRESS:PORT  serve on TCP; IPv6 addresses in brackets; default: what the configuration says\n"
	"  --config-fd N          read the configuration from this descriptor\n"
	"  --config FILE          read the configuration from this file; default: " AMBIENT_CONFIG
	" of the environment\n"
	"  --install DIRECTORY    copy this program there or, if it is given, what is in TREE, and end\n"
	"  --version, --help\n";

static void
agent_on_exit(pid_t pid, int status, const struct rusage *usage, void *arg)
{
	struct agent *agent = arg;

	if (!command_set_on_exit(agent->commands, pid, status, usage) &&
		!helper_set_on_exit(agent->helpers, pid, status) &&
		!terminals_on_exit(agent->terminals, pid, status, usage))
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
	command_set_stop(agent->commands);
	helper_set_stop(agent->helpers);
	terminals_stop(agent->terminals);
	init_shut_down(agent->init, agent_on_done, agent);
}

static void
agent_on_job_end(struct job *job, void *arg)
{
	struct agent *agent = arg;

	server_on_job_end(agent->server, job);
}

static void
agent_on_disk_over(void *arg)
{
	struct agent *agent = arg;

	terminals_on_disk_full(agent->terminals);
	command_set_on_disk_full(agent->commands);
	helper_set_on_disk_full(agent->helpers);
}

static void
agent_make_terminals(struct agent *agent)
{
	struct terminal_set_options options = {
		.base = agent->base,
		.config = &agent->config,
		.ground = &agent->ground,
		.keeper = agent->keeper,
	};

	agent->terminals = terminals_create(&options);
}

static int
agent_read_config(const struct agent_options *options, struct agent_config *config, struct err *err)
{
	int fd = options->config_fd;
	int rc;

	if (fd < 0 && options->config == NULL)
		return agent_config_take(config, err);
	if (fd < 0)
		fd = open(options->config, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, errno, "open %s", options->config);
	rc = agent_config_read(fd, config, err);
	close(fd);
	return rc;
}

/* What is said when it is started comes before what the configuration says. */
static int
agent_listen(const struct agent *agent, const struct agent_options *options, struct err *err)
{
	const char *address = options->listen;

	if (options->listen_fd < 0 && address == NULL && agent->config.listen[0] != '\0')
		address = agent->config.listen + strlen("tcp:");
	if (options->listen_fd < 0 && address == NULL)
		return err_set(err, ERR_INVALID, "neither the options nor the configuration say where to listen");
	return listen_open(options->listen_fd, address, err);
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
	if (agent_read_config(options, &agent->config, err) < 0 ||
		init_limit_commands(agent->config.capabilities, err) < 0)
		return -1;
	agent->ground.deny_clone3 = agent->config.deny_clone3;
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
	agent->helpers = helper_set_create(&(struct helper_set_options){
		.base = agent->base,
		.config = &agent->config,
		.ground = &agent->ground,
	});
	agent_make_terminals(agent);
	disk_listen(agent->base, agent->config.disk_fd, agent_on_disk_over, agent);
	listen_fd = agent_listen(agent, options, err);
	if (listen_fd < 0)
		return -1;
	if (server_create(agent->base, listen_fd, &agent->config, &agent->server, err) < 0)
		return -1;
	server_set_commands(agent->server, agent->commands, agent->helpers);
	server_set_terminals(agent->server, agent->terminals);
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
		{ "install", required_argument, NULL, 'i' },
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
		case 'i':
			options->install = optarg;
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
	if (options->install != NULL && optind + 1 == argc)
		options->tree = argv[optind++];
	if (optind == argc && (options->listen_fd >= 3 || options->listen_fd == -1) &&
		(options->install != NULL || options->config_fd >= 0 || options->config != NULL ||
			getenv(AMBIENT_CONFIG) != NULL))
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
	int status;

	if (argc == 2 && strcmp(argv[1], PATCH_OPTION) == 0)
		return patch_main();
	status = agent_parse(argc, argv, &options);
	if (status != 0)
		return status - 1;
	if (options.install != NULL)
		return install_main(options.install, options.tree);
	init_early();
	setenv("TZ", "UTC0",
		1); /* no time zone file of the image is read, nor waited for; commands have their own */
	log_init("agent", LOG_LEVEL_INFO);
	mallopt(M_MMAP_THRESHOLD, AGENT_BIG_ALLOCATION);
	mallopt(M_TRIM_THRESHOLD, AGENT_BIG_ALLOCATION);
	if (agent_start(&agent, &options, &err) < 0) {
		log_error("%s", err.msg);
		return 1;
	}
	event_base_dispatch(agent.base);
	helper_set_free(agent.helpers);
	terminals_free(agent.terminals);
	command_set_free(agent.commands);
	return AGENT_TERMINATED;
}
