/* terminal.c - a terminal's life, and who of its two sides may be read. */
/* SPDX-License-Identifier: MIT */
#include "gateway/terminal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/message.h"
#include "ipc/shm.h"
#include "master/role.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log_ctx
terminal_log_ctx(const struct terminal *terminal)
{
	return (struct log_ctx){ .request_id = terminal->offer.request_id,
		.sandbox_id = terminal->offer.sandbox_id };
}

void
terminal_count(const struct terminal *terminal, enum metric metric, int64_t n)
{
	const struct role_env *env = terminal->gateway->env;

	scoreboard_add(shm_scoreboard(env->shm), env->self, metric, n);
}

struct terminal *
terminal_create(struct gateway *gateway, const struct terminal_offer *offer)
{
	struct terminal *terminal = alloc_zero(1, sizeof *terminal);

	terminal->gateway = gateway;
	terminal->number = ++gateway->last_number;
	terminal->offer = *offer;
	terminal->opened_ms = terminal->said_ms = clock_boot_ms();
	side_init(&terminal->client, terminal);
	side_init(&terminal->agent, terminal);
	typed_init(&terminal->typed);
	TAILQ_INSERT_TAIL(&gateway->terminals, terminal, link);
	gateway->count++;
	terminal_count(terminal, METRIC_TERMINALS, 1);
	return terminal;
}

struct terminal *
terminal_find(struct gateway *gateway, uint64_t number)
{
	struct terminal *terminal;

	/* It was made just now. */
	TAILQ_FOREACH_REVERSE(terminal, &gateway->terminals, terminal_list, link)
	if (terminal->number == number)
		return terminal;
	return NULL;
}

void
terminal_free(struct terminal *terminal)
{
	struct gateway *gateway = terminal->gateway;
	struct log_ctx ctx = terminal_log_ctx(terminal);

	if (terminal->counted) {
		sandbox_note_end(terminal);
		log_write(LOG_LEVEL_INFO, &ctx, "terminal ended with %d after %.3f s%s%s", terminal->client.code,
			(double)(clock_boot_ms() - terminal->opened_ms) / 1000,
			*terminal->client.reason != '\0' ? ": " : "", terminal->client.reason);
	}
	terminal_count(terminal, METRIC_TERMINALS, -1);
	TAILQ_REMOVE(&gateway->terminals, terminal, link);
	gateway->count--;
	gateway->held -= terminal->held;
	lws_sul_cancel(&terminal->call);
	side_fini(&terminal->client);
	side_fini(&terminal->agent);
	outbox_fini(&terminal->typed.waiting);
	free(terminal->init);
	explicit_bzero(&terminal->offer, sizeof terminal->offer);
	free(terminal);
}

void
terminal_side_gone(struct side *side)
{
	struct terminal *terminal = side->terminal;

	side->wsi = NULL;
	side->open = false;
	if (side == &terminal->client) {
		terminal->over = true;
		if (!side->closing)
			snprintf(side->reason, sizeof side->reason, "the client left");
		side_close(&terminal->agent, CLOSE_GOING_AWAY, "the client left");
	}
	if (terminal->client.wsi == NULL && terminal->agent.wsi == NULL)
		terminal_free(terminal);
}

void
terminal_end(struct terminal *terminal, int code, const char *reason, const char *words)
{
	if (terminal->over)
		return;
	terminal->over = true;
	if (words != NULL)
		side_push(&terminal->client, message_error(words));
	side_close(&terminal->client, code, reason);
	side_close(&terminal->agent, CLOSE_NORMAL, "");
	terminal_flow(terminal);
}

void
terminal_agent_lost(struct terminal *terminal)
{
	char words[TERMINAL_REASON_SIZE];

	if (terminal->over)
		return;
	if (terminal->exited) {
		terminal_end(terminal, CLOSE_NORMAL, "", NULL);
		return;
	}
	if (!sandbox_note_gone(terminal, words, sizeof words)) {
		snprintf(words, sizeof words, "the sandbox's agent is lost");
		terminal_count(terminal, METRIC_TERMINALS_LOST, 1);
	}
	terminal_end(terminal, CLOSE_AGENT_LOST, words, words);
}

void
terminal_flow(struct terminal *terminal)
{
	struct side *client = &terminal->client, *agent = &terminal->agent;
	bool client_rests = (terminal->connecting && !agent->open) || typed_is_full(terminal) ||
		side_is_over(client, client->out.bytes, TERMINAL_FULL);

	/* What a closing side still says is thrown away, so it may. */
	side_rest(client, !client->closing && client_rests);
	side_rest(agent, !agent->closing && side_is_over(agent, client->out.bytes, TERMINAL_HIGH));
}

void
terminal_weigh(struct terminal *terminal)
{
	size_t held = terminal->client.out.bytes + terminal->client.in.size + terminal->agent.out.bytes +
		terminal->agent.in.size + terminal->typed.waiting.bytes;

	terminal->gateway->held += held - terminal->held;
	terminal->held = held;
}

static void
tick_say(struct terminal *terminal, int64_t now_ms)
{
	char words[TERMINAL_REASON_SIZE];

	if (!terminal->counted || terminal->over || now_ms - terminal->said_ms < SANDBOX_TERMINALS_SAY_MS)
		return;
	terminal->said_ms = now_ms;
	if (!sandbox_note_again(terminal) && sandbox_note_gone(terminal, words, sizeof words))
		terminal_end(terminal, CLOSE_AGENT_LOST, words, words);
}

void
terminal_tick(struct terminal *terminal, int64_t now_ms)
{
	if (terminal->client.wsi == NULL && terminal->agent.wsi == NULL) {
		/* Its request was put aside, and its connection broke there. */
		if (now_ms - terminal->opened_ms > 2 * TERMINAL_INIT_MS)
			terminal_free(terminal);
		return;
	}
	if (terminal->client.open && !terminal->connecting && now_ms - terminal->opened_ms > TERMINAL_INIT_MS)
		terminal_end(
			terminal, CLOSE_BAD_INIT, "no init message came in time", "no init message came in time");
	tick_say(terminal, now_ms);
	side_tick(&terminal->client, now_ms);
	side_tick(&terminal->agent, now_ms);
}
