/* url.c - takes a redis:// or unix:// URL apart, strictly: what is not understood is refused, not ignored. */
/* SPDX-License-Identifier: MIT */
#include "redis/url.h"

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_DEFAULT = 6379, DB_MAX = 65535 };

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decodes [text, end); what names `what` in a message must not be shown itself: it may be a secret. */
static int
take_part(const char *text, const char *end, char *ret_part, size_t size, const char *what, struct err *err)
{
	size_t len = 0;

	for (; text < end; text++, len++) {
		int c = (unsigned char)*text;

		if (c == '%') {
			int high = end - text > 2 ? hex_digit(text[1]) : -1,
			    low = high < 0 ? -1 : hex_digit(text[2]);

			c = low < 0 ? 0 : high * 16 + low;
			text += 2;
		}
		if (c <= ' ' || c == 127)
			return err_set(err, ERR_INVALID,
				"the %s in redis_url holds a character or %%XX that may not stand there", what);
		if (len + 1 >= size)
			return err_set(
				err, ERR_INVALID, "the %s in redis_url is longer than %zu bytes", what, size - 1);
		ret_part[len] = (char)c;
	}
	ret_part[len] = '\0';
	return 0;
}

static int
take_number(
	const char *text, const char *end, uint32_t max, const char *what, uint32_t *ret_number, struct err *err)
{
	uint32_t number = 0;

	if (text == end)
		return err_set(err, ERR_INVALID, "redis_url has no number for its %s", what);
	for (; text < end; text++) {
		if (*text < '0' || *text > '9' || (number = number * 10 + (uint32_t)(*text - '0')) > max)
			return err_set(err, ERR_INVALID, "the %s in redis_url is not a number up to %u", what, max);
	}
	*ret_number = number;
	return 0;
}

/* "[user]:password@" or "user@"; *text goes on behind it. The last '@' ends it: passwords are seen with one in them. */
static int
take_login(const char **text, const char *end, struct redis_url *url, struct err *err)
{
	const char *at = memrchr(*text, '@', (size_t)(end - *text)), *colon;

	if (at == NULL)
		return 0;
	colon = memchr(*text, ':', (size_t)(at - *text));
	if (take_part(*text, colon != NULL ? colon : at, url->user, sizeof url->user, "user", err) != 0)
		return -1;
	if (colon != NULL && take_part(colon + 1, at, url->password, sizeof url->password, "password", err) != 0)
		return -1;
	if (url->user[0] != '\0' && url->password[0] == '\0')
		return err_set(err, ERR_INVALID, "redis_url names a user without a password");
	*text = at + 1;
	return 0;
}

static int
take_port(const char *text, const char *end, struct redis_url *url, struct err *err)
{
	uint32_t port = PORT_DEFAULT;

	if (text < end && (*text != ':' || take_number(text + 1, end, 65535, "port", &port, err) != 0 || port == 0))
		return err_set(err, ERR_INVALID,
			"redis_url has something behind its host that is not a port from 1 to 65535");
	url->port = (uint16_t)port;
	return 0;
}

static int
take_host(const char *text, const char *end, struct redis_url *url, struct err *err)
{
	const char *close = text < end && *text == '[' ? memchr(text, ']', (size_t)(end - text)) : NULL;
	const char *stop = close;

	if (close != NULL) {
		text++;
		close++;
	} else {
		stop = memchr(text, ':', (size_t)(end - text));
		close = stop = stop != NULL ? stop : end;
	}
	if (take_part(text, stop, url->host, sizeof url->host, "host", err) != 0)
		return -1;
	if (url->host[0] == '\0' || strpbrk(url->host, "[]/") != NULL)
		return err_set(
			err, ERR_INVALID, "redis_url names no host: redis://[[user]:password@]host[:port][/db]");
	return take_port(close, end, url, err);
}

static int
parse_tcp(const char *text, struct redis_url *url, struct err *err)
{
	const char *end = text + strcspn(text, "/?#");

	if (take_login(&text, end, url, err) != 0 || take_host(text, end, url, err) != 0)
		return -1;
	if (*end == '/' && end[1] != '\0')
		return take_number(end + 1, end + strlen(end), DB_MAX, "database", &url->db, err);
	if (*end != '\0' && *end != '/')
		return err_set(err, ERR_INVALID,
			"redis_url takes no query: the database is the path, as in redis://host/2");
	return 0;
}

static int
parse_unix(const char *text, struct redis_url *url, struct err *err)
{
	const char *slash = strchr(text, '/'), *end;

	if (slash == NULL || take_login(&text, slash, url, err) != 0 || text != slash)
		return err->code == ERR_NONE
			? err_set(err, ERR_INVALID, "redis_url names no absolute path: unix:///path/of/socket")
			: -1;
	end = slash + strcspn(slash, "?#");
	if (take_part(slash, end, url->path, sizeof url->path, "path", err) != 0)
		return -1;
	if (*end == '\0')
		return 0;
	if (strncmp(end, "?db=", 4) != 0)
		return err_set(err, ERR_INVALID, "redis_url knows only ?db=N behind the path of a socket");
	return take_number(end + 4, end + strlen(end), DB_MAX, "database", &url->db, err);
}

int
redis_url_parse(const char *text, struct redis_url *ret_url, struct err *err)
{
	struct redis_url url = { .db = 0 };
	struct err why = { .code = ERR_NONE };
	int result;

	if (strncmp(text, "redis://", 8) == 0)
		result = parse_tcp(text + 8, &url, &why);
	else if (strncmp(text, "unix://", 7) == 0)
		result = parse_unix(text + 7, &url, &why);
	else if (strncmp(text, "rediss://", 9) == 0)
		result = err_set(&why, ERR_UNSUPPORTED,
			"redis_url: rediss:// (TLS) is not supported; use redis:// to a local proxy that speaks "
			"TLS, such as stunnel");
	else
		result = err_set(&why, ERR_INVALID, "redis_url must begin with redis:// or unix://");
	if (result != 0)
		*err = why;
	else
		*ret_url = url;
	explicit_bzero(&url, sizeof url);
	return result;
}

void
redis_url_describe(const struct redis_url *url, char *buf, size_t size)
{
	if (url->host[0] == '\0')
		snprintf(buf, size, "unix://%s?db=%u", url->path, url->db);
	else if (strchr(url->host, ':') != NULL)
		snprintf(buf, size, "redis://[%s]:%u/%u", url->host, url->port, url->db);
	else
		snprintf(buf, size, "redis://%s:%u/%u", url->host, url->port, url->db);
}
