/*
 * gateway.c - the gateway process: its loop is that of libwebsockets, and how it leaves.
 *
 * Signals come from a descriptor, as the workers' messages and the master's death do, so everything happens between
 * two steps of the one loop.
 */
/* SPDX-License-Identifier: MIT */
#include "gateway/gateway.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "gateway/terminal.h"
#include "master/role.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

enum {
	TICK_MS = 500,
	LEAVE_MS = 3000, /* for close frames and their answers */
	OTHER_FDS = 256, /* besides two for each terminal */
	BUFFER_BYTES = 16 * 1024,
	CLIENT_READ = 8 * 1024,
	HEADER_BYTES = 4096
};

enum waker { WAKE_SIGNAL, WAKE_ALIVE, WAKE_DOOR };

/* --- leaving --- */

static void
stop_if_empty(struct gateway *gateway)
{
	if (gateway->refusing && gateway->count == 0)
		gateway->stopped = true;
}

static void
close_door(struct gateway *gateway)
{
	struct lws *door = gateway->wakers[WAKE_DOOR];

	gateway->refusing = true;
	gateway->wakers[WAKE_DOOR] = NULL;
	if (door != NULL)
		lws_set_timeout(door, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

static void
linger(struct gateway *gateway)
{
	if (gateway->refusing)
		return;
	close_door(gateway);
	gateway->deadline_ms = clock_boot_ms() + gateway->env->config->terminal_drain_seconds * 1000;
	log_info("another gateway takes new terminals: %u are open here and go on", gateway->count);
}

static void
end_all(struct gateway *gateway, const char *why)
{
	struct terminal *terminal, *next;

	if (gateway->ending)
		return;
	/* Whoever still waits in the channel is told, unless another gateway takes them. */
	if (!gateway->refusing)
		door_refuse(gateway);
	close_door(gateway);
	gateway->ending = true;
	gateway->deadline_ms = clock_boot_ms() + LEAVE_MS;
	log_info("%s: %u terminals end", why, gateway->count);
	for (terminal = TAILQ_FIRST(&gateway->terminals); terminal != NULL; terminal = next) {
		next = TAILQ_NEXT(terminal, link);
		terminal_end(terminal, CLOSE_RESTART, "the server is restarting", NULL);
	}
}

static void
on_signals(struct gateway *gateway, int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGHUP)
			linger(gateway);
		else if (info.ssi_signo == SIGTERM)
			end_all(gateway, "stopping");
		else
			gateway->stopped = true;
	}
}

static void
on_tick(lws_sorted_usec_list_t *sul)
{
	struct gateway *gateway = lws_container_of(sul, struct gateway, tick);
	struct terminal *terminal, *next;
	int64_t now = clock_boot_ms();

	lws_sul_schedule(gateway->context, 0, &gateway->tick, on_tick, TICK_MS * LWS_US_PER_MS);
	for (terminal = TAILQ_FIRST(&gateway->terminals); terminal != NULL; terminal = next) {
		next = TAILQ_NEXT(terminal, link);
		terminal_tick(terminal, now);
	}
	if (gateway->deadline_ms == 0 || now < gateway->deadline_ms)
		return;
	if (gateway->ending)
		gateway->stopped = true;
	else
		end_all(gateway, "terminal_drain_seconds are over");
}

/* --- the loop --- */

static int
on_wake(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct gateway *gateway = lws_context_user(lws_get_context(wsi));
	bool closed = reason == LWS_CALLBACK_RAW_CLOSE_FILE;
	char byte;

	(void)user;
	(void)in;
	(void)len;
	if (reason != LWS_CALLBACK_RAW_RX_FILE && !closed)
		return 0;
	if (wsi == gateway->wakers[WAKE_SIGNAL] && !closed) {
		on_signals(gateway, lws_get_socket_fd(wsi));
	} else if (wsi == gateway->wakers[WAKE_DOOR] && !closed) {
		door_take(gateway);
	} else if (wsi == gateway->wakers[WAKE_ALIVE] && !gateway->stopped &&
		(closed || read(lws_get_socket_fd(wsi), &byte, 1) == 0)) {
		gateway->wakers[WAKE_ALIVE] = NULL;
		log_error("the master process has died: leaving");
		end_all(gateway, "leaving");
		return -1;
	}
	return 0;
}

