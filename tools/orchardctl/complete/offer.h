/* offer.h - words that the one being typed may become, one a line, for the scripts of completion. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMPLETE_OFFER_H
#define ORCHARDCTL_COMPLETE_OFFER_H

#include <stdbool.h>

struct ctl;
struct line;

/* One that begins otherwise is passed over, and one with control characters. end, about: behind the word; NULL: nothing. */
void offer(const struct line *line, const char *word, const char *end, const char *about);
/* Files here. */
void offer_files(void);
/* Words in a text of words. */
void offer_words(const struct line *line, const char *words);

/* What the server knows; nothing when it does not answer soon. */
void offer_sandboxes(const struct ctl *ctl, const struct line *line, const char *end);
/* Of the newest sandboxes. live: only those that have not ended. */
void offer_jobs(const struct ctl *ctl, const struct line *line, bool live);
/* Paths in a sandbox that go on from path, each behind "before". */
void offer_paths(
	const struct ctl *ctl, const struct line *line, const char *sandbox, const char *before, const char *path);

#endif
