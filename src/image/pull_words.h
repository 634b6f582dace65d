/* pull_words.h - what a failure of skopeo means, and what cures it. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IMAGE_PULL_WORDS_H
#define ORCHARD_IMAGE_PULL_WORDS_H

#include "base/cleanup.h"

struct err;

/* said: the end of its stderr. Returns -1; ERR_UNAVAILABLE: another try may help. */
int pull_words(const char *said, struct err *err);

#endif
