/* kube_backoff.h - how long to pause before another try. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_BACKOFF_H
#define ORCHARD_KUBE_KUBE_BACKOFF_H

#include <stdint.h>

struct kube_backoff {
	int64_t first_ms, max_ms;
	uint32_t tries; /* in a row that failed; 0 begins anew */
};

/*
 * Half of a pause that doubles with each try and up to another half, so that many who failed together do not come back
 * together; never less than retry_after_ms, what the server asked for (-1: nothing), plus up to a tenth.
 */
int64_t kube_backoff_next(struct kube_backoff *backoff, int64_t retry_after_ms);
/* Anything in 0..below-1. */
int64_t kube_backoff_dice(int64_t below);

#endif
