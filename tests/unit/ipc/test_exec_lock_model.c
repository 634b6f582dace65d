/*
 * test_exec_lock_model.c - the exec lock's own code in every state that a few processes can bring it to.
 *
 * Processes ask for places, take grants, give back, keep and adopt; each dies at every crash point of each of
 * these; the master repairs at once or later; the whole server dies and adopts the section. The mutex, the
 * eventfds and the scoreboard are stand-ins, so that a death is a jump and not a process. After every step the
 * table must agree with what the processes know, and from every state all that waits must come to its end.
 *
 * ORCHARD_MODEL_STATES: how many states each system may have (default 120000).
 */
/* SPDX-License-Identifier: MIT */
#define ORCHARD_CRASH_POINTS
#include "base/err.h"
#include "explore.h"
#include "ipc/crash_point.h"
#include "ipc/exec_lock.h"
#include "ipc/exec_queue.h"
#include "ipc/notify.h"
#include "ipc/robust.h"
#include "ipc/section.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PROCS = 3, KEYS = 3, REQUESTS = 5, SANDBOXES = 2, NODES = REQUESTS + PROCS, SECTION = 4096 };
enum { NOBODY = PROCS };
enum mutex_state { MUTEX_FREE, MUTEX_HELD, MUTEX_DEAD };

/* What the processes know of a place, which the lock must agree with. */
struct request {
	bool used, granted, kept;
	uint8_t proc; /* NOBODY: an orphan */
	uint8_t key;
	struct exec_ticket ticket;
};

struct proc {
	uint32_t generation;
	bool dead; /* not yet buried */
	bool kicked; /* its eventfd is readable */
	bool taking; /* has read it, and goes on taking until nothing comes */
};

struct world {
	alignas(64) char section[SECTION];
	struct proc procs[PROCS];
	struct request requests[REQUESTS];
	uint32_t limit, highest_running;
	bool grant_due; /* the limit was raised, or somebody died before he had granted: the next one does */
	struct exec_ticket gone; /* once named a place */
};

static struct world world;
static struct shm_exec_lock *const lock = (struct shm_exec_lock *)world.section;
static struct {
	uint32_t procs, keys, requests;
	bool deaths, limits;
} size;

static const struct {
	uint32_t slot;
	uint64_t lane;
} keys[KEYS] = { { 0, 0 }, { 0, 1 }, { 1, 0 } };

/* --- stand-ins --- */

void
ipc_crash_point(void)
{
	explore_point();
}

static uint8_t *
mutex_state(pthread_mutex_t *mutex)
{
	return (uint8_t *)mutex;
}

void
robust_init(pthread_mutex_t *mutex)
{
	memset(mutex, 0, sizeof *mutex);
}

bool
robust_lock(pthread_mutex_t *mutex)
{
	bool dead = *mutex_state(mutex) == MUTEX_DEAD;

	if (*mutex_state(mutex) == MUTEX_HELD)
		explore_fault("the mutex is taken twice");
	*mutex_state(mutex) = MUTEX_HELD;
	return dead;
}

void
robust_consistent(pthread_mutex_t *mutex)
{
	(void)mutex;
}

void
robust_unlock(pthread_mutex_t *mutex)
{
	*mutex_state(mutex) = MUTEX_FREE;
}

void
notify_kick(struct notify *notify, uint32_t proc)
{
	(void)notify;
	if (proc < PROCS)
		world.procs[proc].kicked = true;
}

void
notify_repair(struct notify *notify, const uint64_t alive[NOTIFY_PROC_WORDS])
{
	(void)notify;
	(void)alive;
}

bool
scoreboard_is_current(struct shm_scoreboard *board, struct proc_ref ref)
{
	(void)board;
	return ref.slot < PROCS && ref.generation == world.procs[ref.slot].generation;
}

bool
scoreboard_info(struct shm_scoreboard *board, uint32_t slot, struct proc_info *ret_info)
{
	(void)board;
	(void)ret_info;
	return slot < PROCS;
}

/* --- looking at the table --- */

static uint32_t
state_of(uint32_t ref)
{
	return atomic_load_explicit(&exec_queue_node(lock, ref)->state, memory_order_relaxed);
}

