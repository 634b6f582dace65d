/* late_store.c - put in front of the real stores by the linker (--wrap). */
/* SPDX-License-Identifier: MIT */
#include "late_store.h"
#include "backend/job_store.h"
#include "backend/key_store.h"
#include "base/alloc.h"
#include "base/err.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

void __real_job_store_put_spec(struct job_store *, const char *, struct json_object *, job_store_put_f *, void *);
void __real_job_store_get_spec(
	struct job_store *, const char *, const struct record_location *, job_store_get_f *, void *);
void __real_job_store_put_result(
	struct job_store *, const char *, struct json_object *, const struct job_life *, job_store_put_f *, void *);
void __real_job_store_get_result(struct job_store *, const char *, job_store_get_f *, void *);
void __real_job_store_forget(struct job_store *, const void *);
void __real_job_store_flush(struct job_store *);
void __real_key_store_get(struct key_store *, const struct record_key *, key_store_f *, void *);
void __real_key_store_put(
	struct key_store *, const struct record_key *, const struct key_claim *, double, key_store_f *, void *);
void __real_key_store_renew(
	struct key_store *, const struct record_key *, const struct key_claim *, double, key_store_f *, void *);

enum late_kind { PUT_SPEC, GET_SPEC, PUT_RESULT, GET_RESULT, KEY_GET, KEY_PUT, KEY_RENEW };

struct late {
	TAILQ_ENTRY(late) link;
	enum late_kind kind;
	uint64_t turn; /* in which it was asked for */
	void *store;
	char job_id[64];
	struct json_object *value; /* owned */
	struct record_location place;
	struct job_life life;
	struct record_key key;
	struct key_claim claim;
	double expires_at;
	job_store_put_f *put_done;
	job_store_get_f *get_done;
	key_store_f *key_done;
	void *arg;
};

static TAILQ_HEAD(, late) queue = TAILQ_HEAD_INITIALIZER(queue);
static struct event_base *loop; /* NULL: they answer at once */
static bool armed;
static bool holding;
static uint64_t turn;

static void
put_ignored(const struct record_location *place, const struct err *why, void *arg)
{
	(void)place;
	(void)why;
	(void)arg;
}

static void
late_do(struct late *late)
{
	switch (late->kind) {
	case PUT_SPEC:
		__real_job_store_put_spec(late->store, late->job_id, late->value, late->put_done, late->arg);
		break;
	case GET_SPEC:
		__real_job_store_get_spec(late->store, late->job_id, &late->place, late->get_done, late->arg);
		break;
	case PUT_RESULT:
		__real_job_store_put_result(
			late->store, late->job_id, late->value, &late->life, late->put_done, late->arg);
		break;
	case GET_RESULT:
		__real_job_store_get_result(late->store, late->job_id, late->get_done, late->arg);
		break;
	case KEY_GET:
		__real_key_store_get(late->store, &late->key, late->key_done, late->arg);
		break;
	case KEY_PUT:
		__real_key_store_put(
			late->store, &late->key, &late->claim, late->expires_at, late->key_done, late->arg);
		break;
	case KEY_RENEW:
		__real_key_store_renew(
			late->store, &late->key, &late->claim, late->expires_at, late->key_done, late->arg);
		break;
	}
}

static void
late_free(struct late *late)
{
	json_object_put(late->value);
	free(late);
}

static void late_on_soon(evutil_socket_t fd, short what, void *arg);

/* An event of the loop's own: it goes with the loop. */
static void
late_arm(void)
{
	const struct timeval now = { 0 };

	if (!armed && event_base_once(loop, -1, EV_TIMEOUT, late_on_soon, NULL, &now) != 0)
		abort();
	armed = true;
}

/* What is asked for meanwhile is the next turn's. */
static void
late_do_all(void)
{
	struct late *late;

	turn++;
	while ((late = TAILQ_FIRST(&queue)) != NULL && late->turn < turn) {
		TAILQ_REMOVE(&queue, late, link);
		late_do(late);
		late_free(late);
	}
	if (!TAILQ_EMPTY(&queue) && !holding)
		late_arm();
}

static void
late_on_soon(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	armed = false;
	if (!holding)
		late_do_all();
}

void
late_store_start(struct event_base *base)
{
	holding = false;
	armed = false;
	loop = base;
}

void
late_store_hold(void)
{
	holding = true;
}

void
late_store_release(void)
{
	holding = false;
	late_do_all();
}

int
late_store_held(void)
{
	struct late *late;
	int n = 0;

	TAILQ_FOREACH(late, &queue, link)
	n++;
	return n;
}

static void
late_add(const struct late *ask)
{
	struct late *late = alloc_zero(1, sizeof *late);

	*late = *ask;
	late->turn = turn;
	json_object_get(late->value);
	TAILQ_INSERT_TAIL(&queue, late, link);
	if (loop == NULL)
		late_do_all();
	else if (!holding)
		late_arm();
}

