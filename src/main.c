/*
 * main.c - orchardd: arguments, the table of roles, and nothing else.
 *
 * The one file that knows every layer. It runs in the foreground and logs to stderr;
 * a service manager or a container does the rest.
 */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "backend/record_log.h"
#include "base/err.h"
#include "base/fork.h"
#include "base/log.h"
#include "conf/config.h"
#include "controller/controller.h"
#include "gateway/gateway.h"
#include "ipc/shm.h"
#include "master/master.h"
#include "reaper/reaper.h"
#include "spawner/spawner.h"
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_CONFIG ORCHARD_SYSCONFDIR "/orchard.conf"

enum { EXIT_USAGE = 2 };

static const struct master_role roles[] = {
	{ PROC_SPAWNER, spawner_main, 1, "local" },
	{ PROC_CONTROLLER, controller_main, 1, "kubernetes" },
	{ PROC_GATEWAY, gateway_main, 1, NULL },
	{ PROC_WORKER, worker_main, 0, NULL },
	{ PROC_REAPER, reaper_main, 1, NULL },
};

struct arguments {
	const char *config_path; /* NULL: none named */
	bool check;
	bool print;
	bool discard;
};

static void
print_usage(FILE *out)
{
	fputs("usage: orchardd [-c FILE] [-t | --print-config | --discard-sandboxes]\n"
	      "\n"
	      "Serves sandboxes over a REST API. Runs in the foreground and logs to stderr.\n"
	      "\n"
	      "  -c, --config FILE   configuration; default " DEFAULT_CONFIG "\n"
	      "  -t, --test          check the configuration and this host, then exit 0 or 1\n"
	      "      --print-config  every setting with its value, default and meaning\n"
	      "      --discard-sandboxes\n"
	      "                      start although sandboxes live that can't be taken over, and remove them\n"
	      "  -V, --version       print the version\n"
	      "  -h, --help          print this text\n"
	      "\n"
	      "Each setting can also be given by environment, in capitals: PORT=8001 orchardd\n"
	      "Signals: HUP reads the configuration again, TERM finishes open work, INT leaves at once.\n",
		out);
}

/* Returns -1 to go on, else the exit status. */
static int
parse_arguments(int argc, char **argv, struct arguments *ret_arguments)
{
	enum { OPT_PRINT = 256, OPT_DISCARD };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "test", no_argument, NULL, 't' },
		{ "print-config", no_argument, NULL, OPT_PRINT },
		{ "discard-sandboxes", no_argument, NULL, OPT_DISCARD },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "c:tVh", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			ret_arguments->config_path = optarg;
			break;
		case 't':
			ret_arguments->check = true;
			break;
		case OPT_PRINT:
			ret_arguments->print = true;
			break;
		case OPT_DISCARD:
			ret_arguments->discard = true;
			break;
		case 'V':
			puts(PACKAGE_STRING);
			return 0;
		case 'h':
			print_usage(stdout);
			return 0;
		default:
			print_usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "orchardd: what is \"%s\"?\n", argv[optind]);
		print_usage(stderr);
		return EXIT_USAGE;
	}
	return -1;
}

/* A file that is named must be there; the default one may be missing. */
static const char *
find_config(const struct arguments *arguments)
{
	if (arguments->config_path != NULL)
		return arguments->config_path;
	if (access(DEFAULT_CONFIG, F_OK) == 0 || errno != ENOENT)
		return DEFAULT_CONFIG;
	log_info("there is no " DEFAULT_CONFIG ": running with defaults and the environment");
	return NULL;
}

static int
rebuild(const struct config *config, const char *name, bool keep, struct shm_index *index, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	struct record_log_options options = { .keep = keep };
	struct record_log *log;
	int rc;

	if (asprintf(&dir, "%s/%s", config->state_dir, name) < 0)
		return err_set(err, ERR_INTERNAL, "out of memory");
	options.dir = dir;
	if (record_log_open(&options, index, &log, err) < 0)
		return -1;
	rc = record_log_rebuild(log, err);
	record_log_close(log);
	return rc;
}

/* Shared memory is new: what ended jobs left on disk is found again, and what Idempotency-Keys stand for. */
static int
prepare(const struct config *config, struct shm *shm, bool adopted, struct err *err)
{
	if (adopted)
		return 0;
	if (rebuild(config, "jobs", false, shm_index(shm), err) < 0)
		return -1;
	return rebuild(config, "keys", true, shm_keys(shm), err);
}

/*
 * Whoever started us decides nothing by what we inherit: an ignored SIGCHLD would hide the death of children, a strict
 * umask would close directories that others must pass.
 */
static void
forget_inherited_habits(void)
{
	struct sigaction action;

	for (int sig = 1; sig < NSIG; sig++)
		if (sigaction(sig, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			(void)signal(sig, SIG_DFL);
	umask(022);
}

/* After the configuration, which may be one of them: /dev/fd/N. Else they would stay open for as long as we live. */
static void
close_inherited_files(void)
{
	int standard[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };

	fork_keep_only(standard, sizeof standard / sizeof *standard);
}

/* So that no socket of ours ever gets the number of a closed standard stream. */
static void
open_standard_streams(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO)
		;
	if (fd >= 0)
		close(fd);
}

static int
check_only(const struct master_options *options)
{
	const struct config *config = options->config;
	struct err err;

	if (master_check(options, &err) < 0) {
		fprintf(stderr, "orchardd: %s\n", err.msg);
		return MASTER_EXIT_FAILED;
	}
	fprintf(stderr, "orchardd: %s is fine\n", config->path != NULL ? config->path : "the configuration");
	return MASTER_EXIT_OK;
}

int
main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct master_options options = {
		.roles = roles,
		.role_count = sizeof roles / sizeof *roles,
		.check = controller_check,
		.prepare = prepare,
		.count_living = spawner_count_living,
	};
	struct err err;
	int status;

	forget_inherited_habits();
	open_standard_streams();
	log_never_block();
	log_init("master", LOG_LEVEL_INFO);
	status = parse_arguments(argc, argv, &arguments);
	if (status >= 0)
		return status;
	options.discard_sandboxes = arguments.discard;
	options.config_path = find_config(&arguments);
	if (config_load(options.config_path, &options.config, &err) < 0) {
		fprintf(stderr, "orchardd: %s\n", err.msg);
		return MASTER_EXIT_FAILED;
	}
	close_inherited_files();
	if (!arguments.print && !arguments.check)
		return master_run(&options);
	if (arguments.print)
		config_print(options.config, stdout);
	status = arguments.check ? check_only(&options) : MASTER_EXIT_OK;
	config_free(options.config);
	return status;
}