static bool
has_key(uint32_t ref, uint32_t key)
{
	struct lock_node *node = exec_queue_node(lock, ref);

	return node->sandbox_slot == keys[key].slot && node->lane == keys[key].lane;
}

static bool
may_run(uint32_t ref)
{
	return state_of(ref) == NODE_GRANTED || state_of(ref) == NODE_OWNED;
}

static struct request *
request_of(uint32_t ref)
{
	for (uint32_t i = 0; i < REQUESTS; i++)
		if (world.requests[i].used && world.requests[i].ticket.node == ref - 1 &&
			world.requests[i].ticket.number == exec_queue_node(lock, ref)->number)
			return &world.requests[i];
	return NULL;
}

static bool
is_listed(const struct request *request)
{
	return request->ticket.node < lock->bound && state_of(request->ticket.node + 1) != NODE_FREE &&
		exec_queue_node(lock, request->ticket.node + 1)->number == request->ticket.number;
}

/* --- what holds in every state --- */

/* Of each key, the oldest place alone is eligible or runs. Also while somebody lies dead in the section. */
static void
check_keys(bool whole)
{
	for (uint32_t key = 0; key < KEYS; key++) {
		uint32_t oldest = 0, runs = 0;

		for (uint32_t ref = 1; ref <= lock->bound; ref++) {
			if (state_of(ref) == NODE_FREE || !has_key(ref, key))
				continue;
			if (oldest == 0 ||
				exec_queue_node(lock, ref)->number < exec_queue_node(lock, oldest)->number)
				oldest = ref;
			runs += may_run(ref);
		}
		if (runs > 1)
			explore_fault("key %u has %u holders", key, runs);
		for (uint32_t ref = 1; ref <= lock->bound; ref++)
			if (ref != oldest && state_of(ref) > NODE_QUEUED && has_key(ref, key))
				explore_fault("key %u: a later place went first", key);
		if (whole && oldest != 0 && state_of(oldest) == NODE_QUEUED)
			explore_fault("key %u: its head is forgotten", key);
	}
}

static void
check_list(const struct lock_list *list, uint32_t state, uint32_t proc, const char *name)
{
	uint32_t expected = 0, n = 0, prev = 0;
	uint64_t newest = 0;

	for (uint32_t ref = 1; ref <= lock->bound; ref++)
		expected += state_of(ref) == state &&
			(proc == NOBODY || exec_queue_node(lock, ref)->owner.slot == proc);
	for (uint32_t ref = list->head; ref != 0 && n <= NODES;
		prev = ref, ref = exec_queue_node(lock, ref)->list_next) {
		struct lock_node *node = exec_queue_node(lock, ref);

		if (state_of(ref) != state || node->list_prev != prev ||
			(proc != NOBODY && node->owner.slot != proc))
			explore_fault("%s: a wrong link or member", name);
		if (proc == NOBODY && node->eligible <= newest)
			explore_fault("%s: not in order", name);
		newest = node->eligible;
		n++;
	}
	if (n != expected || list->tail != prev)
		explore_fault("%s has %u members of %u", name, n, expected);
}

static void
check_key_queue(uint32_t key)
{
	uint32_t expected = 0, head = 0, n = 0, prev = 0;
	uint64_t newest = 0;

	for (uint32_t ref = 1; ref <= lock->bound; ref++)
		expected += state_of(ref) != NODE_FREE && has_key(ref, key);
	for (uint32_t b = 0; b <= lock->bucket_mask; b++)
		for (uint32_t ref = ((uint32_t *)(world.section + lock->buckets))[b]; ref != 0;
			ref = exec_queue_node(lock, ref)->bucket_next)
			if (has_key(ref, key))
				head = ref;
	for (uint32_t ref = head; ref != 0 && n <= NODES; prev = ref, ref = exec_queue_node(lock, ref)->next) {
		struct lock_node *node = exec_queue_node(lock, ref);

		if (!has_key(ref, key) || state_of(ref) == NODE_FREE || node->prev != prev ||
			node->number <= newest)
			explore_fault("queue of key %u: a wrong link or member", key);
		newest = node->number;
		n++;
	}
	if (n != expected || (head != 0 && exec_queue_node(lock, head)->key_tail != prev))
		explore_fault("queue of key %u has %u members of %u", key, n, expected);
}

