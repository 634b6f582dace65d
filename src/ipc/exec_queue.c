/*
 * exec_queue.c - key queues, the eligible FIFO and the grant lists of the exec lock.
 *
 * A key's queue is a list in order of ticket numbers, for numbers are given and
 * appended under one mutex. Its head alone stands in the hash table, and only a head
 * can be eligible, granted or owned; so a key never has two owners. All of this can
 * be read off (state, key, number, eligible) of the nodes, and exec_queue_rebuild()
 * does so after a death: those few words are written in an order that makes every
 * prefix of the stores a valid table.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/exec_queue.h"
#include "ipc/crash_point.h"
#include "ipc/robust.h"

#include <stdlib.h>
#include <string.h>

struct lock_node *
exec_queue_node(struct shm_exec_lock *lock, uint32_t ref)
{
	return (struct lock_node *)((char *)lock + lock->nodes) + (ref - 1);
}

uint32_t *
exec_queue_share(struct shm_exec_lock *lock, uint32_t sandbox_slot)
{
	return (uint32_t *)((char *)lock + lock->shares) + sandbox_slot;
}

bool
exec_queue_is_full(const struct shm_exec_lock *lock)
{
	return lock->free == 0 && lock->bound == lock->nodes_total;
}

static enum lock_node_state
state_of(struct lock_node *node)
{
	return (enum lock_node_state)atomic_load_explicit(&node->state, memory_order_relaxed);
}

static void
set_state(struct lock_node *node, enum lock_node_state state)
{
	robust_order();
	atomic_store_explicit(&node->state, (uint32_t)state, memory_order_relaxed);
	robust_order();
	CRASH_POINT();
}

/* --- the eligible FIFO and the grant lists --- */

static void
list_push(struct shm_exec_lock *lock, struct lock_list *list, uint32_t ref)
{
	struct lock_node *node = exec_queue_node(lock, ref);

	node->list_next = 0;
	node->list_prev = list->tail;
	if (list->tail != 0)
		exec_queue_node(lock, list->tail)->list_next = ref;
	else
		list->head = ref;
	CRASH_POINT();
	list->tail = ref;
}

static void
list_unlink(struct shm_exec_lock *lock, struct lock_list *list, uint32_t ref)
{
	struct lock_node *node = exec_queue_node(lock, ref);

	if (node->list_prev != 0)
		exec_queue_node(lock, node->list_prev)->list_next = node->list_next;
	else
		list->head = node->list_next;
	CRASH_POINT();
	if (node->list_next != 0)
		exec_queue_node(lock, node->list_next)->list_prev = node->list_prev;
	else
		list->tail = node->list_prev;
}

static void
grants_push(struct shm_exec_lock *lock, uint32_t ref)
{
	uint32_t proc = exec_queue_node(lock, ref)->owner.slot;

	list_push(lock, &lock->grants[proc], ref);
	atomic_fetch_add_explicit(&lock->granted[proc], 1, memory_order_release);
}

static void
grants_unlink(struct shm_exec_lock *lock, uint32_t ref)
{
	uint32_t proc = exec_queue_node(lock, ref)->owner.slot;

	list_unlink(lock, &lock->grants[proc], ref);
	atomic_fetch_sub_explicit(&lock->granted[proc], 1, memory_order_release);
}

/* --- keys --- */

static uint32_t *
bucket_of(struct shm_exec_lock *lock, uint32_t sandbox_slot, uint64_t lane)
{
	uint64_t h = (lane ^ (uint64_t)sandbox_slot << 32 ^ sandbox_slot) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t *)((char *)lock + lock->buckets) + ((uint32_t)(h >> 32) & lock->bucket_mask);
}

uint32_t
exec_queue_head(struct shm_exec_lock *lock, uint32_t sandbox_slot, uint64_t lane)
{
	uint32_t ref = *bucket_of(lock, sandbox_slot, lane);

	while (ref != 0) {
		struct lock_node *node = exec_queue_node(lock, ref);

		if (node->sandbox_slot == sandbox_slot && node->lane == lane)
			break;
		ref = node->bucket_next;
	}
	return ref;
}

static void
bucket_insert(struct shm_exec_lock *lock, uint32_t ref)
{
	struct lock_node *node = exec_queue_node(lock, ref);
	uint32_t *bucket = bucket_of(lock, node->sandbox_slot, node->lane);

	node->bucket_prev = 0;
	node->bucket_next = *bucket;
	if (*bucket != 0)
		exec_queue_node(lock, *bucket)->bucket_prev = ref;
	CRASH_POINT();
	*bucket = ref;
}

