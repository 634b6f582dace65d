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
#include "base/log.h"
#include "conf/config.h"
#include "ipc/shm.h"
#include "master/master.h"
#include "reaper/reaper.h"
#include "spawner/spawner.h"
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_CONFIG ORCHARD_SYSCONFDIR "/orchard.conf"

enum { EXIT_USAGE = 2 };

static const struct master_role roles[] = {
	{ PROC_SPAWNER, spawner_main, 1 },
	{ PROC_WORKER, worker_main, 0 },
	{ PROC_REAPER, reaper_main, 1 },
};

struct arguments {
	const char *config_path; /* NULL: none named */
	bool check;
	bool print;
};

static void
print_usage(FILE *out)
{
	fputs("usage: orchardd [-c FILE] [-t | --print-config]\n"
	      "\n"
	      "Serves sandboxes over a REST API. Runs in the foreground and logs to stderr.\n"
	      "\n"
	      "  -c, --config FILE   configuration; default " DEFAULT_CONFIG "\n"
	      "  -t, --test          check the configuration and this host, then exit 0 or 1\n"
	      "      --print-config  every setting with its value, default and meaning\n"
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
	enum { OPT_PRINT = 256 };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "test", no_argument, NULL, 't' },
		{ "print-config", no_argument, NULL, OPT_PRINT },
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

/* Shared memory is new: what ended jobs left on disk is found again. */
static int
prepare(const struct config *config, struct shm *shm, bool adopted, struct err *err)
{
	AUTO_FREE char *dir = NULL;
	struct record_log_options options = { .max_bytes = config->job_store_max_bytes };
	struct record_log *log;
	int rc;

	if (adopted)
		return 0;
	if (asprintf(&dir, "%s/jobs", config->state_dir) < 0)
		return err_set(err, ERR_INTERNAL, "out of memory");
	options.dir = dir;
	if (record_log_open(&options, shm_index(shm), &log, err) < 0)
		return -1;
	rc = record_log_rebuild(log, err);
	record_log_close(log);
	return rc;
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
check_only(const struct config *config)
{
	struct err err;

	if (master_check(config, &err) < 0) {
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
		.roles = roles, .role_count = sizeof roles / sizeof *roles, .prepare = prepare
	};
	struct err err;
	int status;

	open_standard_streams();
	log_init("master", LOG_LEVEL_INFO);
	status = parse_arguments(argc, argv, &arguments);
	if (status >= 0)
		return status;
	options.config_path = find_config(&arguments);
	if (config_load(options.config_path, &options.config, &err) < 0) {
		fprintf(stderr, "orchardd: %s\n", err.msg);
		return MASTER_EXIT_FAILED;
	}
	if (!arguments.print && !arguments.check)
		return master_run(&options);
	if (arguments.print)
		config_print(options.config, stdout);
	status = arguments.check ? check_only(options.config) : MASTER_EXIT_OK;
	config_free(options.config);
	return status;
}