/* All that is derived says the same as the nodes. */
static void
check_derived(void)
{
	uint32_t used = 0, running = 0, unused = 0, shares[SANDBOXES] = { 0 };

	for (uint32_t ref = 1; ref <= lock->bound; ref++) {
		used += state_of(ref) != NODE_FREE;
		running += may_run(ref);
		if (state_of(ref) != NODE_FREE)
			shares[exec_queue_node(lock, ref)->sandbox_slot]++;
	}
	for (uint32_t ref = lock->free; ref != 0 && unused <= NODES; ref = exec_queue_node(lock, ref)->next)
		unused++;
	if (lock->used != used || lock->running != running || unused + used != lock->bound)
		explore_fault("counts: %u used, %u running, %u free; of %u nodes %u and %u are", lock->used,
			lock->running, unused, lock->bound, used, running);
	for (uint32_t slot = 0; slot < SANDBOXES; slot++)
		if (*exec_queue_share(lock, slot) != shares[slot])
			explore_fault("share of sandbox %u", slot);
	for (uint32_t key = 0; key < KEYS; key++)
		check_key_queue(key);
	check_list(&lock->fifo, NODE_ELIGIBLE, NOBODY, "FIFO");
	for (uint32_t proc = 0; proc < PROCS; proc++) {
		uint32_t listed = 0;

		check_list(&lock->grants[proc], NODE_GRANTED, proc, "grant list");
		for (uint32_t ref = lock->grants[proc].head; ref != 0; ref = exec_queue_node(lock, ref)->list_next)
			listed++;
		if (atomic_load(&lock->granted[proc]) != listed)
			explore_fault("length of the grant list of %u", proc);
	}
}

static bool
anybody_dead(void)
{
	for (uint32_t i = 0; i < PROCS; i++)
		if (world.procs[i].dead)
			return true;
	return false;
}

/* The living know of every place, and what they know is so. */
static void
check_requests(void)
{
	bool unburied = anybody_dead();

	for (uint32_t i = 0; i < REQUESTS; i++) {
		const struct request *request = &world.requests[i];

		if (!request->used || (request->proc != NOBODY && world.procs[request->proc].dead))
			continue;
		if (!is_listed(request))
			explore_fault("a place is lost");
		if (request->proc != NOBODY &&
			request->granted != (state_of(request->ticket.node + 1) == NODE_OWNED))
			explore_fault("owner and table disagree on who runs");
	}
	for (uint32_t ref = 1; ref <= lock->bound; ref++)
		if (state_of(ref) != NODE_FREE && request_of(ref) == NULL && !unburied)
			explore_fault("a place leaked");
}

static void
check_wakes(void)
{
	for (uint32_t ref = 1; ref <= lock->bound; ref++) {
		struct lock_node *node = exec_queue_node(lock, ref);
		const struct proc *proc = &world.procs[node->owner.slot];

		if (state_of(ref) == NODE_GRANTED && scoreboard_is_current(NULL, node->owner) && !proc->dead &&
			!proc->kicked && !proc->taking && !anybody_dead())
			explore_fault("a wake-up is lost");
	}
	if (lock->running > world.limit && lock->running > world.highest_running)
		explore_fault("%u run, the limit is %u", lock->running, world.limit);
	if (lock->running < world.limit && lock->fifo.head != 0 && !world.grant_due)
		explore_fault("one could run and does not");
}

static void
check_invariants(void)
{
	bool whole = *mutex_state(&lock->mutex) == MUTEX_FREE;

	check_keys(whole);
	if (!whole)
		return;
	check_derived();
	check_requests();
	check_wakes();
}

/* --- what the processes do --- */

struct deed {
	uint32_t proc;
	struct request *request;
	uint32_t key;
	bool granted, listed;
	uint32_t taken;
	struct exec_grant grants[2];
};

static struct exec_lock_limits
limits(void)
{
	return (struct exec_lock_limits){ .running = world.limit, .per_sandbox = REQUESTS };
}

static struct proc_ref
ref_of(uint32_t proc)
{
	return (struct proc_ref){ .slot = proc, .generation = world.procs[proc].generation };
}

