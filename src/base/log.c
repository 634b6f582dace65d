/*
 * log.c - builds one JSON line on the stack and writes it with one write(2).
 *
 * Logging must not fail the caller: errno is kept, a full pipe drops the line,
 * and the next line that gets through says how many were dropped.
 */
/* SPDX-License-Identifier: MIT */
#include "base/log.h"
#include "base/clock.h"
#include "base/fork.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_LINE_MAX = 8192, LOG_ID_MAX = 256 };

#define LOG_CUT "...[cut]"
#define LOG_END "\"}\n"

struct log_line {
	size_t len;
	char text[LOG_LINE_MAX];
};

static const char *const level_names[] = { "debug", "info", "warn", "error" };

static struct {
	const char *role;
	enum log_level level;
	int fd;
	unsigned dropped;
	bool torn; /* the last line went out only in part */
	bool is_socket;
} logger = { .role = "main", .level = LOG_LEVEL_INFO, .fd = STDERR_FILENO };

void
log_init(const char *role, enum log_level level)
{
	logger.role = role;
	logger.level = level;
	logger.dropped = 0;
}

void
log_set_level(enum log_level level)
{
	logger.level = level;
}

void
log_set_fd(int fd)
{
	logger.fd = fd;
	logger.is_socket = false;
}

/* A pipe is opened anew: O_NONBLOCK on the inherited one would change it for all who have it. */
void
log_never_block(void)
{
	struct stat st;
	int fd;

	if (fstat(STDERR_FILENO, &st) < 0)
		return;
	logger.is_socket = S_ISSOCK(st.st_mode);
	fd = S_ISFIFO(st.st_mode) ? open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	if (fd >= 0) {
		dup2(fd, STDERR_FILENO);
		close(fd);
	}
}

int
log_level_parse(const char *name, enum log_level *ret_level)
{
	for (size_t i = 0; i < sizeof level_names / sizeof level_names[0]; i++)
		if (strcasecmp(name, level_names[i]) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	return -1;
}

static void
log_raw(struct log_line *line, const char *text)
{
	size_t len = strlen(text);

	memcpy(line->text + line->len, text, len);
	line->len += len;
}

/* One character (or invalid part) as it stands inside a JSON string: at most 6 bytes. */
static size_t
log_escape(const char *part, size_t part_len, bool valid, char out[7])
{
	unsigned char c = (unsigned char)part[0];
	static const char named[] = "\bb\ff\nn\rr\tt\"\"\\\\";
	const char *hit;

	if (!valid)
		return (size_t)snprintf(out, 7, "\xef\xbf\xbd");
	if (part_len > 1) {
		memcpy(out, part, part_len);
		return part_len;
	}
	for (hit = named; *hit != '\0' && (unsigned char)*hit != c; hit += 2)
		;
	if (*hit != '\0')
		return (size_t)snprintf(out, 7, "\\%c", hit[1]);
	if (c < 0x20 || c == 0x7f)
		return (size_t)snprintf(out, 7, "\\u%04x", c);
	out[0] = (char)c;
	return 1;
}

/* How many of the leading bytes stand in a JSON string as they are, each a character: ASCII, and no need to escape. */
static size_t
log_plain(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] >= ' ' && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
		n++;
	return n;
}

/* Appends text as the inside of a JSON string of at most max bytes, whole characters only. */
static void
log_string(struct log_line *line, const char *text, size_t max)
{
	size_t len = strlen(text), end = line->len + max, cut_at = line->len;
	size_t plain = log_plain(text, len < max - strlen(LOG_CUT) ? len : max - strlen(LOG_CUT));

	memcpy(line->text + line->len, text, plain);
	line->len += plain;
	cut_at += plain;
	for (size_t i = plain; i < len;) {
		char out[7];
		bool valid;
		size_t n = text_utf8_step(text + i, len - i, &valid);
		size_t out_len = log_escape(text + i, n, valid, out);

		if (line->len + out_len > end) {
			line->len = cut_at;
			log_raw(line, LOG_CUT);
			return;
		}
		memcpy(line->text + line->len, out, out_len);
		line->len += out_len;
		i += n;
		if (line->len + strlen(LOG_CUT) <= end)
			cut_at = line->len;
	}
}

static void
log_field(struct log_line *line, const char *name, const char *value)
{
	if (value == NULL)
		return;
	log_raw(line, ",\"");
	log_raw(line, name);
	log_raw(line, "\":\"");
	log_string(line, value, LOG_ID_MAX);
	log_raw(line, "\"");
}

static void
log_head(struct log_line *line, enum log_level level, const struct log_ctx *ctx)
{
	char head[128];
	int64_t now = clock_wall_us();

	if (logger.torn)
		log_raw(line, "\n");
	snprintf(head, sizeof head, "{\"ts\":%" PRId64 ".%06d,\"level\":\"%s\",\"pid\":%d", now / 1000000,
		(int)(now % 1000000), level_names[level], (int)fork_pid());
	log_raw(line, head);
	log_field(line, "role", logger.role);
	if (ctx != NULL) {
		log_field(line, "request_id", ctx->request_id);
		log_field(line, "sandbox_id", ctx->sandbox_id);
		log_field(line, "job_id", ctx->job_id);
	}
	if (logger.dropped > 0) {
		snprintf(head, sizeof head, ",\"dropped\":%u", logger.dropped);
		log_raw(line, head);
	}
}

static void
log_send(const struct log_line *line)
{
	ssize_t n;

	do
		n = logger.is_socket ? send(logger.fd, line->text, line->len, MSG_DONTWAIT | MSG_NOSIGNAL)
				     : write(logger.fd, line->text, line->len);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		logger.dropped++;
		return;
	}
	logger.dropped = 0;
	logger.torn = (size_t)n < line->len;
}

void
log_write(enum log_level level, const struct log_ctx *ctx, const char *fmt, ...)
{
	int saved_errno = errno;
	char msg[LOG_LINE_MAX];
	struct log_line line;
	va_list args;

	if (level < logger.level)
		return;
	line.len = 0;
	va_start(args, fmt);
	if (vsnprintf(msg, sizeof msg, fmt, args) < 0)
		snprintf(msg, sizeof msg, "(message that cannot be formatted)");
	va_end(args);
	log_head(&line, level, ctx);
	log_raw(&line, ",\"msg\":\"");
	log_string(&line, msg, sizeof line.text - line.len - strlen(LOG_END));
	log_raw(&line, LOG_END);
	log_send(&line);
	errno = saved_errno;
}
