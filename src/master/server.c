/* server.c - taking hold of directories, locks, sockets and shared memory. */
/* SPDX-License-Identifier: MIT */
#include "master/replica_id.h"
#include "master/server.h"

#include "base/err.h"
#include "base/log.h"
#include "base/proc.h"
#include "conf/config.h"
#include "ipc/exec_lock.h"
#include "ipc/notify.h"
#include "ipc/shm.h"
#include "ipc/terminal_msg.h"
#include "master/check.h"
#include "master/dirs.h"
#include "master/listener.h"
#include "master/lock_file.h"
#include "master/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

static char *
path_below(const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		abort();
	return path;
}

static char *
setting_words(const char *setting, const char *value)
{
	char *words;

	if (asprintf(&words, "%s %s", setting, value) < 0)
		abort();
	return words;
}

static int
require_root(const struct config *config, struct err *err)
{
	if (geteuid() == 0 || config_is_kubernetes(config))
		return 0;
	return err_set(err, ERR_DENIED,
		"orchardd must start as root for the %s driver: it makes namespaces and mounts; every process but "
		"the "
		"master and the spawner then runs as %s",
		config->driver, config->service_user);
}

static int
take_locks(struct server *server, const struct config *config, int64_t wait_ms, struct err *err)
{
	AUTO_FREE char *lock = path_below(config->state_dir, "lock");
	AUTO_FREE char *state = setting_words("state_dir", config->state_dir);
	AUTO_FREE char *run = setting_words("run_dir", config->run_dir);

	if (lock_file_take(lock, state, wait_ms, &server->state_lock_fd, err) < 0)
		return -1;
	return lock_file_take(server->pid_path, run, wait_ms, &server->run_lock_fd, err);
}

static int
open_sockets(struct server *server, const struct config *config, struct err *err)
{
	if (listener_open_tcp(config->listen_host, config->port, &server->share.listen_fd, err) < 0)
		return -1;
	return listener_open_seqpacket(
		server->socket_path, server->user.uid, server->user.gid, &server->share.spawner_fd, err);
}

/* The processes of the server before us are gone: the lock that we hold says so. */
static void
bury_predecessor(struct server *server, const struct config *config)
{
	struct shm_scoreboard *board = shm_scoreboard(server->share.shm);
	struct exec_lock_limits limits = {
		.running = (uint32_t)config->max_concurrent_execs,
		.per_sandbox = (uint32_t)config->sandbox_exec_queue_limit,
	};
	struct proc_info info;

	for (uint32_t slot = 0; slot < SHM_PROCESSES; slot++)
		if (scoreboard_info(board, slot, &info))
			scoreboard_retire(board, info.ref);
	exec_lock_repair(shm_exec_lock(server->share.shm), server->share.notify, board, &limits);
}

static int
open_memory(
	struct server *server, const struct config *config, const struct master_options *options, struct err *err)
{
	bool adopted;

	if (memory_check(config, options, err) < 0 || memory_open(config, &server->share.shm, &adopted, err) < 0 ||
		notify_open(shm_notify(server->share.shm), &server->share.notify, err) < 0)
		return -1;
	if (options->prepare != NULL && options->prepare(config, server->share.shm, adopted, err) < 0)
		return -1;
	if (adopted)
		bury_predecessor(server, config);
	return 0;
}

/* The master has a slot too, so that it can be seen. */
static int
enter_scoreboard(struct server *server, struct err *err)
{
	struct shm_scoreboard *board = shm_scoreboard(server->share.shm);

	if (scoreboard_claim(board, PROC_MASTER, &server->self, err) < 0)
		return -1;
	server->entered = true;
	scoreboard_set_pid(board, server->self, getpid(), proc_start_time(getpid()));
	scoreboard_set_state(board, server->self, PROC_READY);
	return 0;
}

static void
raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warn("the limit of open files stays low: %s", strerror(errno));
}

static int
open_alive_pipe(struct server *server, struct err *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "no pipe for the sign of life");
	server->share.alive_read_fd = fds[0];
	server->share.alive_write_fd = fds[1];
	return 0;
}

int
server_open(struct server *server, const struct config *config, const struct master_timing *timing,
	const struct master_options *options, struct err *err)
{
	*server = (struct server){
		.state_lock_fd = -1,
		.run_lock_fd = -1,
		.pid_path = path_below(config->run_dir, "orchardd.pid"),
		.socket_path = path_below(config->run_dir, "spawner.sock"),
		.share = { .listen_fd = -1,
			.spawner_fd = -1,
			.terminal_fds = { -1, -1 },
			.signal_fd = -1,
			.alive_read_fd = -1,
			.alive_write_fd = -1 },
	};
	raise_descriptor_limit();
	if (require_root(config, err) < 0 || check_host(config, options, &server->user, err) < 0 ||
		dirs_make_top(config, &server->user, err) < 0 ||
		take_locks(server, config, timing->lock_wait, err) < 0 ||
		dirs_make_below(config, &server->user, err) < 0 ||
		((config->use_redis || config_is_kubernetes(config)) && replica_id_make(config, err) < 0) ||
		open_sockets(server, config, err) < 0 || open_memory(server, config, options, err) < 0 ||
		enter_scoreboard(server, err) < 0 || open_alive_pipe(server, err) < 0 ||
		terminal_channel_open(server->share.terminal_fds, err) < 0) {
		server_close(server);
		return -1;
	}
	server->share.user = &server->user;
	return 0;
}

static void
close_fd(int *fd)
{
	cleanup_fd(fd);
	*fd = -1;
}

void
server_close_listener(struct server *server)
{
	/* Takes the socket itself out of listening, also for a worker that hangs with its copy open. */
	if (server->share.listen_fd >= 0)
		shutdown(server->share.listen_fd, SHUT_RD);
	close_fd(&server->share.listen_fd);
}

void
server_close(struct server *server)
{
	close_fd(&server->share.listen_fd);
	if (server->share.spawner_fd >= 0)
		unlink(server->socket_path);
	close_fd(&server->share.spawner_fd);
	close_fd(&server->share.terminal_fds[0]);
	close_fd(&server->share.terminal_fds[1]);
	close_fd(&server->share.signal_fd);
	close_fd(&server->share.alive_read_fd);
	close_fd(&server->share.alive_write_fd);
	if (server->share.notify != NULL)
		notify_close(server->share.notify);
	if (server->share.shm != NULL) {
		if (server->entered)
			scoreboard_retire(shm_scoreboard(server->share.shm), server->self);
		shm_close(server->share.shm);
	}
	if (server->run_lock_fd >= 0)
		unlink(server->pid_path);
	close_fd(&server->run_lock_fd);
	close_fd(&server->state_lock_fd);
	free(server->pid_path);
	free(server->socket_path);
}