static void
do_acquire(void *arg)
{
	struct deed *deed = arg;
	struct exec_lock_limits now = limits();
	struct exec_ticket ticket;
	struct err err;

	if (exec_lock_acquire(lock, NULL, &now, ref_of(deed->proc), keys[deed->key].slot, keys[deed->key].lane,
		    (uint64_t)(deed->request - world.requests), &ticket, &deed->granted, &err) < 0)
		explore_fault("refused: %s", err.msg);
	*deed->request = (struct request){ .used = true,
		.granted = deed->granted,
		.proc = (uint8_t)deed->proc,
		.key = (uint8_t)deed->key,
		.ticket = ticket };
	world.grant_due = false;
}

static void
do_release(void *arg)
{
	struct deed *deed = arg;
	struct exec_lock_limits now = limits();

	exec_lock_release(lock, NULL, &now, deed->request->ticket);
	world.gone = deed->request->ticket;
	deed->request->used = false;
	world.grant_due = false;
}

static void
do_keep(void *arg)
{
	struct deed *deed = arg;

	exec_lock_keep(lock, deed->request->ticket);
	deed->request->kept = true;
}

static void
do_take(void *arg)
{
	struct deed *deed = arg;

	deed->taken = exec_lock_take(lock, ref_of(deed->proc), deed->grants, 2);
}

static void
do_adopt(void *arg)
{
	struct deed *deed = arg;
	struct request *request = deed->request;

	if (!exec_lock_adopt(lock, NULL, ref_of(deed->proc), request->ticket, (uint64_t)(request - world.requests),
		    &deed->granted))
		explore_fault("a kept place is lost");
	request->proc = (uint8_t)deed->proc;
	request->granted = deed->granted;
}

static void
do_repair(void *arg)
{
	struct exec_lock_limits now = limits();

	(void)arg;
	exec_lock_repair(lock, NULL, NULL, &now);
	world.grant_due = false;
}

static void
do_restart(void *arg)
{
	exec_lock_section_adopt(lock, SANDBOXES, NODES);
	do_repair(arg);
}

static void
note_grants(struct deed *deed)
{
	for (uint32_t i = 0; i < deed->taken; i++) {
		struct request *request = &world.requests[deed->grants[i].cookie];

		if (!request->used || request->proc != deed->proc || request->granted ||
			request->ticket.number != deed->grants[i].ticket.number)
			explore_fault("granted what was not asked for, or twice");
		request->granted = true;
	}
	world.procs[deed->proc].taking = deed->taken > 0;
}

/* It died in there, or anywhere else. */
static void
note_death(uint32_t proc)
{
	world.procs[proc].dead = true;
	if (*mutex_state(&lock->mutex) == MUTEX_HELD)
		*mutex_state(&lock->mutex) = MUTEX_DEAD;
	world.grant_due = true;
}

/* Its places are gone but the kept ones, which may have been given back just before it died. */
static void
note_burial(uint32_t proc)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		struct request *request = &world.requests[i];

		if (!request->used || request->proc != proc)
			continue;
		request->proc = NOBODY;
		request->granted = false;
		request->used = is_listed(request);
		if (request->used && !request->kept)
			explore_fault("a place of the dead stays");
	}
	world.procs[proc] = (struct proc){ .generation = world.procs[proc].generation };
}

/* --- the actions: what, who, and which place or key --- */

enum verb { ACQUIRE, DRAIN, TAKE, RELEASE, KEEP, ADOPT, DIE, BURY, RESTART, LIMIT, VERBS };

static const char *const verb_names[VERBS] = { "acquires key", "is woken", "takes", "gives back", "keeps", "adopts",
	"dies", "is buried", "the server starts again", "the limit changes" };

static uint32_t
encode(enum verb verb, uint32_t proc, uint32_t what)
{
	return ((uint32_t)verb * PROCS + proc) * REQUESTS + what;
}

static bool
die_in(uint32_t nth, void (*f)(void *arg), struct deed *deed)
{
	if (!explore_die_in(nth, f, deed))
		return false;
	note_death(deed->proc);
	return true;
}

static struct request *
free_request(void)
{
	for (uint32_t i = 0; i < size.requests; i++)
		if (!world.requests[i].used)
			return &world.requests[i];
	return NULL;
}

