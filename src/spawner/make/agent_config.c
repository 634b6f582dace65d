/* agent_config.c - the image's settings, the request's on top. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/agent_config.h"

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "image/image.h"
#include "spawner/make/make.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/mman.h>

enum { CGROUP_NUMBER = 5, OOM_NUMBER = 6, SPOOL_NUMBER = 7, DISK_NUMBER = 8 };

static const char default_path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static bool
has_path(struct json_object *env)
{
	for (size_t i = 0; i < json_object_array_length(env); i++) {
		const char *entry = json_object_get_string(json_object_array_get_idx(env, i));

		if (entry != NULL && strncmp(entry, "PATH=", 5) == 0)
			return true;
	}
	return false;
}

/* Later entries win, so the order is: default, image, request. */
static struct json_object *
join_env(const struct make_order *order, const struct image *image)
{
	struct json_object *env = json_object_new_array();

	if (!has_path(image->env))
		json_object_array_add(env, json_object_new_string(default_path));
	for (size_t i = 0; i < json_object_array_length(image->env); i++)
		json_object_array_add(env, json_object_get(json_object_array_get_idx(image->env, i)));
	for (size_t at = 0; at < order->spec.env_len; at += strlen(order->env + at) + 1)
		json_object_array_add(env, json_object_new_string(order->env + at));
	return env;
}

static void
add_string(struct json_object *object, const char *name, const char *value)
{
	json_object_object_add(object, name, json_object_new_string(value != NULL ? value : ""));
}

int
agent_config_open(const struct make_order *order, const struct image *image, const struct agent_inherits *inherits,
	int *ret_fd, struct err *err)
{
	AUTO_JSON struct json_object *object = json_object_new_object();
	const char *dir = order->spec.working_dir;
	AUTO_FD fd = memfd_create("config", MFD_CLOEXEC);
	const char *text;
	size_t len;

	if (object == NULL)
		abort();
	add_string(object, "sandbox_id", order->spec.id);
	add_string(object, "sandbox_uid", order->spec.uid);
	add_string(object, "token", order->spec.token);
	json_object_object_add(object, "env", join_env(order, image));
	add_string(object, "user", image->user);
	add_string(object, "working_dir", dir[0] != '\0' ? dir : image->working_dir);
	json_object_object_add(object, "cgroup_fd", json_object_new_int(inherits->cgroup ? CGROUP_NUMBER : -1));
	json_object_object_add(object, "oom_fd", json_object_new_int(inherits->oom ? OOM_NUMBER : -1));
	json_object_object_add(object, "spool_fd", json_object_new_int(SPOOL_NUMBER));
	json_object_object_add(object, "disk_fd", json_object_new_int(inherits->disk ? DISK_NUMBER : -1));
	json_object_object_add(object, "deny_clone3", json_object_new_boolean(inherits->clone3));
	if (inherits->capabilities >= 0)
		json_object_object_add(object, "capabilities", json_object_new_int64(inherits->capabilities));
	json_object_object_add(object, "memory_bytes", json_object_new_int64(order->spec.memory_bytes));
	text = json_text(object, &len);
	if (fd < 0 || file_write_all(fd, text, len) != 0 || lseek(fd, 0, SEEK_SET) != 0)
		return err_set_errno(err, errno, "agent configuration");
	*ret_fd = STEAL_FD(fd);
	return 0;
}
