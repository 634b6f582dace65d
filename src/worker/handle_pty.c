/*
 * handle_pty.c - GET /sandboxes/{id}/exec/pty: a terminal's handshake, refused here or handed to the gateway.
 *
 * All that can be refused is refused with a status, before there is a WebSocket. The gateway answers 101.
 */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "conf/config.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_ready.h"
#include "http/http_server.h"
#include "ipc/shm.h"
#include "ipc/terminal_msg.h"
#include "worker/api.h"
#include "worker/handshake.h"
#include "worker/query.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

struct opening {
	struct request *request;
	struct sandbox_ready *ready;
	struct terminal_offer offer;
};

static bool
gateway_is_there(struct shm_scoreboard *board)
{
	struct proc_info info;

	for (uint32_t slot = 0; slot < SHM_PROCESSES; slot++)
		if (scoreboard_info(board, slot, &info) && info.role == PROC_GATEWAY && info.state == PROC_READY)
			return true;
	return false;
}

/* Why no terminal can be opened now, or NULL. */
static const char *
find_hindrance(struct api *api)
{
	struct shm_scoreboard *board = shm_scoreboard(api->shm);

	if (api->draining)
		return "this worker process is stopping; ask again";
	if (scoreboard_sum(board, METRIC_TERMINALS) >= api->config->max_terminals)
		return "too many terminals are open; close some, or raise max_terminals";
	if (!gateway_is_there(board))
		return "the process that serves terminals is being started; try again";
	return NULL;
}

/* True when the request has been answered. */
static bool
refuse_hindered(struct request *request)
{
	const char *why = find_hindrance(request->api);

	if (why == NULL)
		return false;
	api_count(request->api, METRIC_TERMINALS_REFUSED, 1);
	respond_problem(request, PROBLEM_UNAVAILABLE, "%s", why);
	return true;
}

static void
hand_over(struct request *request, struct terminal_offer *offer)
{
	struct log_ctx ctx = request_log_ctx(request);
	struct http_taken taken;
	struct err err;
	size_t len;

	if (http_exchange_take(request->exchange, &taken, &err) != 0) {
		respond_err(request, &err);
		return;
	}
	len = evbuffer_get_length(taken.read);
	offer->sent_ms = clock_boot_ms();
	offer->early_len = (uint32_t)len;
	if (len > TERMINAL_EARLY_MAX)
		err_set(&err, ERR_INVALID, "too much was sent before the handshake was answered");
	else if (terminal_offer_send(
			 request->api->terminal_fd, offer, evbuffer_pullup(taken.read, -1), taken.fd, &err) == 0)
		err.code = ERR_NONE;
	log_write(err.code == ERR_NONE ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, &ctx, "terminal %s%s",
		err.code == ERR_NONE ? "handed to the gateway" : "refused: ", err.code == ERR_NONE ? "" : err.msg);
	if (err.code == ERR_NONE) {
		close(taken.fd);
	} else {
		api_count(request->api, METRIC_TERMINALS_REFUSED, 1);
		terminal_refuse(taken.fd, request->id, err.msg);
	}
	api_count_response(request->api, err.code == ERR_NONE ? 101 : 503);
	http_head_free(taken.head);
	evbuffer_free(taken.read);
	request_free(request);
}

static void
on_ready(uint32_t slot, const struct sandbox_record *record, const struct err *why, void *arg)
{
	AUTO_FREE struct opening *opening = arg;
	struct request *request = opening->request;
	struct terminal_offer *offer = &opening->offer;

	request_wait_done(request);
	if (why != NULL) {
		respond_err(request, why);
		return;
	}
	if (refuse_hindered(request))
		return;
	offer->version = TERMINAL_MSG_VERSION;
	offer->slot = slot;
	strcpy(offer->sandbox_id, record->id);
	strcpy(offer->sandbox_uid, record->uid);
	strcpy(offer->tenant, record->tenant);
	strcpy(offer->endpoint, record->endpoint);
	strcpy(offer->token, record->agent_token);
	strcpy(offer->request_id, request->id);
	hand_over(request, offer);
	explicit_bzero(offer, sizeof *offer);
}

static void
wait_cancel(void *wait)
{
	struct opening *opening = wait;

	sandbox_ready_cancel(opening->ready);
	free(opening);
}

static const struct request_wait_ops wait_ops = { .cancel = wait_cancel };

/* ?session= and ?offset= of an earlier terminal. */
static bool
read_session(struct request *request, struct terminal_offer *offer)
{
	static const struct respond_fault fault = { PROBLEM_INVALID_REQUEST, "query", "session", "value_error" };
	AUTO_FREE char *session = NULL;

	offer->offset = -1;
	if (!query_text(request, "session", &session) || !query_offset(request, "offset", &offer->offset))
		return false;
	if (session == NULL)
		return true;
	if (!id_is_uuid(session)) {
		respond_fault(request, &fault, "must be the session of a terminal that was opened with detach");
		return false;
	}
	strcpy(offer->session, session);
	return true;
}

void
handle_pty(struct request *request)
{
	struct api *api = request->api;
	AUTO_FREE struct opening *opening = alloc_zero(1, sizeof *opening);
	struct sandbox_record record;
	struct handshake handshake;
	struct err err;

	if (sandbox_get(api->service, request->tenant, request->match.id, &record, &err) != 0) {
		respond_err(request, &err);
		return;
	}
	if (!handshake_read(request, &handshake) || !read_session(request, &opening->offer) ||
		refuse_hindered(request))
		return;
	opening->request = request;
	strcpy(opening->offer.websocket_key, handshake.key);
	strcpy(opening->offer.protocol, handshake.protocol);
	if (sandbox_ready_start(api->service, request->tenant, request->match.id, on_ready, opening,
		    &opening->ready, &err) != 0) {
		respond_err(request, &err);
		return;
	}
	request_wait(request, STEAL_PTR(opening), &wait_ops);
}
