/* memory.c - opens the shared memory with the sizes that the settings give it. */
/* SPDX-License-Identifier: MIT */
#include "master/memory.h"

#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "ipc/sandbox_table.h"
#include "ipc/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *
memory_path(const struct config *config)
{
	char *path;

	if (asprintf(&path, "%s/shm", config->run_dir) < 0)
		abort();
	return path;
}

static struct shm_sizes
memory_sizes(const struct config *config)
{
	return (struct shm_sizes){
		.sandboxes = (uint32_t)config->max_sandboxes,
		.jobs = (uint32_t)config->exec_queue_limit,
		.records = (uint32_t)config->job_store_max_records,
		.keys = (uint32_t)config->idempotency_max_records,
		/* One for each sandbox at rest, and one for each command on its way; also where none is shared yet. */
		.lanes = (uint32_t)(config->max_sandboxes + config->exec_queue_limit),
	};
}

static uint32_t
count_living(const struct config *config, const struct master_options *options)
{
	return options->count_living != NULL ? options->count_living(config) : 0;
}

int
memory_check(const struct config *config, const struct master_options *options, struct err *err)
{
	AUTO_FREE char *path = memory_path(config);
	struct shm_sizes sizes = memory_sizes(config);
	const char *obstacle = shm_obstacle(path, &sizes);
	bool is_gone = access(path, F_OK) != 0 && errno == ENOENT;
	uint32_t living;

	if (obstacle == NULL && !is_gone)
		return 0;
	living = count_living(config, options);
	if (living == 0)
		return 0;
	if (!is_gone && !options->discard_sandboxes)
		return err_set(err, ERR_CONFLICT,
			"sandboxes of the server before live (%u), and this one can't take them over: of their "
			"shared "
			"memory %s, %s. Start that version with those settings and delete them, or have them "
			"removed "
			"now: orchardd --discard-sandboxes",
			living, path, obstacle);
	log_warn("sandboxes of the server before live (%u) and are removed: their shared memory %s can't be taken "
		 "over "
		 "(%s)",
		living, path, is_gone ? "it is gone" : obstacle);
	return 0;
}

void
memory_warn(const struct config *config, const struct master_options *options)
{
	struct err err;

	if (memory_check(config, options, &err) < 0)
		log_warn("a restart will be refused: %s", err.msg);
}

/* Of them nobody hears any more, and nobody would ever remove them here. */
static void
forget_foreign(struct shm_sandboxes *table)
{
	uint32_t bound = sandbox_table_bound(table), forgotten = 0;
	struct sandbox_record record;

	for (uint32_t slot = 0; slot < bound; slot++)
		forgotten += sandbox_table_read(table, slot, &record) && sandbox_is_foreign(&record) &&
			sandbox_table_remove(table, slot, record.uid);
	if (forgotten > 0)
		log_info("%u sandboxes of other servers are forgotten, since use_redis is off now", forgotten);
}

int
memory_open(const struct config *config, struct shm **ret_shm, bool *ret_adopted, struct err *err)
{
	AUTO_FREE char *path = memory_path(config);
	struct shm_sizes sizes = memory_sizes(config);

	if (shm_open_or_create(path, &sizes, ret_shm, ret_adopted, err) < 0)
		return -1;
	if (!config->use_redis)
		forget_foreign(shm_sandboxes(*ret_shm));
	log_info(*ret_adopted
			? "shared memory of the server before this one is taken over: its sandboxes and jobs go on"
			: "shared memory is new");
	return 0;
}