static void
bucket_remove(struct shm_exec_lock *lock, uint32_t ref)
{
	struct lock_node *node = exec_queue_node(lock, ref);

	if (node->bucket_prev != 0)
		exec_queue_node(lock, node->bucket_prev)->bucket_next = node->bucket_next;
	else
		*bucket_of(lock, node->sandbox_slot, node->lane) = node->bucket_next;
	CRASH_POINT();
	if (node->bucket_next != 0)
		exec_queue_node(lock, node->bucket_next)->bucket_prev = node->bucket_prev;
}

/* Puts the node at the end of its key's queue; true when it is the head. */
static bool
key_append(struct shm_exec_lock *lock, uint32_t ref)
{
	struct lock_node *node = exec_queue_node(lock, ref);
	uint32_t head = exec_queue_head(lock, node->sandbox_slot, node->lane);

	node->next = 0;
	if (head == 0) {
		node->prev = 0;
		node->key_tail = ref;
		bucket_insert(lock, ref);
		return true;
	}
	node->prev = exec_queue_node(lock, head)->key_tail;
	exec_queue_node(lock, node->prev)->next = ref;
	CRASH_POINT();
	exec_queue_node(lock, head)->key_tail = ref;
	return false;
}

static void
make_eligible(struct shm_exec_lock *lock, uint32_t ref)
{
	struct lock_node *node = exec_queue_node(lock, ref);

	node->eligible = ++lock->eligible;
	set_state(node, NODE_ELIGIBLE);
	list_push(lock, &lock->fifo, ref);
}

static void
key_remove(struct shm_exec_lock *lock, uint32_t ref)
{
	struct lock_node *node = exec_queue_node(lock, ref);

	if (node->prev != 0) {
		uint32_t head = exec_queue_head(lock, node->sandbox_slot, node->lane);

		exec_queue_node(lock, node->prev)->next = node->next;
		CRASH_POINT();
		if (node->next != 0)
			exec_queue_node(lock, node->next)->prev = node->prev;
		else
			exec_queue_node(lock, head)->key_tail = node->prev;
		return;
	}
	bucket_remove(lock, ref);
	if (node->next == 0)
		return;
	exec_queue_node(lock, node->next)->prev = 0;
	exec_queue_node(lock, node->next)->key_tail = node->key_tail;
	bucket_insert(lock, node->next);
	make_eligible(lock, node->next);
}

/* --- what the lock does --- */

static void
free_push(struct shm_exec_lock *lock, uint32_t ref)
{
	exec_queue_node(lock, ref)->next = lock->free;
	lock->free = ref;
}

static uint32_t
free_pop(struct shm_exec_lock *lock)
{
	uint32_t ref = lock->free;

	if (ref == 0)
		return ++lock->bound;
	lock->free = exec_queue_node(lock, ref)->next;
	return ref;
}

uint32_t
exec_queue_add(struct shm_exec_lock *lock, const struct lock_node *request)
{
	uint32_t ref = free_pop(lock);
	struct lock_node *node = exec_queue_node(lock, ref);

	CRASH_POINT();
	node->sandbox_slot = request->sandbox_slot;
	node->lane = request->lane;
	node->number = ++lock->number;
	node->cookie = request->cookie;
	node->owner = request->owner;
	atomic_store_explicit(&node->kept, 0, memory_order_relaxed);
	atomic_store_explicit(&node->job, 0, memory_order_relaxed);
	set_state(node, NODE_QUEUED);
	lock->used++;
	++*exec_queue_share(lock, node->sandbox_slot);
	if (key_append(lock, ref))
		make_eligible(lock, ref);
	return ref;
}

void
exec_queue_remove(struct shm_exec_lock *lock, uint32_t ref)
{
	struct lock_node *node = exec_queue_node(lock, ref);
	enum lock_node_state state = state_of(node);

	set_state(node, NODE_FREE);
	if (state == NODE_ELIGIBLE)
		list_unlink(lock, &lock->fifo, ref);
	else if (state == NODE_GRANTED)
		grants_unlink(lock, ref);
	if (state == NODE_GRANTED || state == NODE_OWNED)
		lock->running--;
	lock->used--;
	--*exec_queue_share(lock, node->sandbox_slot);
	key_remove(lock, ref);
	free_push(lock, ref);
}

static void
kick_set_add(struct kick_set *kicks, uint32_t proc)
{
	kicks->words[proc / 64] |= UINT64_C(1) << proc % 64;
}

void
exec_queue_grant(struct shm_exec_lock *lock, uint32_t limit, struct kick_set *kicks)
{
	while (lock->running < limit && lock->fifo.head != 0) {
		uint32_t ref = lock->fifo.head;
		struct lock_node *node = exec_queue_node(lock, ref);

		list_unlink(lock, &lock->fifo, ref);
		CRASH_POINT();
		set_state(node, NODE_GRANTED);
		lock->running++;
		grants_push(lock, ref);
		kick_set_add(kicks, node->owner.slot);
	}
}

