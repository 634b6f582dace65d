/* enter_msg.h - words with descriptors between a helper and the init that it makes. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_ENTER_MSG_H
#define ORCHARD_SPAWNER_ENTER_MSG_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

enum { ENTER_MSG_FDS = 8 };

/* Of fds, count at most ENTER_MSG_FDS, those that are -1 stay away. False: the other side is gone; errno is set. */
bool enter_msg_send(int channel, const void *words, size_t len, const int *fds, size_t count) MUSTCHECK;
/* The same words and descriptors, -1 where none was sent. False: the other side is gone, or speaks otherwise. Allocates nothing. */
bool enter_msg_receive(int channel, void *words, size_t len, int *ret_fds, size_t count) MUSTCHECK;

#endif
