/* runtime_bundle.c - writes config.json. */
/* SPDX-License-Identifier: MIT */
#include "runtime/runtime_bundle.h"

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "conf/config.h"
#include "conf/covers.h"
#include "conf/walls.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NOFILE_SOFT = 65536 };

static void
add_text(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, json_object_new_string(text));
}

static void
add_number(struct json_object *object, const char *name, int64_t number)
{
	json_object_object_add(object, name, json_object_new_int64(number));
}

static void
push_text(struct json_object *array, const char *text)
{
	json_object_array_add(array, json_object_new_string(text));
}

static void
push_all(struct json_object *array, const char *const *texts)
{
	for (; *texts != NULL; texts++)
		push_text(array, *texts);
}

/* --- process --- */

static struct json_object *
capabilities_json(uint64_t set)
{
	struct json_object *names = json_object_new_array();
	char name[40];

	for (int number = 0; number < 64; number++) {
		const char *plain = set >> number & 1 ? walls_capability_name(number) : NULL;

		if (plain == NULL)
			continue;
		snprintf(name, sizeof name, "CAP_%s", plain);
		push_text(names, name);
	}
	return names;
}

static void
push_limit(struct json_object *limits, const char *type, int64_t soft, int64_t hard)
{
	struct json_object *limit = json_object_new_object();

	add_text(limit, "type", type);
	add_number(limit, "soft", soft);
	add_number(limit, "hard", hard);
	json_object_array_add(limits, limit);
}

static struct json_object *
process_json(const struct runtime_bundle *bundle)
{
	static const char *const sets[] = { "bounding", "effective", "permitted" };
	struct json_object *process = json_object_new_object(), *user = json_object_new_object();
	struct json_object *args = json_object_new_array(), *limits = json_object_new_array();
	struct json_object *capabilities = json_object_new_object();
	int64_t soft = bundle->nofile_max < NOFILE_SOFT ? bundle->nofile_max : NOFILE_SOFT;
	char program[40];

	add_number(user, "uid", 0);
	add_number(user, "gid", 0);
	add_number(user, "umask", 022);
	json_object_object_add(process, "user", user);
	snprintf(program, sizeof program, "/proc/self/fd/%d", bundle->program_fd);
	push_text(args, program);
	push_all(args, bundle->args);
	json_object_object_add(process, "args", args);
	json_object_object_add(process, "env", json_object_new_array());
	add_text(process, "cwd", "/");
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		json_object_object_add(capabilities, sets[i], capabilities_json(bundle->capabilities));
	json_object_object_add(process, "capabilities", capabilities);
	push_limit(limits, "RLIMIT_NOFILE", soft, bundle->nofile_max);
	/* No file is that small; and only for 1 the kernel also leaves out a core_pattern that is a program. */
	push_limit(limits, "RLIMIT_CORE", 1, 1);
	json_object_object_add(process, "rlimits", limits);
	json_object_object_add(
		process, "noNewPrivileges", json_object_new_boolean(bundle->config->sandbox_no_new_privs));
	return process;
}

/* --- mounts --- */

/* The options end with NULL. */
static void
push_mount(struct json_object *mounts, const char *type, const char *source, const char *target, ...)
{
	struct json_object *mount = json_object_new_object(), *options = json_object_new_array();
	const char *option;
	va_list list;

	va_start(list, target);
	while ((option = va_arg(list, const char *)) != NULL)
		push_text(options, option);
	va_end(list);
	add_text(mount, "destination", target);
	add_text(mount, "type", type);
	add_text(mount, "source", source);
	json_object_object_add(mount, "options", options);
	json_object_array_add(mounts, mount);
}

