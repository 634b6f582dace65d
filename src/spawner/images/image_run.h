/* image_run.h - one imager that runs, as the spawner sees it: started, heard, ended. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_IMAGE_RUN_H
#define ORCHARD_SPAWNER_IMAGE_RUN_H

#include "base/cleanup.h"
#include "image/imager.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct image_run;
struct site;

/* word NULL: it has died without a last word. It may end the run. */
typedef void image_run_f(const struct imager_word *word, void *arg);

/* order is read before the return only. */
int image_run_start(struct event_base *base, const struct site *site, const struct imager_order *order,
	image_run_f *call, void *arg, struct image_run **ret_run, struct err *err) MUSTCHECK;
/* Kills it, if it still runs; NULL is fine. */
void image_run_end(struct image_run *run);
/* Its process was reaped: true when it is this one. Its last words, if any, still come. */
bool image_run_reaped(struct image_run *run, pid_t pid);

#endif
