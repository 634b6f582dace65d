/* check.c - the start's questions, also asked by `orchardd -t`. */
/* SPDX-License-Identifier: MIT */
#include "master/check.h"

#include "base/err.h"
#include "conf/config.h"
#include "master/dirs.h"
#include "master/listener.h"
#include "master/service_user.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int
check_agent(const struct config *config, struct err *err)
{
	struct stat st;

	if (strcmp(config->driver, "local") != 0)
		return 0;
	if (stat(config->agent_path, &st) < 0)
		return err_set(err, ERR_INVALID,
			"the agent %s is not there (%s): install orchard-agent, or set agent_path to where it is",
			config->agent_path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) == 0)
		return err_set(err, ERR_INVALID, "%s (the setting agent_path) is no program", config->agent_path);
	return 0;
}

int
check_host(const struct config *config, struct service_user *ret_user, struct err *err)
{
	if (service_user_find(config->service_user, ret_user, err) < 0 || dirs_check(config, err) < 0 ||
		listener_check(config->listen_host, config->port, err) < 0)
		return -1;
	return check_agent(config, err);
}
