/*
 * kube_auth.h - the credentials of this moment.
 *
 * A token in a file is read again when the file has changed; a plugin's credentials are kept until they expire or the
 * API server refuses them. Nobody waits in here: whoever gets KUBE_AUTH_WAIT is told when to look again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_AUTH_H
#define ORCHARD_KUBE_KUBE_AUTH_H

#include "kube/kube_config_impl.h"

#include <stdbool.h>
#include <stdint.h>

struct event_base;
struct kube_auth;

enum kube_auth_state { KUBE_AUTH_READY, KUBE_AUTH_WAIT, KUBE_AUTH_FAILED };

/* Borrowed until the next call. */
struct kube_identity {
	const char *token; /* NULL: none */
	const struct kube_blob *cert, *key; /* data NULL: none */
	uint64_t number; /* another one for each other identity */
};

/* From the loop: what KUBE_AUTH_WAIT was said to is decided. */
typedef void kube_auth_f(void *arg);

/* config is borrowed. Never NULL. */
struct kube_auth *
kube_auth_new(struct event_base *base, const struct kube_config *config, kube_auth_f *changed, void *arg);
void kube_auth_free(struct kube_auth *auth);

/* FAILED: *err says why; ask again later. */
enum kube_auth_state kube_auth_get(struct kube_auth *auth, struct kube_identity *ret_identity, struct err *err);
/* The API server said 401 to that identity. True: there may be another one now, so that it is worth asking again. */
bool kube_auth_refused(struct kube_auth *auth, uint64_t number);

#endif
