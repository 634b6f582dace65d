/*
 * notify.h - "something about slot N changed", told to other processes.
 *
 * Every process has an eventfd (made by the master before any fork, so that a
 * respawned one has it too) and, per kind, a bitmap of slots. Posting sets a bit
 * and kicks the eventfd; taking clears bits. No lock, no overflow: a kill at any
 * point loses nothing but duplicates. A waiter always registers first, then
 * looks at the state, then sleeps.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_NOTIFY_H
#define ORCHARD_IPC_NOTIFY_H

#include "base/cleanup.h"
#include "ipc/shm.h"

#include <stdint.h>

struct err;
struct notify;
struct shm_notify;

enum { NOTIFY_PROC_WORDS = (SHM_PROCESSES + 63) / 64 };
enum notify_kind { NOTIFY_SANDBOX, NOTIFY_JOB, NOTIFY_KIND_COUNT };

/* Master: makes the eventfds. Children use the same object after fork. */
int notify_open(struct shm_notify *shm, struct notify **ret_notify, struct err *err) MUSTCHECK;
void notify_close(struct notify *notify);

/* The eventfd of process slot `proc`: readable when there is something to take. */
int notify_fd(struct notify *notify, uint32_t proc);
void notify_kick(struct notify *notify, uint32_t proc);

/* This process wants to hear of changes of that slot, once (the next post clears the interest). */
void notify_watch(struct notify *notify, uint32_t proc, enum notify_kind kind, uint32_t slot);
/* It does not any more; a change that was posted already may still come. */
void notify_forget(struct notify *notify, uint32_t proc, enum notify_kind kind, uint32_t slot);
/* Tells every process that watches the slot. */
void notify_post(struct notify *notify, enum notify_kind kind, uint32_t slot);
/*
 * Somebody died, perhaps between a change and its post: posts every slot, and forgets what processes wanted
 * that are not in `alive` (a bit per process slot). exec_lock_repair() does it.
 */
void notify_repair(struct notify *notify, const uint64_t alive[NOTIFY_PROC_WORDS]);
/* Next changed slot for `proc`, or UINT32_MAX when there is none; read the eventfd first. */
uint32_t notify_take(struct notify *notify, uint32_t proc, enum notify_kind kind);
/* Empties the eventfd. */
void notify_drain(struct notify *notify, uint32_t proc);

#endif
