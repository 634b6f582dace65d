/* early.c - a short list, looked through once for each sandbox that was made. */
/* SPDX-License-Identifier: MIT */
#include "spawner/early.h"

bool
early_deaths_same(uint64_t known_start, uint64_t pid_start)
{
	return known_start == pid_start || known_start == 0;
}

void
early_deaths_add(struct early_deaths *early, pid_t pid, uint64_t pid_start, int64_t seen_us, int status)
{
	early->list[early->next].pid = pid;
	early->list[early->next].pid_start = pid_start;
	early->list[early->next].seen_us = seen_us;
	early->list[early->next].status = status;
	early->next = (early->next + 1) % EARLY_DEATHS;
}

bool
early_deaths_take(struct early_deaths *early, pid_t pid, uint64_t known_start, int64_t since_us, int *ret_status)
{
	for (unsigned i = 0; i < EARLY_DEATHS; i++) {
		if (early->list[i].pid == pid && early->list[i].seen_us >= since_us &&
			early_deaths_same(known_start, early->list[i].pid_start)) {
			early->list[i].pid = 0;
			*ret_status = early->list[i].status;
			return true;
		}
	}
	return false;
}