static bool
act_bury(uint32_t proc, uint32_t nth)
{
	struct proc *p = &world.procs[proc];

	if (!p->dead)
		return false;
	p->generation += 2;
	if (explore_die_in(nth, do_repair, NULL)) {
		/* With the master goes the server. */
		if (*mutex_state(&lock->mutex) == MUTEX_HELD)
			*mutex_state(&lock->mutex) = MUTEX_DEAD;
		p->generation -= 2;
		for (uint32_t i = 0; i < PROCS; i++)
			world.procs[i].dead = true;
		return true;
	}
	note_burial(proc);
	return nth == 0;
}

static bool
act_restart(uint32_t nth)
{
	for (uint32_t i = 0; i < PROCS; i++) {
		if (i < size.procs && !world.procs[i].dead)
			return false;
		world.procs[i].generation += 2;
	}
	if (explore_die_in(nth, do_restart, NULL)) {
		for (uint32_t i = 0; i < PROCS; i++)
			world.procs[i].generation -= 2;
		*mutex_state(&lock->mutex) = MUTEX_DEAD;
		return true;
	}
	for (uint32_t i = 0; i < PROCS; i++)
		note_burial(i);
	return nth == 0;
}

static bool
act_on_request(enum verb verb, struct deed *deed, uint32_t nth)
{
	static void (*const deeds[VERBS])(
		void *arg) = { [RELEASE] = do_release, [KEEP] = do_keep, [ADOPT] = do_adopt };
	const struct request *request = deed->request;

	if (!request->used || request->proc != (verb == ADOPT ? NOBODY : deed->proc) ||
		(verb == KEEP && request->kept))
		return false;
	return die_in(nth, deeds[verb], deed) || nth == 0;
}

/* Who has no job left for a kept place gives it back; the same as far as the lock goes. */
static bool
act_alone(enum verb verb, struct deed *deed, uint32_t nth)
{
	struct proc *proc = &world.procs[deed->proc];

	switch (verb) {
	case ACQUIRE:
		deed->request = free_request();
		if (deed->request == NULL || deed->key >= size.keys)
			return false;
		return die_in(nth, do_acquire, deed) || nth == 0;
	case DRAIN:
		if (!proc->kicked || nth != 0)
			return false;
		proc->kicked = false;
		proc->taking = true;
		return true;
	case TAKE:
		if (!proc->taking)
			return false;
		if (die_in(nth, do_take, deed))
			return true;
		note_grants(deed);
		return nth == 0;
	default:
		if (nth != 0)
			return false;
		note_death(deed->proc);
		return true;
	}
}

static bool
act_by_proc(enum verb verb, uint32_t who, uint32_t what, uint32_t nth)
{
	struct deed deed = { .proc = who, .key = what, .request = &world.requests[what] };

	if (who >= size.procs || world.procs[who].dead || ((nth != 0 || verb == DIE) && !size.deaths))
		return false;
	if (verb == RELEASE || verb == KEEP || verb == ADOPT)
		return act_on_request(verb, &deed, nth);
	if (verb != ACQUIRE && what != 0)
		return false;
	return act_alone(verb, &deed, nth);
}

/* The numbers of those who may run. */
static void
list_running(uint64_t ret_numbers[NODES])
{
	for (uint32_t ref = 1; ref <= NODES; ref++)
		ret_numbers[ref - 1] = ref <= lock->bound && may_run(ref) ? exec_queue_node(lock, ref)->number : 0;
}

/* Who may run now and could not before had become eligible before all that still wait. */
static void
check_turns(const uint64_t before[NODES])
{
	uint64_t after[NODES];

	list_running(after);
	for (uint32_t ref = 1; ref <= lock->bound; ref++)
		for (uint32_t other = 1; other <= lock->bound; other++)
			if (after[ref - 1] != 0 && after[ref - 1] != before[ref - 1] &&
				state_of(other) == NODE_ELIGIBLE &&
				exec_queue_node(lock, other)->eligible < exec_queue_node(lock, ref)->eligible)
				explore_fault("one was granted before an older one");
}

