/* journal.c - jobs by age and by id, and a ring of the ids that were dropped. */
/* SPDX-License-Identifier: MIT */
#include "agent/journal.h"

#include "base/alloc.h"
#include "agent/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { JOURNAL_BUCKETS = 256 };

LIST_HEAD(job_list, job);

struct journal {
	size_t max_jobs, jobs;
	int64_t max_bytes, bytes; /* bytes: outputs of ended jobs */
	TAILQ_HEAD(, job) by_age;
	struct job_list by_id[JOURNAL_BUCKETS];
	uint8_t (*forgotten)[16]; /* grows into its size page by page */
	size_t forgotten_count, forgotten_next;
};

struct journal *
journal_create(int64_t max_jobs, int64_t max_bytes)
{
	struct journal *journal = alloc_zero(1, sizeof *journal);

	journal->max_jobs = (size_t)max_jobs;
	journal->max_bytes = max_bytes;
	journal->forgotten = alloc_zero(JOURNAL_FORGOTTEN_IDS, sizeof *journal->forgotten);
	TAILQ_INIT(&journal->by_age);
	for (size_t i = 0; i < JOURNAL_BUCKETS; i++)
		LIST_INIT(&journal->by_id[i]);
	return journal;
}

void
journal_free(struct journal *journal)
{
	struct job *job;

	while ((job = TAILQ_FIRST(&journal->by_age)) != NULL) {
		TAILQ_REMOVE(&journal->by_age, job, by_age);
		job_free(job);
	}
	free(journal->forgotten);
	free(journal);
}

static void
journal_forget(struct journal *journal, struct job *job)
{
	memcpy(journal->forgotten[journal->forgotten_next], job->id_bytes, sizeof job->id_bytes);
	journal->forgotten_next = (journal->forgotten_next + 1) % JOURNAL_FORGOTTEN_IDS;
	if (journal->forgotten_count < JOURNAL_FORGOTTEN_IDS)
		journal->forgotten_count++;
	TAILQ_REMOVE(&journal->by_age, job, by_age);
	LIST_REMOVE(job, by_id);
	journal->jobs--;
	journal->bytes -= (int64_t)job_held(job);
	job_free(job);
}

static bool
journal_has_room(const struct journal *journal)
{
	return journal->jobs < journal->max_jobs && journal->bytes < journal->max_bytes;
}

bool
journal_make_room(struct journal *journal, int64_t now_boot_ms)
{
	struct job *job = TAILQ_FIRST(&journal->by_age);

	while (!journal_has_room(journal) && job != NULL) {
		struct job *next = TAILQ_NEXT(job, by_age);

		if (job->ended && now_boot_ms - job->ended_boot_ms > JOURNAL_STALE_MS)
			journal_forget(journal, job);
		job = next;
	}
	return journal_has_room(journal);
}

void
journal_add(struct journal *journal, struct job *job)
{
	TAILQ_INSERT_TAIL(&journal->by_age, job, by_age);
	LIST_INSERT_HEAD(&journal->by_id[job->id_bytes[0]], job, by_id);
	journal->jobs++;
}

struct job *
journal_find(const struct journal *journal, const uint8_t id[16])
{
	struct job *job;

	LIST_FOREACH(job, &journal->by_id[id[0]], by_id)
	if (memcmp(job->id_bytes, id, sizeof job->id_bytes) == 0)
		return job;
	return NULL;
}

void
journal_on_end(struct journal *journal, struct job *job)
{
	journal->bytes += (int64_t)job_held(job);
}

void
journal_ack(struct journal *journal, const uint8_t id[16])
{
	struct job *job = journal_find(journal, id);

	if (job != NULL && job->ended)
		journal_forget(journal, job);
}

bool
journal_is_forgotten(const struct journal *journal, const uint8_t id[16])
{
	for (size_t i = 0; i < journal->forgotten_count; i++)
		if (memcmp(journal->forgotten[i], id, 16) == 0)
			return true;
	return false;
}

size_t
journal_jobs(const struct journal *journal)
{
	return journal->jobs;
}

int64_t
journal_bytes(const struct journal *journal)
{
	return journal->bytes;
}

struct job *
journal_first(const struct journal *journal)
{
	return TAILQ_FIRST(&journal->by_age);
}

struct job *
journal_next(const struct job *job)
{
	return TAILQ_NEXT(job, by_age);
}
