/* kube_backoff.c - pauses that grow, with jitter. */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_backoff.h"

#include "base/clock.h"

#include <sys/random.h>

int64_t
kube_backoff_dice(int64_t below)
{
	uint32_t dice = 0;

	if (getrandom(&dice, sizeof dice, GRND_NONBLOCK) != sizeof dice)
		dice = (uint32_t)clock_boot_us();
	return below > 0 ? (int64_t)dice % below : 0;
}

int64_t
kube_backoff_next(struct kube_backoff *backoff, int64_t retry_after_ms)
{
	int64_t pause = backoff->first_ms;

	for (uint32_t i = 0; i < backoff->tries && pause < backoff->max_ms; i++)
		pause *= 2;
	if (pause > backoff->max_ms)
		pause = backoff->max_ms;
	backoff->tries++;
	pause = pause / 2 + kube_backoff_dice(pause / 2 + 1);
	if (pause < retry_after_ms)
		pause = retry_after_ms + kube_backoff_dice(retry_after_ms / 10 + 1);
	return pause;
}
