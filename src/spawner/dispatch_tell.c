/* dispatch_tell.c - news that move no box: told to those who wait, noted, looked up. */
/* SPDX-License-Identifier: MIT */
#include "spawner/dispatch.h"

#include "spawn/peer.h"
#include "spawn/request.h"
#include "spawn/turns.h"
#include "spawner/images/image_sweeper.h"
#include "spawner/make/make.h"

#include <stdio.h>
#include <string.h>

static void
tell_creators(struct dispatch *d, const struct box *box, const char *message)
{
	const struct box_waiter *waiter;
	struct spawn_reply reply;

	STAILQ_FOREACH(waiter, &box->creators, link)
	{
		spawn_reply_fill(&reply, SPAWN_PROGRESS, waiter->seq, NULL);
		snprintf(reply.message, sizeof reply.message, "%s", message);
		peers_send(d->peers, waiter->peer, &reply, sizeof reply);
	}
}

void
dispatch_tell_place(void *box, uint32_t place, void *arg)
{
	char words[TURNS_WORDS_SIZE];

	turns_words(place, words);
	tell_creators(arg, box, words);
}

void
dispatch_image_progress(const char *image, const char *message, void *arg)
{
	struct dispatch *d = arg;
	const struct box *box;

	LIST_FOREACH(box, boxes_all(d->boxes), link)
	{
		if (box->phase == BOX_IMAGE && strcmp(box->order->spec.image, image) == 0)
			tell_creators(d, box, message);
	}
}

void
dispatch_list_images(struct image_sweep_order *order, void *arg)
{
	struct dispatch *d = arg;
	const struct box *box;

	LIST_FOREACH(box, boxes_all(d->boxes), link)
	{
		if (strcmp(box->image, IMAGE_UNKNOWN) == 0)
			order->all_used = true;
		else
			image_sweep_use(order, box->image);
	}
}

void
dispatch_disk_measured(const char *uid, int64_t bytes, void *arg)
{
	struct dispatch *d = arg;
	struct box *box = boxes_find_uid(d->boxes, uid);

	if (box != NULL)
		box->disk_used = bytes;
}