static void
late_add_job(struct late *late, const char *job_id)
{
	snprintf(late->job_id, sizeof late->job_id, "%s", job_id);
	late_add(late);
}

/* --- in front of the real ones --- */

void __wrap_job_store_put_spec(
	struct job_store *store, const char *job_id, struct json_object *spec, job_store_put_f *done, void *arg);
void
__wrap_job_store_put_spec(
	struct job_store *store, const char *job_id, struct json_object *spec, job_store_put_f *done, void *arg)
{
	late_add_job(
		&(struct late){ .kind = PUT_SPEC, .store = store, .value = spec, .put_done = done, .arg = arg },
		job_id);
}

void __wrap_job_store_get_spec(struct job_store *store, const char *job_id, const struct record_location *place,
	job_store_get_f *done, void *arg);
void
__wrap_job_store_get_spec(struct job_store *store, const char *job_id, const struct record_location *place,
	job_store_get_f *done, void *arg)
{
	late_add_job(
		&(struct late){ .kind = GET_SPEC, .store = store, .place = *place, .get_done = done, .arg = arg },
		job_id);
}

void __wrap_job_store_put_result(struct job_store *store, const char *job_id, struct json_object *job,
	const struct job_life *life, job_store_put_f *done, void *arg);
void
__wrap_job_store_put_result(struct job_store *store, const char *job_id, struct json_object *job,
	const struct job_life *life, job_store_put_f *done, void *arg)
{
	struct late late = {
		.kind = PUT_RESULT, .store = store, .value = job, .life = *life, .put_done = done, .arg = arg
	};

	late_add_job(&late, job_id);
}

void __wrap_job_store_get_result(struct job_store *store, const char *job_id, job_store_get_f *done, void *arg);
void
__wrap_job_store_get_result(struct job_store *store, const char *job_id, job_store_get_f *done, void *arg)
{
	late_add_job(&(struct late){ .kind = GET_RESULT, .store = store, .get_done = done, .arg = arg }, job_id);
}

void __wrap_key_store_get(struct key_store *store, const struct record_key *key, key_store_f *done, void *arg);
void
__wrap_key_store_get(struct key_store *store, const struct record_key *key, key_store_f *done, void *arg)
{
	late_add(&(struct late){ .kind = KEY_GET, .store = store, .key = *key, .key_done = done, .arg = arg });
}

static void
late_add_claim(struct late *late, const struct record_key *key, const struct key_claim *claim)
{
	late->key = *key;
	late->claim = *claim;
	late->value = claim->answer;
	late_add(late);
}

void __wrap_key_store_put(struct key_store *store, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg);
void
__wrap_key_store_put(struct key_store *store, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg)
{
	struct late late = {
		.kind = KEY_PUT, .store = store, .expires_at = expires_at, .key_done = done, .arg = arg
	};

	late_add_claim(&late, key, claim);
}

void __wrap_key_store_renew(struct key_store *store, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg);
void
__wrap_key_store_renew(struct key_store *store, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg)
{
	struct late late = {
		.kind = KEY_RENEW, .store = store, .expires_at = expires_at, .key_done = done, .arg = arg
	};

	late_add_claim(&late, key, claim);
}

static bool
is_put(const struct late *late)
{
	return late->kind == PUT_SPEC || late->kind == PUT_RESULT;
}

/* Of the keys, too: nothing has the same arg there. */
void __wrap_job_store_forget(struct job_store *store, const void *arg);
void
__wrap_job_store_forget(struct job_store *store, const void *arg)
{
	struct late *late, *next;

	for (late = TAILQ_FIRST(&queue); late != NULL; late = next) {
		next = TAILQ_NEXT(late, link);
		if (late->arg != arg)
			continue;
		if (is_put(late)) {
			late->put_done = put_ignored;
			continue;
		}
		TAILQ_REMOVE(&queue, late, link);
		late_free(late);
	}
	__real_job_store_forget(store, arg);
}

static void
late_fail(struct late *late)
{
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this store is being left");
	if (is_put(late))
		late_do(late);
	else if (late->key_done != NULL)
		late->key_done(NULL, &err, late->arg);
	else
		late->get_done(NULL, &err, late->arg);
}

void __wrap_job_store_flush(struct job_store *store);
void
__wrap_job_store_flush(struct job_store *store)
{
	struct late *late;

	do {
		while ((late = TAILQ_FIRST(&queue)) != NULL) {
			TAILQ_REMOVE(&queue, late, link);
			late_fail(late);
			late_free(late);
		}
		__real_job_store_flush(store);
	} while (!TAILQ_EMPTY(&queue));
}