static const struct lws_protocols protocols[] = {
	{ "terminal", client_callback, 0, CLIENT_READ, 0, NULL, 0 },
	{ "agent", agent_callback, 0, TERMINAL_PIECE, 0, NULL, 0 },
	{ "wake", on_wake, 0, 0, 0, NULL, 0 },
	{ NULL, NULL, 0, 0, 0, NULL, 0 },
};

/* Its lines are about clients, which can make it write any number of them. */
static void
on_library_log(int level, const char *line)
{
	(void)level;
	log_debug("libwebsockets: %.*s", (int)strcspn(line, "\n"), line);
}

/* Two tables of the library have an entry for each descriptor that there could be. */
static void
limit_descriptors(struct gateway *gateway)
{
	uint64_t wanted = (uint64_t)gateway->env->config->max_terminals;
	struct rlimit limit;

	gateway->most = (uint32_t)wanted;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	if (limit.rlim_cur < 2 * wanted + OTHER_FDS) {
		gateway->most = limit.rlim_cur > OTHER_FDS ? (uint32_t)(limit.rlim_cur - OTHER_FDS) / 2 : 0;
		log_warn("the limit of open files allows %u terminals only", gateway->most);
		return;
	}
	limit.rlim_cur = 2 * wanted + OTHER_FDS;
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
}

static int
open_context(struct gateway *gateway, struct err *err)
{
	static const lws_retry_bo_t no_policy = { 0 }; /* pings are ours */
	struct lws_context_creation_info info = {
		.port = CONTEXT_PORT_NO_LISTEN_SERVER,
		.protocols = protocols,
		.gid = -1,
		.uid = -1,
		.options = LWS_SERVER_OPTION_VALIDATE_UTF8,
		.user = gateway,
		.max_http_header_pool2 = 2048,
		.max_http_header_data2 = HEADER_BYTES,
		.pt_serv_buf_size = BUFFER_BYTES,
		.timeout_secs = TERMINAL_INIT_MS / 1000,
		.retry_and_idle_policy = &no_policy,
	};

	lws_set_log_level(LLL_ERR | LLL_WARN, on_library_log);
	gateway->context = lws_create_context(&info);
	gateway->vhost = gateway->context != NULL ? lws_get_vhost_by_name(gateway->context, "default") : NULL;
	return gateway->vhost != NULL ? 0 : err_set(err, ERR_INTERNAL, "libwebsockets does not start");
}

static int
watch(struct gateway *gateway, enum waker waker, int fd, struct err *err)
{
	lws_sock_file_fd_type file = { .filefd = fd };

	gateway->wakers[waker] = lws_adopt_descriptor_vhost(
		gateway->vhost, LWS_ADOPT_RAW_FILE_DESC, file, "wake", NULL);
	return gateway->wakers[waker] != NULL ? 0
					      : err_set(err, ERR_INTERNAL, "descriptor %d cannot be watched", fd);
}

static int
watch_signals(struct gateway *gateway, struct err *err)
{
	sigset_t heard;
	int fd;

	sigemptyset(&heard);
	sigaddset(&heard, SIGTERM);
	sigaddset(&heard, SIGINT);
	sigaddset(&heard, SIGHUP);
	sigprocmask(SIG_BLOCK, &heard, NULL);
	fd = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_set_errno(err, errno, "signalfd") : watch(gateway, WAKE_SIGNAL, fd, err);
}

static int
gateway_open(struct gateway *gateway, struct err *err)
{
	TAILQ_INIT(&gateway->terminals);
	limit_descriptors(gateway);
	if (open_context(gateway, err) < 0 || watch_signals(gateway, err) < 0 ||
		watch(gateway, WAKE_ALIVE, gateway->env->alive_fd, err) < 0 ||
		watch(gateway, WAKE_DOOR, gateway->env->terminal_fd, err) < 0)
		return -1;
	lws_sul_schedule(gateway->context, 0, &gateway->tick, on_tick, TICK_MS * LWS_US_PER_MS);
	return 0;
}

int
gateway_main(struct role_env *env)
{
	struct gateway gateway = { .env = env };
	int status = ROLE_EXIT_FAILED;
	struct err err;

	if (gateway_open(&gateway, &err) < 0) {
		role_failed(env, &err);
	} else {
		role_ready(env);
		while (!gateway.stopped && lws_service(gateway.context, 0) >= 0)
			stop_if_empty(&gateway);
		status = gateway.stopped ? ROLE_EXIT_OK : ROLE_EXIT_FAILED;
	}
	gateway.stopped = true;
	if (gateway.context != NULL)
		lws_context_destroy(gateway.context);
	return status;
}
