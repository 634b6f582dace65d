/*
 * box_state.h - what is written about one sandbox, so that a later spawner can find it.
 *
 * sandboxes/<id>/state.json is there before anything it describes is made, and
 * goes with the directory after all of it is gone.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_BOX_STATE_H
#define ORCHARD_SPAWNER_BOX_STATE_H

#include "base/cleanup.h"
#include "base/id.h"
#include "image/image.h"
#include "network/net.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct box_state {
	char id[64];
	char uid[ID_UUID_SIZE];
	char group[64]; /* name of its control groups: its id, unless it was made of a blank */
	char boot_id[37];
	bool live; /* false: being made */
	uint32_t first_id; /* of its host ids; 0: an older version wrote slot instead */
	uint32_t slot;
	struct net_grant net;
	char image[IMAGE_DIGEST_SIZE]; /* as of struct box */
	int64_t watched_disk; /* limit that disk_watch.h keeps; 0: none */
	pid_t pid;
	uint64_t pid_start;
};

int box_state_write(int box_fd, const struct box_state *state, struct err *err) MUSTCHECK;
int box_state_read(int box_fd, struct box_state *ret_state, struct err *err) MUSTCHECK;

#endif
