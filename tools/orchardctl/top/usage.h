/* usage.h - what each sandbox uses, asked for side by side, and the processors' share between two looks. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TOP_USAGE_H
#define ORCHARDCTL_TOP_USAGE_H

#include "base/cleanup.h"
#include "orchardctl/commands/sandbox_view.h"

struct ctl;
struct err;
struct json_object;

/*
 * An object of sandboxes by id, as GET /sandboxes/{id} shows them, each with "seen_at" in seconds. Owned by the caller;
 * NULL after a failure. Those that go meanwhile are left out.
 */
struct json_object *
usage_look(const struct ctl *ctl, const struct sandbox_filter *filter, struct err *err) MUSTCHECK;

/*
 * The rows of a table: an array of objects with sandbox_id, cpu (percent of one processor), cpu_limit, memory_bytes,
 * memory_percent (of its limit), memory_peak_bytes, pids, disk_bytes. before: the look before, or NULL. Pure.
 */
struct json_object *usage_rows(struct json_object *before, struct json_object *now);

enum usage_order { USAGE_BY_CPU, USAGE_BY_MEMORY, USAGE_BY_DISK, USAGE_BY_PIDS, USAGE_BY_NAME };
void usage_sort(struct json_object *rows, enum usage_order order);

#endif
