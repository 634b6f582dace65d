/* role.c - the child's side of the start handshake: one byte, and a sentence if it failed. */
/* SPDX-License-Identifier: MIT */
#include "master/role.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"

#include <string.h>
#include <unistd.h>

static void
role_tell(struct role_env *env, const char *text, size_t len)
{
	if (env->ready_fd < 0)
		return;
	if (file_write_all(env->ready_fd, text, len) < 0)
		log_warn("the master does not listen to the start report");
	close(env->ready_fd);
	env->ready_fd = -1;
}

void
role_ready(struct role_env *env)
{
	role_tell(env, "R", 1);
}

void
role_failed(struct role_env *env, const struct err *why)
{
	char text[1 + sizeof why->msg];
	size_t len = strnlen(why->msg, sizeof why->msg);

	text[0] = 'E';
	memcpy(text + 1, why->msg, len);
	role_tell(env, text, len + 1);
}