static bool
act(uint32_t action, uint32_t nth)
{
	enum verb verb = (enum verb)(action / REQUESTS / PROCS);
	uint32_t who = action / REQUESTS % PROCS, what = action % REQUESTS;
	uint64_t before[NODES];
	bool done;

	list_running(before);
	if (verb < BURY)
		done = act_by_proc(verb, who, what, nth);
	else if (what != 0 || (verb != BURY && who != 0))
		done = false;
	else if (verb == BURY)
		done = act_bury(who, nth);
	else if (verb == RESTART)
		done = act_restart(nth);
	else if ((done = size.limits && nth == 0)) {
		world.limit = world.limit % 2 + 1;
		world.grant_due = world.grant_due || world.limit == 2;
	}
	if (!done)
		return false;
	check_invariants();
	check_turns(before);
	world.highest_running = 0;
	for (uint32_t ref = 1; ref <= lock->bound; ref++)
		world.highest_running += may_run(ref);
	return true;
}

static void
name(uint32_t action, char *buf, size_t buf_size)
{
	snprintf(buf, buf_size, "%u %s %u", action / REQUESTS % PROCS, verb_names[action / REQUESTS / PROCS],
		action % REQUESTS);
}

static void
start(void)
{
	memset(&world, 0, sizeof world);
	exec_lock_section_init(lock, SANDBOXES, NODES);
	lock->number = 0;
	world.limit = 1;
	for (uint32_t i = 0; i < PROCS; i++)
		world.procs[i].generation = 1;
}

/* --- one state or another --- */

static uint64_t
mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* How many of the used nodes are before this one, by ticket or by eligibility: the numbers themselves only grow. */
static uint32_t
rank(uint32_t of, bool eligible)
{
	struct lock_node *it = exec_queue_node(lock, of);
	uint32_t n = 0;

	for (uint32_t ref = 1; ref <= lock->bound; ref++) {
		struct lock_node *node = exec_queue_node(lock, ref);

		n += state_of(ref) != NODE_FREE &&
			(eligible ? node->eligible < it->eligible : node->number < it->number);
	}
	return n;
}

/* The processes are alike: which is which is told by what they have, not by their numbers. */
static void
label(uint32_t ret_labels[PROCS])
{
	uint64_t marks[PROCS];

	for (uint32_t i = 0; i < PROCS; i++)
		marks[i] = world.procs[i].dead * 4 + world.procs[i].kicked * 2 + world.procs[i].taking;
	for (uint32_t ref = 1; ref <= lock->bound; ref++)
		if (state_of(ref) != NODE_FREE && exec_queue_node(lock, ref)->owner.slot < PROCS)
			marks[exec_queue_node(lock, ref)->owner.slot] += mix(13, rank(ref, false));
	for (uint32_t i = 0; i < REQUESTS; i++)
		if (world.requests[i].used && world.requests[i].proc < PROCS && !is_listed(&world.requests[i]))
			marks[world.requests[i].proc] += mix(17, 1);
	for (uint32_t i = 0; i < PROCS; i++) {
		ret_labels[i] = 0;
		for (uint32_t j = 0; j < PROCS; j++)
			ret_labels[i] += marks[j] < marks[i] || (marks[j] == marks[i] && j < i);
	}
}

static uint64_t
hash_node(uint32_t ref, const uint32_t labels[PROCS])
{
	struct lock_node *node = exec_queue_node(lock, ref);
	const struct request *request = request_of(ref);
	uint64_t hash = mix(state_of(ref), node->sandbox_slot * 2 + node->lane);

	hash = mix(hash, labels[node->owner.slot] * 2 + scoreboard_is_current(NULL, node->owner));
	hash = mix(hash, atomic_load_explicit(&node->kept, memory_order_relaxed));
	if (state_of(ref) == NODE_ELIGIBLE)
		hash = mix(hash, rank(ref, true) + 100);
	if (request != NULL)
		hash = mix(hash,
			7 + request->granted * 2 + request->kept * 4 +
				(request->proc == NOBODY ? NOBODY : labels[request->proc]) * 8);
	return hash;
}