void
exec_queue_own(struct shm_exec_lock *lock, uint32_t ref)
{
	grants_unlink(lock, ref);
	set_state(exec_queue_node(lock, ref), NODE_OWNED);
}

void
exec_queue_park(struct shm_exec_lock *lock, uint32_t ref)
{
	if (state_of(exec_queue_node(lock, ref)) != NODE_OWNED)
		return;
	set_state(exec_queue_node(lock, ref), NODE_PARKED);
	lock->running--;
}

void
exec_queue_unpark(struct shm_exec_lock *lock, uint32_t ref)
{
	if (state_of(exec_queue_node(lock, ref)) == NODE_PARKED)
		make_eligible(lock, ref);
}

uint32_t
exec_queue_take(struct shm_exec_lock *lock, uint32_t proc)
{
	uint32_t ref = lock->grants[proc].head;

	if (ref != 0)
		exec_queue_own(lock, ref);
	return ref;
}

void
exec_queue_adopt(struct shm_exec_lock *lock, uint32_t ref, struct proc_ref owner, uint64_t cookie)
{
	struct lock_node *node = exec_queue_node(lock, ref);

	if (state_of(node) == NODE_GRANTED)
		exec_queue_own(lock, ref);
	exec_queue_unpark(lock, ref);
	/* Nobody's in between: half of two names could be a third one's. */
	node->owner.generation = 0;
	robust_order();
	CRASH_POINT();
	node->owner.slot = owner.slot;
	node->cookie = cookie;
	robust_order();
	CRASH_POINT();
	node->owner.generation = owner.generation;
}

/* --- after a death --- */

struct sort_item {
	uint64_t order;
	uint32_t ref;
	uint32_t pad;
};

static int
compare_items(const void *a, const void *b)
{
	const struct sort_item *x = a, *y = b;

	return x->order < y->order ? -1 : x->order > y->order;
}

static void
forget_lists(struct shm_exec_lock *lock)
{
	memset((char *)lock + lock->buckets, 0, ((size_t)lock->bucket_mask + 1) * sizeof(uint32_t));
	memset((char *)lock + lock->shares, 0, (size_t)lock->sandboxes_total * sizeof(uint32_t));
	memset(lock->grants, 0, sizeof lock->grants);
	for (uint32_t i = 0; i < SHM_PROCESSES; i++)
		atomic_store_explicit(&lock->granted[i], 0, memory_order_relaxed);
	lock->fifo = (struct lock_list){ 0 };
	lock->free = lock->used = lock->running = 0;
}

/* Free nodes go to the free list, the others are listed with their numbers. */
static uint32_t
collect(struct shm_exec_lock *lock, struct sort_item *items)
{
	uint32_t n = 0;

	for (uint32_t ref = lock->bound; ref > 0; ref--) {
		struct lock_node *node = exec_queue_node(lock, ref);

		if (state_of(node) == NODE_FREE)
			free_push(lock, ref);
		else
			items[n++] = (struct sort_item){ .order = node->number, .ref = ref };
	}
	return n;
}

/* Puts the nodes into their keys' queues; the eligible ones are listed anew, and their number is returned. */
static uint32_t
requeue(struct shm_exec_lock *lock, struct sort_item *items, uint32_t n)
{
	uint32_t eligible = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t ref = items[i].ref;
		struct lock_node *node = exec_queue_node(lock, ref);
		bool is_head = key_append(lock, ref);

		lock->used++;
		++*exec_queue_share(lock, node->sandbox_slot);
		if (is_head && state_of(node) == NODE_QUEUED) {
			node->eligible = ++lock->eligible;
			set_state(node, NODE_ELIGIBLE);
		}
		if (state_of(node) == NODE_ELIGIBLE)
			items[eligible++] = (struct sort_item){ .order = node->eligible, .ref = ref };
		if (state_of(node) == NODE_GRANTED)
			grants_push(lock, ref);
		if (state_of(node) == NODE_GRANTED || state_of(node) == NODE_OWNED)
			lock->running++;
	}
	return eligible;
}

void
exec_queue_rebuild(struct shm_exec_lock *lock)
{
	struct sort_item *items = (struct sort_item *)((char *)lock + lock->scratch);
	uint32_t n;

	forget_lists(lock);
	n = collect(lock, items);
	qsort(items, n, sizeof *items, compare_items);
	n = requeue(lock, items, n);
	qsort(items, n, sizeof *items, compare_items);
	for (uint32_t i = 0; i < n; i++)
		list_push(lock, &lock->fifo, items[i].ref);
}
