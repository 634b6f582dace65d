/* check.c - the start's questions, also asked by `orchardd -t`. */
/* SPDX-License-Identifier: MIT */
#include "master/check.h"

#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "master/dirs.h"
#include "master/host_io.h"
#include "master/host_limits.h"
#include "master/listener.h"
#include "master/master.h"
#include "master/privileges.h"
#include "master/service_user.h"
#include "redis/url.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int
check_agent(const struct config *config, struct err *err)
{
	struct stat st;

	if (config_is_kubernetes(config))
		return 0;
	if (stat(config->agent_path, &st) < 0)
		return err_set(err, ERR_INVALID,
			"the agent %s is not there (%s): install orchard-agent, or set agent_path to where it is",
			config->agent_path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
		return err_set(err, ERR_INVALID, "%s (the setting agent_path) is no program", config->agent_path);
	return 0;
}

static int
check_runtime(const struct config *config, struct err *err)
{
	struct runtime *runtime;
	int rc;

	if (config_is_kubernetes(config))
		return 0;
	runtime = calloc(1, sizeof *runtime);
	if (runtime == NULL)
		abort();
	rc = runtime_find(config, runtime, err);
	free(runtime);
	return rc;
}

static int
check_redis(const struct config *config, struct err *err)
{
	struct redis_url url;
	int rc = config->use_redis ? redis_url_parse(config->redis_url, &url, err) : 0;

	explicit_bzero(&url, sizeof url);
	return rc;
}

static int
find_user(const struct config *config, struct service_user *ret_user, struct err *err)
{
	if (geteuid() != 0 && config_is_kubernetes(config))
		return service_user_self(ret_user, err);
	return service_user_find(config->service_user, ret_user, err);
}

/* In the child. */
static int
check_dropped(const struct config *config, const struct master_options *options, const struct service_user *user,
	struct err *err)
{
	return privileges_drop(user, PRIVILEGES_RUN_PROGRAMS, err) < 0 ? -1 : options->check(config, err);
}

static int
read_outcome(int fd, struct err *err)
{
	ssize_t n;

	do
		n = read(fd, err, sizeof *err);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof *err)
		return err->code == ERR_NONE ? 0 : -1;
	return err_set(err, ERR_INTERNAL, "the check has died");
}

/* Again, as the controller will: files that root can read may be closed to it. */
static int
check_as_user(const struct config *config, const struct master_options *options, const struct service_user *user,
	struct err *err)
{
	struct err outcome = { 0 };
	int fds[2], rc;
	pid_t pid;

	if (geteuid() != 0 || !config_is_kubernetes(config))
		return 0;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set_errno(err, errno, "pipe");
	pid = fork();
	if (pid == 0) {
		if (check_dropped(config, options, user, &outcome) == 0)
			outcome.code = ERR_NONE;
		_exit(write(fds[1], &outcome, sizeof outcome) == (ssize_t)sizeof outcome ? 0 : 1);
	}
	close(fds[1]);
	rc = pid < 0 ? err_set_errno(err, errno, "fork") : read_outcome(fds[0], err);
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return rc < 0 ? err_prefix(err, "as the service user %s", config->service_user) : 0;
}

static void
secret_warn(const struct config *config)
{
	if (config_is_kubernetes(config) && config->agent_secret_file[0] == '\0')
		log_warn("agent_secret_file is not set: agents of pods get random tokens, which only this server's "
			 "run_dir%s know; name a file with the output of `openssl rand -hex 32` there, the same on "
			 "all servers of these pods",
			config->use_redis ? " and Redis" : "");
}

int
check_host(const struct config *config, const struct master_options *options, struct service_user *ret_user,
	struct err *err)
{
	if (check_redis(config, err) < 0 || find_user(config, ret_user, err) < 0 || dirs_check(config, err) < 0 ||
		listener_check(config->listen_host, err) < 0)
		return -1;
	if (options->check != NULL &&
		(options->check(config, err) < 0 || check_as_user(config, options, ret_user, err) < 0))
		return -1;
	host_limits_warn(config);
	host_io_warn(config);
	secret_warn(config);
	return check_agent(config, err) < 0 ? -1 : check_runtime(config, err);
}
