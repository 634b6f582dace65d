/*
 * load.c - closed-loop load: each connection sends its request again as soon as the answer is there.
 *
 * usage: load [-k KEY] [-b BODY] [-c CONNECTIONS] [-s SECONDS] [-w WARM_UP_SECONDS] PORT METHOD PATH
 *
 * "@" in PATH becomes the connection's word: connection i takes the i-th of those that come on stdin (one a line),
 * beginning anew behind the last. Prints one JSON line: answers, failures (anything but 200), seconds, latencies in us.
 * One thread, and no more work per answer than finding its end, so that the machine is left to what is measured.
 */
/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, IN_MAX = 64 * 1024, WORDS_MAX = 65536, SAMPLES_MAX = 1 << 22 };

struct options {
	const char *key, *body, *method, *path;
	int connections, port;
	double seconds, warm_up;
};

struct conn {
	int fd;
	char *request;
	size_t request_len, len;
	double began;
	char in[IN_MAX + 1];
};

struct tally {
	uint64_t answers, failures, samples;
	uint32_t *us;
};

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int
words_read(char *words[WORDS_MAX])
{
	char line[256];
	int count = 0;

	while (count < WORDS_MAX && fgets(line, sizeof line, stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (*line != '\0')
			words[count++] = strdup(line);
	}
	return count;
}

static void
conn_prepare(struct conn *conn, const struct options *options, const char *word)
{
	const char *mark = strchr(options->path, '@'), *rest = mark != NULL ? mark + 1 : "";
	int before = (int)(mark != NULL ? (size_t)(mark - options->path) : strlen(options->path));
	int len = asprintf(&conn->request,
		"%s %.*s%s%s HTTP/1.1\r\nHost: localhost\r\n%s%s%sContent-Length: %zu\r\n\r\n%s", options->method,
		before, options->path, mark != NULL ? word : "", rest, options->key != NULL ? "X-API-Key: " : "",
		options->key != NULL ? options->key : "", options->key != NULL ? "\r\n" : "", strlen(options->body),
		options->body);

	if (len < 0)
		die("request");
	conn->request_len = (size_t)len;
}

static void
conn_send(struct conn *conn)
{
	conn->len = 0;
	conn->began = now();
	if (send(conn->fd, conn->request, conn->request_len, MSG_NOSIGNAL) != (ssize_t)conn->request_len)
		die("send");
}

static void
conn_open(struct conn *conn, int port, int poll_fd)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };
	int one = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	conn->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (conn->fd < 0 || connect(conn->fd, (struct sockaddr *)&address, sizeof address) < 0)
		die("connect");
	setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, conn->fd, &event) < 0)
		die("epoll");
}

/* True when the answer is complete. */
static bool
conn_read(struct conn *conn)
{
	ssize_t n = recv(conn->fd, conn->in + conn->len, IN_MAX - conn->len, 0);
	const char *end, *length;

	if (n <= 0)
		die("the server closed a connection");
	conn->len += (size_t)n;
	conn->in[conn->len] = '\0';
	end = strstr(conn->in, "\r\n\r\n");
	if (end == NULL)
		return false;
	length = strstr(conn->in, "\r\nContent-Length: ");
	if (length == NULL || length > end)
		die("an answer without Content-Length");
	return conn->len >= (size_t)(end - conn->in) + 4 + strtoul(length + 18, NULL, 10);
}

static void
tally_add(struct tally *tally, const struct conn *conn)
{
	tally->answers++;
	if (strncmp(conn->in + 9, "200", 3) != 0 && tally->failures++ == 0)
		fprintf(stderr, "load: %s\n", conn->in);
	if (tally->samples < SAMPLES_MAX)
		tally->us[tally->samples++] = (uint32_t)((now() - conn->began) * 1e6);
}

static int
compare(const void *a, const void *b)
{
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static void
tally_print(struct tally *tally, double seconds)
{
	qsort(tally->us, tally->samples, sizeof *tally->us, compare);
	printf("{\"answers\":%llu,\"failures\":%llu,\"seconds\":%.3f,\"p50_us\":%u,\"p99_us\":%u}\n",
		(unsigned long long)tally->answers, (unsigned long long)tally->failures, seconds,
		tally->samples > 0 ? tally->us[tally->samples / 2] : 0,
		tally->samples > 0 ? tally->us[tally->samples * 99 / 100] : 0);
	fflush(stdout);
}

/* The caller of this program measures others between the two lines, so both are printed at once. */
static void
run(const struct options *options, int poll_fd, struct tally *tally)
{
	double begin = now() + options->warm_up, end = begin + options->seconds;
	struct epoll_event events[EVENTS];
	bool warm = false;
	double at;

	while ((at = now()) < end) {
		int n = epoll_wait(poll_fd, events, EVENTS, 100);

		if (!warm && at >= begin) {
			warm = true;
			tally->answers = tally->samples = 0;
			printf("begin\n");
			fflush(stdout);
		}
		for (int i = 0; i < n; i++) {
			struct conn *conn = events[i].data.ptr;

			if (!conn_read(conn))
				continue;
			tally_add(tally, conn);
			conn_send(conn);
		}
	}
	tally_print(tally, at - begin);
}

static void
options_read(struct options *options, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "k:b:c:s:w:")) != -1) {
		if (option == 'k')
			options->key = optarg;
		else if (option == 'b')
			options->body = optarg;
		else if (option == 'c')
			options->connections = atoi(optarg);
		else if (option == 's')
			options->seconds = atof(optarg);
		else if (option == 'w')
			options->warm_up = atof(optarg);
	}
	if (argc - optind != 3 || options->connections < 1) {
		fprintf(stderr,
			"usage: load [-k KEY] [-b BODY] [-c CONNECTIONS] [-s SECONDS] [-w WARM_UP] "
			"PORT METHOD PATH <words\n");
		exit(2);
	}
	options->port = atoi(argv[optind]);
	options->method = argv[optind + 1];
	options->path = argv[optind + 2];
}

int
main(int argc, char **argv)
{
	struct options options = { .body = "", .connections = 64, .seconds = 3, .warm_up = 1 };
	static char *words[WORDS_MAX];
	int poll_fd = epoll_create1(0), count = 0;
	struct tally tally = { .us = malloc(SAMPLES_MAX * sizeof(uint32_t)) };
	struct conn *conns;

	options_read(&options, argc, argv);
	if (strchr(options.path, '@') != NULL)
		count = words_read(words);
	conns = calloc((size_t)options.connections, sizeof *conns);
	if (conns == NULL || tally.us == NULL)
		die("memory");
	for (int i = 0; i < options.connections; i++) {
		conn_prepare(&conns[i], &options, count > 0 ? words[i % count] : "");
		conn_open(&conns[i], options.port, poll_fd);
		conn_send(&conns[i]);
	}
	run(&options, poll_fd, &tally);
	return tally.failures > 0;
}
