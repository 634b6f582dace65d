/* journal.c - jobs by age and by id, and a ring of the ids that were dropped. */
/* SPDX-License-Identifier: MIT */
#include "agent/journal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "agent/archive.h"
#include "agent/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { JOURNAL_BUCKETS = 256 };

LIST_HEAD(job_list, job);

/* An id that is not run again. Zero-filled memory says "none" everywhere: `next` is a slot's number + 1. */
struct dropped {
	uint8_t id[16];
	uint16_t next; /* in its bucket */
	bool used;
};

_Static_assert(JOURNAL_FORGOTTEN_IDS < UINT16_MAX, "a slot's number + 1 fits");

struct journal {
	int64_t began_ms;
	size_t max_jobs, jobs;
	int64_t max_bytes, bytes; /* bytes: outputs of ended jobs */
	TAILQ_HEAD(, job) by_age;
	struct job_list by_id[JOURNAL_BUCKETS];
	struct dropped *dropped; /* a ring that grows into its size page by page */
	size_t dropped_next;
	uint16_t dropped_by_id[JOURNAL_BUCKETS];
	struct archive *archive;
};

struct journal *
journal_create(int64_t max_jobs, int64_t max_bytes, struct archive *archive)
{
	struct journal *journal = alloc_zero(1, sizeof *journal);

	journal->began_ms = clock_boot_ms();
	journal->max_jobs = (size_t)max_jobs;
	journal->max_bytes = max_bytes;
	journal->archive = archive;
	journal->dropped = alloc_zero(JOURNAL_FORGOTTEN_IDS, sizeof *journal->dropped);
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
		if (job->archive == NULL)
			job_free(job);
		else
			job->forgotten = true;
	}
	free(journal->dropped);
	free(journal);
}

static void
journal_unlist(struct journal *journal, size_t slot)
{
	uint16_t *link = &journal->dropped_by_id[journal->dropped[slot].id[0]];

	while (*link != slot + 1)
		link = &journal->dropped[*link - 1].next;
	*link = journal->dropped[slot].next;
}

void
journal_bar(struct journal *journal, const uint8_t id[16])
{
	size_t slot = journal->dropped_next;
	struct dropped *dropped = &journal->dropped[slot];

	if (journal_is_forgotten(journal, id))
		return;
	if (dropped->used)
		journal_unlist(journal, slot);
	memcpy(dropped->id, id, sizeof dropped->id);
	dropped->used = true;
	dropped->next = journal->dropped_by_id[id[0]];
	journal->dropped_by_id[id[0]] = (uint16_t)(slot + 1);
	journal->dropped_next = (slot + 1) % JOURNAL_FORGOTTEN_IDS;
}

static void
journal_forget(struct journal *journal, struct job *job)
{
	journal_bar(journal, job->id_bytes);
	TAILQ_REMOVE(&journal->by_age, job, by_age);
	LIST_REMOVE(job, by_id);
	journal->jobs--;
	journal->bytes -= (int64_t)job_held(job);
	if (job->archive == NULL || !archive_take(job->archive, job))
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

struct job *
journal_find_output(const struct journal *journal, const uint8_t id[16])
{
	struct job *job = journal_find(journal, id);

	return job == NULL && journal->archive != NULL ? archive_find(journal->archive, id) : job;
}

void
journal_on_end(struct journal *journal, struct job *job)
{
	journal->bytes += (int64_t)job_held(job);
	if (journal->archive != NULL)
		archive_add(journal->archive, job);
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
	const struct dropped *dropped;

	for (uint16_t at = journal->dropped_by_id[id[0]]; at != 0; at = dropped->next) {
		dropped = &journal->dropped[at - 1];
		if (memcmp(dropped->id, id, sizeof dropped->id) == 0)
			return true;
	}
	return false;
}

int64_t
journal_age_ms(const struct journal *journal)
{
	return clock_boot_ms() - journal->began_ms;
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
