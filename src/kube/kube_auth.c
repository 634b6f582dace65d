/*
 * kube_auth.c - which credentials hold now, and when to get others.
 *
 * A plugin runs once at a time, not more often than its failures and refusals allow, and before its credentials have
 * expired if they tell when: those stay in use meanwhile.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_auth.h"
#include "kube/kube_backoff.h"
#include "kube/kube_credential.h"
#include "kube/kube_program.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { PLUGIN_TIMEOUT_MS = 60000, EARLY_MS = 30000, REFUSED_PAUSE_MS = 10000 };
enum { FAILED_FIRST_MS = 500, FAILED_MAX_MS = 60000 };

/* A file as it was when it was read: a service account's token changes by a link that changes. */
struct stamp {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

struct kube_auth {
	struct event_base *base;
	const struct kube_config *config;
	kube_auth_f *changed;
	void *arg;
	uint64_t number;
	char *token; /* of the file */
	struct stamp stamp; /* of that token */
	struct kube_credential credential; /* of the plugin */
	bool has_credential;
	int64_t got_ms; /* when it came */
	int64_t refused_ms; /* when it was last dropped for a refusal; 0: never */
	struct kube_program *program; /* runs */
	struct kube_backoff backoff;
	int64_t failed_until_ms; /* the plugin is not run before */
	struct err failed;
};

struct kube_auth *
kube_auth_new(struct event_base *base, const struct kube_config *config, kube_auth_f *changed, void *arg)
{
	struct kube_auth *auth = alloc_zero(1, sizeof *auth);

	auth->base = base;
	auth->config = config;
	auth->changed = changed;
	auth->arg = arg;
	auth->backoff = (struct kube_backoff){ .first_ms = FAILED_FIRST_MS, .max_ms = FAILED_MAX_MS };
	return auth;
}

void
kube_auth_free(struct kube_auth *auth)
{
	if (auth == NULL)
		return;
	if (auth->program != NULL)
		kube_program_kill(auth->program);
	cleanup_secret(&auth->token);
	kube_credential_fini(&auth->credential);
	free(auth);
}

static int
token_read(struct kube_auth *auth, const char *path, struct err *err)
{
	struct kube_blob blob = { 0 };
	AUTO_SECRET char *token = NULL;
	int result;

	if (kube_config_read(path, &blob, err) != 0)
		return -1;
	result = kube_config_token(blob.data, blob.len, path, &token, err);
	kube_blob_fini(&blob);
	if (result != 0)
		return -1;
	if (auth->token == NULL || strcmp(auth->token, token) != 0)
		auth->number++;
	cleanup_secret(&auth->token);
	auth->token = STEAL_PTR(token);
	return 0;
}

/* The one that was read before holds while the file cannot be read: it is on its way to be another. */
static int
token_get(struct kube_auth *auth, struct err *err)
{
	const char *path = auth->config->token_file;
	struct stamp stamp;
	struct stat st;
	int result;

	if (stat(path, &st) != 0)
		return auth->token != NULL ? 0 : err_set_errno(err, errno, "token file %s", path);
	memset(&stamp, 0, sizeof stamp);
	stamp.dev = st.st_dev;
	stamp.ino = st.st_ino;
	stamp.size = st.st_size;
	stamp.changed = st.st_mtim;
	if (auth->token != NULL && memcmp(&stamp, &auth->stamp, sizeof stamp) == 0)
		return 0;
	result = token_read(auth, path, err);
	if (result == 0)
		auth->stamp = stamp;
	return auth->token != NULL ? 0 : result;
}

static void
plugin_failed(struct kube_auth *auth, const struct err *why)
{
	auth->failed = *why;
	auth->failed_until_ms = clock_boot_ms() + kube_backoff_next(&auth->backoff, -1);
}

static void
plugin_on_done(const char *text, size_t len, const struct err *why, void *arg)
{
	struct kube_auth *auth = arg;
	struct kube_credential credential = { 0 };
	struct err err;

	auth->program = NULL;
	if (why == NULL &&
		kube_credential_parse(text, len, auth->config->plugin->version, &credential, &err) != 0) {
		err_prefix(&err, "%.100s", auth->config->plugin->command);
		why = &err;
	}
	/* Run again at once, it would say the same, again and again. */
	if (why == NULL && kube_credential_left_ms(&credential) <= 0) {
		kube_credential_fini(&credential);
		err_set(&err, ERR_UNAVAILABLE, "%.100s printed credentials that have expired: is the clock right?",
			auth->config->plugin->command);
		why = &err;
	}
	if (why != NULL) {
		plugin_failed(auth, why);
	} else {
		kube_credential_fini(&auth->credential);
		auth->credential = credential;
		auth->has_credential = true;
		auth->got_ms = clock_boot_ms();
		auth->number++;
		auth->backoff.tries = 0;
	}
	auth->changed(auth->arg);
}

static void
plugin_start(struct kube_auth *auth)
{
	struct err err;

	if (auth->program != NULL || clock_boot_ms() < auth->failed_until_ms)
		return;
	auth->program = kube_program_start(
		auth->base, auth->config->plugin, PLUGIN_TIMEOUT_MS, plugin_on_done, auth, &err);
	if (auth->program == NULL)
		plugin_failed(auth, &err);
}

static enum kube_auth_state
plugin_get(struct kube_auth *auth, struct err *err)
{
	int64_t left = auth->has_credential ? kube_credential_left_ms(&auth->credential) : 0;

	/* What is short-lived by nature is used up before it is renewed. */
	if (left <= 0 || (left < EARLY_MS && clock_boot_ms() - auth->got_ms >= EARLY_MS))
		plugin_start(auth);
	if (left > 0)
		return KUBE_AUTH_READY;
	if (auth->program != NULL)
		return KUBE_AUTH_WAIT;
	*err = auth->failed;
	return KUBE_AUTH_FAILED;
}

enum kube_auth_state
kube_auth_get(struct kube_auth *auth, struct kube_identity *ret_identity, struct err *err)
{
	const struct kube_config *config = auth->config;
	struct kube_identity identity = { .token = config->token, .cert = &config->cert, .key = &config->key };

	if (config->plugin != NULL) {
		enum kube_auth_state state = plugin_get(auth, err);

		if (state != KUBE_AUTH_READY)
			return state;
		identity.token = auth->credential.token;
		if (auth->credential.cert.data != NULL) {
			identity.cert = &auth->credential.cert;
			identity.key = &auth->credential.key;
		}
	} else if (config->token_file != NULL) {
		if (token_get(auth, err) != 0)
			return KUBE_AUTH_FAILED;
		identity.token = auth->token;
	}
	identity.number = auth->number;
	*ret_identity = identity;
	return KUBE_AUTH_READY;
}

bool
kube_auth_refused(struct kube_auth *auth, uint64_t number)
{
	int64_t now = clock_boot_ms();
	struct err ignored;

	if (number != auth->number)
		return true;
	if (auth->config->plugin != NULL) {
		/* Credentials that are refused again and again are no reason to run a program each time. */
		if (auth->refused_ms != 0 && now - auth->refused_ms < REFUSED_PAUSE_MS)
			return false;
		auth->refused_ms = now;
		kube_credential_fini(&auth->credential);
		auth->has_credential = false;
		return true;
	}
	if (auth->config->token_file == NULL)
		return false;
	return token_read(auth, auth->config->token_file, &ignored) == 0 && auth->number != number;
}
