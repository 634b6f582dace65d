/*
 * exec_queue.h - the node table of the exec lock and the lists derived from it. Private to src/ipc.
 *
 * Everything here is called with the lock's mutex held. References to nodes are
 * number + 1, so that zero-filled memory says "none".
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_EXEC_QUEUE_H
#define ORCHARD_IPC_EXEC_QUEUE_H

#include "ipc/notify.h"
#include "ipc/scoreboard.h"
#include "ipc/shm.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum lock_node_state {
	NODE_FREE,
	NODE_QUEUED, /* behind others of its key */
	NODE_ELIGIBLE, /* head of its key, in the FIFO for the running limit */
	NODE_GRANTED, /* may run, in its owner's grant list */
	NODE_OWNED, /* may run, and its owner knows */
	NODE_PARKED /* head of its key, and waits for what is not here */
};

struct lock_list {
	uint32_t head, tail;
};

struct lock_node {
	/* The truth. `state` is stored last when a node is made, and first when it goes. */
	_Atomic uint32_t state;
	uint32_t sandbox_slot;
	uint64_t lane;
	uint64_t number;
	uint64_t eligible; /* order of becoming eligible */
	uint64_t cookie;
	struct proc_ref owner;
	/* Derived. */
	uint32_t next, prev; /* in its key's queue */
	uint32_t key_tail; /* of a head: the last of its key */
	uint32_t bucket_next, bucket_prev; /* of a head: heads with the same hash */
	uint32_t list_next, list_prev; /* in the eligible FIFO or in a grant list */
	/* Truth again: it outlives its owner. Stored by the owner without the mutex. */
	_Atomic uint32_t kept;
	_Atomic uint32_t job; /* slot + 1 of the job that it is for; 0: not told yet */
	uint32_t pad;
};

struct shm_exec_lock {
	alignas(64) pthread_mutex_t mutex;
	uint32_t nodes_total, sandboxes_total, bucket_mask;
	uint64_t nodes, buckets, shares, scratch; /* offsets from here */
	uint64_t number; /* of the newest ticket */
	uint64_t eligible; /* newest */
	/* Derived. */
	uint32_t bound; /* nodes from here on were never used */
	uint32_t free;
	uint32_t used, running;
	struct lock_list fifo;
	alignas(64) _Atomic uint32_t granted[SHM_PROCESSES]; /* lengths of the grant lists, read without the lock */
	struct lock_list grants[SHM_PROCESSES];
};

/* A bit per process slot: who is to be kicked once the mutex is free. */
struct kick_set {
	uint64_t words[NOTIFY_PROC_WORDS];
};

struct lock_node *exec_queue_node(struct shm_exec_lock *lock, uint32_t ref);
/* How many places that sandbox has. */
uint32_t *exec_queue_share(struct shm_exec_lock *lock, uint32_t sandbox_slot);
/* The first of that key, or 0. */
uint32_t exec_queue_head(struct shm_exec_lock *lock, uint32_t sandbox_slot, uint64_t lane);
bool exec_queue_is_full(const struct shm_exec_lock *lock);
/* A node with its truth filled in, in state NODE_QUEUED or NODE_ELIGIBLE, and in all lists. There is a free one. */
uint32_t exec_queue_add(struct shm_exec_lock *lock, const struct lock_node *request);
/* Frees the node and makes the next of its key eligible. */
void exec_queue_remove(struct shm_exec_lock *lock, uint32_t ref);
/* Grants eligible nodes, oldest first, up to the limit. */
void exec_queue_grant(struct shm_exec_lock *lock, uint32_t limit, struct kick_set *kicks);
/* The head of that process's grant list becomes owned; 0: the list is empty. */
uint32_t exec_queue_take(struct shm_exec_lock *lock, uint32_t proc);
/* From granted to owned without the way through exec_queue_take. */
void exec_queue_own(struct shm_exec_lock *lock, uint32_t ref);
/* From owned to parked: it does not count as running. */
void exec_queue_park(struct shm_exec_lock *lock, uint32_t ref);
/* From parked to eligible, behind those that are. */
void exec_queue_unpark(struct shm_exec_lock *lock, uint32_t ref);
/* The node gets another owner, where it stands; what was granted is owned, what was parked is eligible. */
void exec_queue_adopt(struct shm_exec_lock *lock, uint32_t ref, struct proc_ref owner, uint64_t cookie);
/* Makes every list new from the nodes. */
void exec_queue_rebuild(struct shm_exec_lock *lock);

#endif
