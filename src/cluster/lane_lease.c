/* lane_lease.c - the rules of one lease, on the record alone. */
/* SPDX-License-Identifier: MIT */
#include "cluster/lane_lease.h"

enum { FENCES_MAX = (1 << LANE_FENCE_BITS) - 1 };

enum lane_step
lane_lease_take(struct lane_record *record, bool asked, bool away, int64_t now_ms, uint64_t *ret_fence)
{
	/* Used up: the next one has another number. */
	if (record->fences >= FENCES_MAX)
		lane_lease_drop(record);
	if (!lane_lease_is_held(record) || (!away && now_ms >= record->until_ms))
		return LANE_ASK;
	/* While Redis is away nobody can be let go first: the last holder goes on, and the agent judges. */
	if (record->wanted && asked && !away && record->turns == 0)
		return LANE_YIELD;
	if (asked && record->turns > 0)
		record->turns--;
	*ret_fence = record->number << LANE_FENCE_BITS | ++record->fences;
	return LANE_GO;
}

void
lane_lease_learn(struct lane_record *record, const struct lane_news *news)
{
	if (news->number < record->number || (news->has && news->number <= record->over))
		return;
	if (news->number > record->number) {
		record->fences = 0;
		record->turns = 0;
		record->until_ms = 0;
	}
	record->number = news->number;
	if (!news->has) {
		lane_lease_drop(record);
		return;
	}
	record->turns += news->turns;
	record->wanted = news->wanted;
	if (record->until_ms < news->until_ms)
		record->until_ms = news->until_ms;
}

void
lane_lease_drop(struct lane_record *record)
{
	record->over = record->number;
	record->fences = 0;
	record->turns = 0;
	record->wanted = false;
}

void
lane_lease_overtaken(struct lane_record *record, uint64_t newest_fence)
{
	/* No fence of ours comes near this; what an agent claims must not make ours wrap. */
	if (newest_fence >= UINT64_C(1) << 62)
		return;
	if (record->number < newest_fence >> LANE_FENCE_BITS)
		record->number = newest_fence >> LANE_FENCE_BITS;
	lane_lease_drop(record);
}
