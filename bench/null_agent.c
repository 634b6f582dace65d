/*
 * null_agent.c - an agent that runs nothing: every command has ended at once, with exit code 0 and a short output.
 *
 * Put in the place of the real agent (the setting agent_path) it shows what the server itself costs per command.
 * It speaks just as much of docs/agent-protocol.md as the server needs for that: /health, /exec, /ack, /jobs.
 * Static and without libraries, because it is started as PID 1 in a root of somebody else.
 */
/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LISTEN_FD = 3, EVENTS = 32, IN_MAX = 64 * 1024, OUT_MAX = 2048, FIELD_MAX = 64 };

struct conn {
	int fd;
	size_t len;
	char in[IN_MAX + 1];
};

static const char health[] = "{\"status\":\"ok\",\"sandbox_id\":\"\",\"sandbox_uid\":\"\",\"epoch\":"
			     "\"00000000-0000-4000-8000-000000000000\",\"version\":\"null\",\"newest_fence\":0,"
			     "\"running\":0,\"journal\":{\"jobs\":0,\"bytes\":0}}";

static const char job[] = "{\"job_id\":\"%s\",\"lane\":\"%s\",\"fence\":%s,\"state\":\"ended\","
			  "\"started_at\":1700000000.123456,\"ended_at\":1700000000.125678,"
			  "\"verdict\":\"exited\",\"exit_code\":0,\"signal\":null,\"error\":null,"
			  "\"stdout_base64\":\"aGkK\",\"stderr_base64\":\"\",\"stdout_bytes\":3,\"stderr_bytes\":0,"
			  "\"stdout_truncated\":false,\"stderr_truncated\":false,"
			  "\"usage\":{\"wall_s\":0.002222,\"cpu_user_s\":0.000876,\"cpu_sys_s\":0.000543,"
			  "\"max_rss_bytes\":1835008}}";

/* The value of "name": in a compact JSON text, up to its end; no escapes, because ids and lanes here have none. */
static void
field_read(const char *text, const char *name, char ret_value[FIELD_MAX])
{
	const char *at = strstr(text, name);
	size_t len = 0;

	if (at != NULL) {
		at += strlen(name);
		at += *at == '"';
		len = strcspn(at, "\",}");
	}
	if (len >= FIELD_MAX)
		len = 0;
	memcpy(ret_value, at != NULL ? at : "", len);
	ret_value[len] = '\0';
}

static bool
answer(int fd, const char *body)
{
	char out[OUT_MAX];
	int len = snprintf(out, sizeof out,
		"HTTP/1.1 200 OK\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n%s",
		strlen(body), body);

	return send(fd, out, (size_t)len, MSG_NOSIGNAL) == len;
}

static bool
answer_exec(int fd, const char *body)
{
	char id[FIELD_MAX], lane[FIELD_MAX], fence[FIELD_MAX], text[OUT_MAX - 256];

	field_read(body, "\"job_id\":", id);
	field_read(body, "\"lane\":", lane);
	field_read(body, "\"fence\":", fence);
	snprintf(text, sizeof text, job, id, lane, fence);
	return answer(fd, text);
}

static bool
request_answer(int fd, const char *head, const char *body)
{
	if (strncmp(head, "POST /exec ", 11) == 0)
		return answer_exec(fd, body);
	if (strncmp(head, "GET /health ", 12) == 0)
		return answer(fd, health);
	return answer(fd, "{}");
}

/* Answers what is complete; false: the connection is over. */
static bool
conn_take(struct conn *conn)
{
	for (;;) {
		char *end = strstr(conn->in, "\r\n\r\n"), *length;
		size_t head, body;

		if (end == NULL)
			return conn->len < IN_MAX;
		head = (size_t)(end - conn->in) + 4;
		*end = '\0';
		length = strstr(conn->in, "\r\nContent-Length: ");
		body = length != NULL ? strtoul(length + 18, NULL, 10) : 0;
		if (body > IN_MAX - head)
			return false;
		if (conn->len < head + body) {
			*end = '\r';
			return true;
		}
		char after = conn->in[head + body];

		conn->in[head + body] = '\0';
		if (!request_answer(conn->fd, conn->in, conn->in + head))
			return false;
		conn->in[head + body] = after;
		conn->len -= head + body;
		memmove(conn->in, conn->in + head + body, conn->len + 1);
	}
}

static void
conn_read(struct conn *conn)
{
	ssize_t n = recv(conn->fd, conn->in + conn->len, IN_MAX - conn->len, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		conn->len += (size_t)n;
		conn->in[conn->len] = '\0';
		if (conn_take(conn))
			return;
	}
	close(conn->fd);
	free(conn);
}

static void
conn_accept(int poll_fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct conn *conn = calloc(1, sizeof *conn);

	if (conn == NULL)
		abort();
	conn->fd = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC);
	event.data.ptr = conn;
	if (conn->fd < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, conn->fd, &event) < 0) {
		if (conn->fd >= 0)
			close(conn->fd);
		free(conn);
	}
}

int
main(void)
{
	int poll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event events[EVENTS] = { { .events = EPOLLIN } };

	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, LISTEN_FD, &events[0]) < 0)
		return 1;
	for (;;) {
		int n = epoll_wait(poll_fd, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == NULL)
				conn_accept(poll_fd);
			else
				conn_read(events[i].data.ptr);
		}
	}
}
