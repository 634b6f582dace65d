/*
 * journal.h - every job that must not run twice, bounded.
 *
 * A running job and one that ended without being acknowledged stay; an
 * acknowledged one is dropped, but its id is remembered in a ring, so that a
 * retry that comes too late is refused and not run. When the journal is full of
 * what nobody acknowledged, new jobs are refused; only what ended more than an
 * hour ago gives way. Output in spools outlives that in the archive.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_JOURNAL_H
#define ORCHARD_AGENT_JOURNAL_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive;
struct job;
struct journal;

enum { JOURNAL_FORGOTTEN_IDS = 4096, JOURNAL_STALE_MS = 3600 * 1000 };

/* archive: where jobs with spools go; stays the caller's; NULL: nowhere. */
struct journal *journal_create(int64_t max_jobs, int64_t max_bytes, struct archive *archive);
void journal_free(struct journal *journal); /* and its jobs */

/* Makes room for one more; false when there is none. */
bool journal_make_room(struct journal *journal, int64_t now_boot_ms) MUSTCHECK;
void journal_add(struct journal *journal, struct job *job);
struct job *journal_find(const struct journal *journal, const uint8_t id[16]); /* NULL: none */
/* That job, or what the archive has of it. */
struct job *journal_find_output(const struct journal *journal, const uint8_t id[16]);
/* To be called once when a job has ended: its outputs count from then on. */
void journal_on_end(struct journal *journal, struct job *job);
/* Forgets an ended job; a running or unknown one stays as it is. */
void journal_ack(struct journal *journal, const uint8_t id[16]);
/* An id that never came will not be run when it comes. */
void journal_bar(struct journal *journal, const uint8_t id[16]);
/* It was here and was dropped, or it was barred. */
bool journal_is_forgotten(const struct journal *journal, const uint8_t id[16]);

/* A request that was sent longer ago went to another agent, whose jobs nobody knows. */
int64_t journal_age_ms(const struct journal *journal);
size_t journal_jobs(const struct journal *journal);
int64_t journal_bytes(const struct journal *journal);
/* Oldest first; NULL at the end. */
struct job *journal_first(const struct journal *journal);
struct job *journal_next(const struct job *job);

#endif
