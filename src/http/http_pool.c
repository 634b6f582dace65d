/* http_pool.c - one endpoint's idle connections, and one timer for all its deadlines. */
/* SPDX-License-Identifier: MIT */
#include "http/http_pool.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <event2/event.h>

enum { DEFAULT_CONNECT_TIMEOUT_MS = 5000 };

static int
pool_parse_unix(struct http_pool *pool, const char *path, struct err *err)
{
	struct sockaddr_un *addr = (struct sockaddr_un *)&pool->addr;
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof addr->sun_path)
		return err_set(err, ERR_INVALID, "endpoint %s: the path must have 1 to %zu bytes", pool->endpoint,
			sizeof addr->sun_path - 1);
	addr->sun_family = AF_UNIX;
	memcpy(addr->sun_path, path, len + 1);
	pool->addr_len = sizeof *addr;
	pool->host = "localhost";
	return 0;
}

static int
pool_parse_tcp(struct http_pool *pool, const char *text, struct err *err)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&pool->addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&pool->addr;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	char *end;

	pool->host = text;
	if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof host)
		return err_set(err, ERR_INVALID, "endpoint %s: not tcp:address:port", pool->endpoint);
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';

	unsigned long port = strtoul(colon + 1, &end, 10);

	if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || port == 0 || port > 65535)
		return err_set(err, ERR_INVALID, "endpoint %s: the port is malformed", pool->endpoint);
	if (host[0] == '[' && colon[-1] == ']') {
		host[colon - text - 1] = '\0';
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		pool->addr_len = sizeof *v6;
		if (inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1)
			return 0;
	} else {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		pool->addr_len = sizeof *v4;
		if (inet_pton(AF_INET, host, &v4->sin_addr) == 1)
			return 0;
	}
	return err_set(err, ERR_INVALID, "endpoint %s: the address must be numeric", pool->endpoint);
}

static int
pool_parse_endpoint(struct http_pool *pool, struct err *err)
{
	if (strncmp(pool->endpoint, "unix:", 5) == 0)
		return pool_parse_unix(pool, pool->endpoint + 5, err);
	if (strncmp(pool->endpoint, "tcp:", 4) == 0)
		return pool_parse_tcp(pool, pool->endpoint + 4, err);
	return err_set(err, ERR_INVALID, "endpoint %s: must begin with unix: or tcp:", pool->endpoint);
}

void
http_pool_schedule(struct http_pool *pool, int64_t at)
{
	if (pool->dead || at == 0 || (pool->timer_at != 0 && pool->timer_at <= at))
		return;

	struct timeval delay = clock_tv(at - clock_boot_ms() + 1);

	pool->timer_at = at;
	event_add(pool->timer, &delay);
}

/* True when a call was expired; its callback may have changed everything. */
static bool
pool_expire_one(struct http_pool *pool, int64_t now)
{
	struct http_call *call;

	TAILQ_FOREACH(call, &pool->calls, entry)
	{
		int64_t at = http_call_next_deadline(call);

		if (at != 0 && at <= now) {
			http_call_expire(call);
			return true;
		}
	}
	return false;
}

static void
pool_leave(struct http_pool *pool)
{
	if (--pool->depth > 0 || !pool->dead)
		return;
	free(pool->endpoint);
	free(pool);
}

static void
pool_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct http_pool *pool = arg;
	struct http_link *link;
	struct http_call *call;
	int64_t now = clock_boot_ms();

	(void)fd;
	(void)what;
	pool->timer_at = 0;
	pool->depth++;
	while (pool_expire_one(pool, now)) {
	}
	while ((link = TAILQ_LAST(&pool->idle, http_idle_list)) != NULL && link->idle_until <= now)
		http_link_close(link);
	if (link != NULL)
		http_pool_schedule(pool, link->idle_until);
	TAILQ_FOREACH(call, &pool->calls, entry)
	http_pool_schedule(pool, http_call_next_deadline(call));
	pool_leave(pool);
}

int
http_pool_create(struct event_base *base, const struct http_pool_options *options, struct http_pool **ret_pool,
	struct err *err)
{
	struct http_pool *pool = calloc(1, sizeof *pool);

	if (pool == NULL || (pool->endpoint = strdup(options->endpoint)) == NULL)
		abort();
	pool->base = base;
	pool->max_idle = options->max_idle;
	pool->idle_timeout_ms = options->idle_timeout_ms;
	pool->connect_timeout_ms = options->connect_timeout_ms > 0 ? options->connect_timeout_ms
								   : DEFAULT_CONNECT_TIMEOUT_MS;
	TAILQ_INIT(&pool->idle);
	TAILQ_INIT(&pool->calls);
	pool->timer = event_new(base, -1, 0, pool_on_timer, pool);
	if (pool->timer == NULL)
		abort();
	if (pool_parse_endpoint(pool, err) < 0) {
		http_pool_free(pool);
		return -1;
	}
	*ret_pool = pool;
	return 0;
}

void
http_pool_free(struct http_pool *pool)
{
	if (pool == NULL)
		return;
	pool->depth++;
	pool->dead = true;
	event_free(pool->timer);
	while (!TAILQ_EMPTY(&pool->idle))
		http_link_close(TAILQ_FIRST(&pool->idle));
	while (!TAILQ_EMPTY(&pool->calls)) {
		struct http_call *call = TAILQ_FIRST(&pool->calls);

		http_call_fail(call, call->link == NULL ? HTTP_NOT_SENT : HTTP_MAYBE_SENT, ERR_UNAVAILABLE,
			"%s: the connections to it were closed", pool->endpoint);
	}
	pool_leave(pool);
}

uint32_t
http_pool_calls(const struct http_pool *pool)
{
	return pool->call_count;
}

struct http_link *
http_pool_take(struct http_pool *pool)
{
	struct http_link *link;

	while ((link = TAILQ_FIRST(&pool->idle)) != NULL) {
		if (link->idle_until > clock_boot_ms() && http_link_is_fresh(link)) {
			TAILQ_REMOVE(&pool->idle, link, entry);
			pool->idle_count--;
			return link;
		}
		http_link_close(link);
	}
	return NULL;
}

void
http_pool_keep(struct http_pool *pool, struct http_link *link)
{
	link->call = NULL;
	link->idle_until = clock_boot_ms() + pool->idle_timeout_ms;
	TAILQ_INSERT_HEAD(&pool->idle, link, entry);
	pool->idle_count++;
	if (pool->dead || pool->idle_count > pool->max_idle)
		http_link_close(TAILQ_LAST(&pool->idle, http_idle_list));
	else
		http_pool_schedule(pool, link->idle_until);
}