static struct json_object *
mounts_json(const struct runtime_bundle *bundle)
{
	struct json_object *mounts = json_object_new_array();
	char source[PATH_MAX], size[40];

	push_mount(mounts, "proc", "proc", "/proc", "nosuid", "noexec", "nodev", NULL);
	push_mount(mounts, "sysfs", "sysfs", "/sys", "nosuid", "noexec", "nodev", "ro", NULL);
	snprintf(source, sizeof source, "%s/" BUNDLE_DEV, bundle->dir);
	push_mount(mounts, "bind", source, "/dev", "bind", "ro", "nosuid", "noexec", NULL);
	/* terminals are counted for the whole host: one sandbox must not take them all */
	push_mount(mounts, "devpts", "devpts", "/dev/pts", "nosuid", "noexec", "newinstance", "ptmxmode=0666",
		"mode=0620", "gid=5", "max=256", NULL);
	snprintf(size, sizeof size, "size=%lld", (long long)bundle->shm_bytes);
	push_mount(mounts, "tmpfs", "shm", "/dev/shm", "nosuid", "nodev", "mode=1777", size, NULL);
	if (bundle->network) {
		snprintf(source, sizeof source, "%s/" BUNDLE_RESOLV, bundle->dir);
		push_mount(mounts, "bind", source, "/etc/resolv.conf", "bind", "ro", "nosuid", "nodev", "noexec",
			NULL);
	}
	return mounts;
}

/* --- linux --- */

static struct json_object *
ids_json(const struct runtime_bundle *bundle)
{
	struct json_object *map = json_object_new_object(), *maps = json_object_new_array();

	add_number(map, "containerID", 0);
	add_number(map, "hostID", bundle->first_id);
	add_number(map, "size", bundle->ids);
	json_object_array_add(maps, map);
	return maps;
}

static struct json_object *
namespaces_json(void)
{
	static const char *const types[] = { "user", "pid", "mount", "ipc", "uts", "network", "cgroup" };
	struct json_object *namespaces = json_object_new_array();

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		struct json_object *one = json_object_new_object();

		add_text(one, "type", types[i]);
		json_object_array_add(namespaces, one);
	}
	return namespaces;
}

static void
push_processors(struct json_object *masked)
{
	char path[64];

	for (int cpu = 0;; cpu++) {
		bool there;

		covers_processor(cpu, path, sizeof path);
		there = access(path, F_OK) == 0;
		if (there)
			push_text(masked, path);
		*strrchr(path, '/') = '\0';
		if (!there && (cpu == 0 || access(path, F_OK) != 0))
			return;
	}
}

static void
add_covers(struct json_object *platform, const struct config *config)
{
	struct json_object *masked = json_object_new_array(), *readonly = json_object_new_array();

	push_all(readonly, covers_agent_readonly);
	push_all(masked, covers_agent_files);
	if (config->sandbox_mask_paths) {
		push_all(readonly, covers_readonly);
		push_all(masked, covers_files);
		push_all(masked, covers_dirs);
		push_processors(masked);
	}
	json_object_object_add(platform, "maskedPaths", masked);
	json_object_object_add(platform, "readonlyPaths", readonly);
}

static struct json_object *
linux_json(const struct runtime_bundle *bundle)
{
	struct json_object *platform = json_object_new_object();
	struct json_object *seccomp = runtime_seccomp_json(bundle->config);
	char cgroup[80];

	snprintf(cgroup, sizeof cgroup, "/%s", bundle->id);
	add_text(platform, "cgroupsPath", cgroup);
	json_object_object_add(platform, "uidMappings", ids_json(bundle));
	json_object_object_add(platform, "gidMappings", ids_json(bundle));
	json_object_object_add(platform, "namespaces", namespaces_json());
	if (seccomp != NULL)
		json_object_object_add(platform, "seccomp", seccomp);
	add_covers(platform, bundle->config);
	return platform;
}

struct json_object *
runtime_bundle_json(const struct runtime_bundle *bundle)
{
	struct json_object *object = json_object_new_object(), *root = json_object_new_object();

	add_text(object, "ociVersion", "1.0.0");
	json_object_object_add(object, "process", process_json(bundle));
	add_text(root, "path", BUNDLE_ROOT);
	json_object_object_add(object, "root", root);
	add_text(object, "hostname", bundle->id);
	json_object_object_add(object, "mounts", mounts_json(bundle));
	json_object_object_add(object, "linux", linux_json(bundle));
	return object;
}

int
runtime_bundle_write(int dir_fd, const struct runtime_bundle *bundle, struct err *err)
{
	AUTO_JSON struct json_object *object = runtime_bundle_json(bundle);
	size_t len;
	const char *text = json_text(object, &len);

	return file_write_atomic_at(dir_fd, "config.json", 0600, text, len, false, err);
}