static uint64_t
hash(void)
{
	uint32_t labels[PROCS];
	uint64_t sum = mix(*mutex_state(&lock->mutex), world.limit * 2 + world.grant_due);

	label(labels);
	for (uint32_t i = 0; i < PROCS; i++)
		sum += mix(labels[i], world.procs[i].dead * 4 + world.procs[i].kicked * 2 + world.procs[i].taking);
	for (uint32_t place = 0; place < NODES; place++)
		for (uint32_t ref = 1; ref <= lock->bound; ref++)
			if (state_of(ref) != NODE_FREE && rank(ref, false) == place)
				sum = mix(sum, hash_node(ref, labels));
	/* What the dead believed. */
	for (uint32_t i = 0; i < REQUESTS; i++)
		if (world.requests[i].used && !is_listed(&world.requests[i]))
			sum += mix(19, world.requests[i].proc == NOBODY ? NOBODY : labels[world.requests[i].proc]);
	return sum;
}

/* --- from each state, all comes to its end --- */

static void
finish_one(uint32_t proc)
{
	struct deed deed = { .proc = proc };

	for (uint32_t i = 0; i < REQUESTS; i++) {
		deed.request = &world.requests[i];
		if (deed.request->used && deed.request->proc == NOBODY)
			do_adopt(&deed);
		if (deed.request->used && deed.request->proc == proc && deed.request->granted)
			do_release(&deed);
	}
	if (!world.procs[proc].kicked && !world.procs[proc].taking)
		return;
	world.procs[proc].kicked = false;
	do {
		do_take(&deed);
		note_grants(&deed);
	} while (deed.taken > 0);
}

static void
check(void)
{
	uint32_t dead = 0;
	struct exec_ticket wrong = world.gone;

	for (uint32_t i = 0; i < size.procs; i++)
		dead += world.procs[i].dead;
	if (dead == size.procs)
		act_restart(0);
	for (uint32_t i = 0; i < size.procs; i++)
		act_bury(i, 0);
	/* What names nothing does nothing. */
	exec_lock_keep(lock, wrong);
	exec_lock_release(lock, NULL, &(struct exec_lock_limits){ .running = world.limit }, wrong);
	world.grant_due = false;
	check_invariants();
	for (uint32_t round = 0; round < 2 * REQUESTS + 2; round++)
		for (uint32_t i = 0; i < size.procs; i++)
			finish_one(i);
	for (uint32_t i = 0; i < REQUESTS; i++)
		if (world.requests[i].used)
			explore_fault("a place waits for ever");
	check_invariants();
	if (lock->used != 0)
		explore_fault("%u places leaked", lock->used);
}

static void
explore_all(const char *what)
{
	const char *wanted = getenv("ORCHARD_MODEL_STATES");
	const struct explore_system system = { .memory = &world,
		.size = sizeof world,
		.actions = encode(VERBS, 0, 0),
		.start = start,
		.act = act,
		.check = check,
		.hash = hash,
		.name = name };
	struct explore_result result;

	assert_true(exec_lock_section_size(SANDBOXES, NODES) <= SECTION);
	explore(&system, wanted != NULL ? (uint32_t)strtoul(wanted, NULL, 10) : 120000, &result);
	fprintf(stderr, "%s: %u states%s, %u steps deep, %llu transitions\n", what, result.states,
		result.complete ? " (all there are)" : "", result.depth, (unsigned long long)result.transitions);
	assert_true(result.states > 1000);
}

static void
test_living_processes_share_three_lanes(void **state)
{
	(void)state;
	size.procs = 2;
	size.keys = 3;
	size.requests = 4;
	size.limits = true;
	size.deaths = false;
	explore_all("two processes, three lanes");
}

static void
test_deaths_in_one_lane(void **state)
{
	(void)state;
	size.procs = 2;
	size.keys = 1;
	size.requests = 3;
	size.limits = false;
	size.deaths = true;
	explore_all("deaths in one lane");
}

static void
test_deaths_of_three_processes_in_two_lanes(void **state)
{
	(void)state;
	size.procs = 3;
	size.keys = 2;
	size.requests = 3;
	size.limits = false;
	size.deaths = true;
	explore_all("deaths of three processes, two lanes");
}

static void
test_deaths_while_the_limit_changes(void **state)
{
	(void)state;
	size.procs = 2;
	size.keys = 3;
	size.requests = 4;
	size.limits = true;
	size.deaths = true;
	explore_all("deaths, three lanes, changing limit");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_living_processes_share_three_lanes),
		cmocka_unit_test(test_deaths_in_one_lane),
		cmocka_unit_test(test_deaths_of_three_processes_in_two_lanes),
		cmocka_unit_test(test_deaths_while_the_limit_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
