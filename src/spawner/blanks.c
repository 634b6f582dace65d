/*
 * blanks.c - what is made ahead has a box like a sandbox, with a range of ids and groups of its own.
 *
 * A create takes both over. One that is lost is removed like a sandbox that is
 * gone; one whose spawner has died, by the next, as a stray of that name.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/blanks.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "spawner/dispatch.h"
#include "spawner/make/maker.h"
#include "spawner/pool/pool.h"
#include "spawner/site.h"

#include <stdio.h>
#include <string.h>

/* After one could not be made; one that was killed says nothing about the host, many in a row do. */
enum { REST_US = 60000000, SHORT_REST_US = 500000, SHORT_RESTS = 6 };

bool
blanks_is_name(const char *name)
{
	return name[0] == '-' && id_is_uuid(name + 1);
}

void
blanks_note(struct dispatch *d, const struct make_order *order)
{
	struct blanks_image *last = &d->asked_image;

	if (strcmp(last->image, order->spec.image) == 0 && strcmp(last->digest, order->digest) == 0) {
		d->blanks_image = *last;
		return;
	}
	memcpy(last->image, order->spec.image, sizeof last->image);
	memcpy(last->digest, order->digest, sizeof last->digest);
	d->blanks_image = (struct blanks_image){ 0 };
}

static bool
on_begin(struct blank_order *ret_order, void **ret_blank, void *arg)
{
	struct dispatch *d = arg;
	char name[sizeof ret_order->name], uid[ID_UUID_SIZE];
	struct box *box;
	struct err err;

	if (clock_boot_us() < d->blanks_rest_until)
		return false;
	id_uuid4(uid);
	snprintf(name, sizeof name, "-%s", uid);
	box = boxes_add(d->boxes, name, uid);
	box->dispatch = d;
	box->stray = true;
	boxes_set_blank(d->boxes, box, true);
	box->phase = BOX_MAKING;
	box->making_us = clock_boot_us();
	if (boxes_take_slot(d->boxes, box, &err) != 0) {
		boxes_remove(d->boxes, box);
		return false;
	}
	memcpy(ret_order->name, name, sizeof name);
	ret_order->slot = box->slot;
	memcpy(ret_order->image, d->blanks_image.image, sizeof ret_order->image);
	memcpy(ret_order->digest, d->blanks_image.digest, sizeof ret_order->digest);
	*ret_blank = box;
	return true;
}

static void
on_made(void *blank, const struct make_result *made, void *arg)
{
	struct dispatch *d = arg;
	struct box *box = blank;
	int status;

	d->blanks_failed = 0;
	boxes_set_pid(d->boxes, box, made->pid, made->pid_start);
	box->phase = BOX_LIVE;
	if (early_deaths_take(&d->early, box->pid, box->pid_start, box->making_us, &status))
		dispatch_ended(d, box->pid, box->pid_start, status);
}

static void
on_used(void *blank, void *order_arg, void *arg)
{
	struct dispatch *d = arg;

	boxes_take_blank(d->boxes, order_arg, blank);
}

static int64_t
rest_us(struct dispatch *d, const struct err *why)
{
	if (why->code != ERR_INTERNAL || d->blanks_failed >= SHORT_RESTS)
		return REST_US;
	return (int64_t)SHORT_REST_US << d->blanks_failed++;
}

static void
on_lost(void *blank, const struct err *why, void *arg)
{
	struct dispatch *d = arg;
	struct box *box = blank;

	if (why != NULL) {
		log_warn("no sandbox could be made ahead: %s", why->msg);
		d->blanks_rest_until = clock_boot_us() + rest_us(d, why);
	}
	boxes_set_blank(d->boxes, box, false);
	dispatch_remove(d, box);
}

void
blanks_begin(struct dispatch *d)
{
	const struct pool_blanks blanks = { .most = (unsigned)d->config->sandbox_blanks,
		.begin = on_begin,
		.made = on_made,
		.used = on_used,
		.lost = on_lost,
		.arg = d };

	if (d->usable && d->site->maker == &maker_builtin)
		pool_hold_blanks(d->pool, &blanks);
}
