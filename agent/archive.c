/* archive.c - one list in the order in which the jobs ended; it is short. */
/* SPDX-License-Identifier: MIT */
#include "agent/archive.h"

#include "base/alloc.h"
#include "agent/job.h"
#include "agent/spool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct archive {
	struct spool_store *store;
	TAILQ_HEAD(, job) by_end;
	size_t count;
	const struct job *moving; /* makes room for itself: not by giving way */
};

static void
archive_remove(struct archive *archive, struct job *job)
{
	TAILQ_REMOVE(&archive->by_end, job, by_end);
	archive->count--;
	job->archive = NULL;
	output_drop_spool(&job->out);
	output_drop_spool(&job->err);
	if (job->forgotten)
		job_free(job);
}

static bool
archive_evict(void *arg)
{
	struct archive *archive = arg;
	struct job *job = TAILQ_FIRST(&archive->by_end);

	if (job != NULL && job == archive->moving)
		job = TAILQ_NEXT(job, by_end);
	if (job == NULL)
		return false;
	archive_remove(archive, job);
	return true;
}

struct archive *
archive_create(const struct archive_options *options)
{
	struct archive *archive = alloc_zero(1, sizeof *archive);
	struct spool_store_options store = {
		.dir_fd = options->dir_fd,
		.working_dir = options->working_dir,
		.max_bytes = (uint64_t)options->max_bytes,
		.evict = archive_evict,
		.arg = archive,
	};

	TAILQ_INIT(&archive->by_end);
	archive->store = spool_store_create(&store);
	return archive;
}

void
archive_free(struct archive *archive)
{
	while (archive_evict(archive))
		;
	spool_store_free(archive->store);
	free(archive);
}

struct spool_store *
archive_store(struct archive *archive)
{
	return archive->store;
}

void
archive_add(struct archive *archive, struct job *job)
{
	if (job->out.spool == NULL && job->err.spool == NULL)
		return;
	if (archive->count == ARCHIVE_MAX_JOBS)
		archive_evict(archive);
	TAILQ_INSERT_TAIL(&archive->by_end, job, by_end);
	archive->count++;
	job->archive = archive;
}

bool
archive_take(struct archive *archive, struct job *job)
{
	if (job->archive == NULL)
		return false;
	archive->moving = job;
	job_leave_memory(job, archive->store);
	archive->moving = NULL;
	job->forgotten = true;
	return true;
}

struct job *
archive_find(const struct archive *archive, const uint8_t id[16])
{
	struct job *job;

	TAILQ_FOREACH(job, &archive->by_end, by_end)
	if (job->forgotten && memcmp(job->id_bytes, id, sizeof job->id_bytes) == 0)
		return job;
	return NULL;
}

size_t
archive_jobs(const struct archive *archive)
{
	return archive->count;
}
