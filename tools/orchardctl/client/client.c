/*
 * client.c - sending, waiting, and trying again.
 *
 * What got no answer, and what the server was too busy for, is sent again with growing pauses. That is harmless: a
 * POST that makes something carries one Idempotency-Key in all its tries, and everything else changes nothing when
 * it is done twice.
 */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/client/client_impl.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/command.h"

#include <math.h>
#include <poll.h>
#include <sys/random.h>

#define FIRST_PAUSE   0.1
#define LONGEST_PAUSE 5.0

enum { FDS_MAX = 8 };

struct client *
client_create(const struct server *server, double retry_seconds, bool quiet)
{
	struct client *client = alloc_zero(1, sizeof *client);

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		abort();
	client->multi = must_alloc(curl_multi_init());
	client->url = alloc_string(server->url);
	client->key_header = server->key != NULL ? alloc_format("X-API-Key: %s", server->key) : NULL;
	client->ca_file = server->ca_file != NULL ? alloc_string(server->ca_file) : NULL;
	client->retry_seconds = retry_seconds;
	client->quiet = quiet;
	return client;
}

void
client_close(struct client *client)
{
	if (client == NULL)
		return;
	curl_multi_cleanup(client->multi);
	cleanup_secret(&client->key_header);
	free(client->ca_file);
	free(client->url);
	free(client);
	curl_global_cleanup();
}

void
client_watch_signals(struct client *client, struct signals *signals)
{
	client->signals = signals;
}

/* Whether one has ended. */
static bool
take_done(struct client *client)
{
	struct CURLMsg *msg;
	bool any = false;
	int left;

	while ((msg = curl_multi_info_read(client->multi, &left)) != NULL) {
		struct transfer *transfer;

		if (msg->msg != CURLMSG_DONE)
			continue;
		if (curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &transfer) != CURLE_OK)
			abort();
		transfer->done = true;
		transfer->code = msg->data.result;
		any = true;
	}
	return any;
}

static void
wait_for(struct client *client, struct pollfd *fds, unsigned count, int timeout_ms)
{
	struct curl_waitfd waits[FDS_MAX + 1];
	unsigned all = 0;

	for (; all < count; all++)
		waits[all] = (struct curl_waitfd){ .fd = fds[all].fd, .events = CURL_WAIT_POLLIN };
	if (client->signals != NULL)
		waits[all++] = (struct curl_waitfd){ .fd = client->signals->fd, .events = CURL_WAIT_POLLIN };
	if (curl_multi_poll(client->multi, waits, all, timeout_ms, NULL) != CURLM_OK)
		abort();
	for (unsigned i = 0; i < count; i++)
		fds[i].revents = waits[i].revents != 0 ? POLLIN : 0;
	if (client->signals != NULL)
		signals_take(client->signals);
}

static bool
go_on(struct client *client)
{
	int running;

	if (curl_multi_perform(client->multi, &running) != CURLM_OK)
		abort();
	return take_done(client);
}

void
client_step(struct client *client, struct pollfd *fds, unsigned count, int timeout_ms)
{
	if (count > FDS_MAX)
		abort();
	/* Who has just ended is not to wait for what comes next. */
	wait_for(client, fds, count, go_on(client) ? 0 : timeout_ms);
	go_on(client);
}

void
retry_start(struct retry *retry, double seconds)
{
	*retry = (struct retry){ .end_ms = clock_boot_ms() + (int64_t)(seconds * 1000), .pause_s = FIRST_PAUSE };
}

int64_t
retry_next(struct retry *retry, double asked_s)
{
	uint32_t random = 0;
	double pause;
	int64_t ms;

	if (getrandom(&random, sizeof random, 0) < 0)
		random = UINT32_MAX / 2;
	/* Many clients that were refused at once don't come back at once. */
	pause = fmax(retry->pause_s * (0.5 + 0.5 * random / UINT32_MAX), asked_s);
	retry->pause_s = fmin(retry->pause_s * 2, LONGEST_PAUSE);
	ms = (int64_t)(pause * 1000) + 1;
	return clock_boot_ms() + ms < retry->end_ms ? ms : -1;
}

bool
client_pause(struct client *client, int64_t ms)
{
	unsigned before = client->signals != NULL ? client->signals->count : 0;
	int64_t end = clock_boot_ms() + ms;

	while ((ms = end - clock_boot_ms()) > 0) {
		client_step(client, NULL, 0, ms < 60000 ? (int)ms : 60000);
		if (client->signals != NULL && client->signals->count != before)
			return false;
	}
	return true;
}

/* One try. */
static int
client_try(struct client *client, const struct request *request, const char *key, struct answer *answer,
	bool *ret_again, struct err *err)
{
	unsigned before = client->signals != NULL ? client->signals->count : 0;
	struct transfer *transfer = client_start(client, request, key, answer);

	while (!transfer->done && (client->signals == NULL || client->signals->count == before))
		client_step(client, NULL, 0, 60000);
	return client_end(transfer, ret_again, err);
}

int
client_call(struct client *client, const struct request *request, struct answer *ret_answer, struct err *err)
{
	AUTO_ANSWER unwanted = { 0 };
	struct answer *answer = ret_answer != NULL ? ret_answer : &unwanted;
	char key[ID_UUID_SIZE];
	struct retry retry;
	bool told = client->quiet;

	id_uuid4(key);
	retry_start(&retry, client->retry_seconds);
	for (;;) {
		bool again, once_only = request->no_retry || request->read != NULL;
		int64_t pause;
		int rc = client_try(client, request, request->once ? key : NULL, answer, &again, err);

		if (rc == 0 || !again || once_only || (answer->status / 100 == 2 && request->on_body != NULL))
			return rc;
		pause = retry_next(&retry, answer->retry_after);
		if (pause < 0)
			return rc;
		if (!told)
			ctl_error("%s\ntrying again", err->msg);
		told = true;
		answer_fini(answer);
		if (!client_pause(client, pause))
			return err_set(err, ERR_STALE, "interrupted");
	}
}

struct json_object *
client_get(struct client *client, const char *path, struct err *err)
{
	const struct request request = { .path = path };
	AUTO_ANSWER answer = { 0 };

	if (client_call(client, &request, &answer, err) < 0)
		return NULL;
	if (answer.json == NULL) {
		err_set(err, ERR_INTERNAL, "%s%s answered, but not as an Orchard server does", client->url, path);
		return NULL;
	}
	return STEAL_PTR(answer.json);
}
