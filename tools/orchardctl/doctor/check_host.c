/* check_host.c - what this host has of all that docs/local-driver.md wants from the server's. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"
#include "orchardctl/doctor/finding.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEFAULT_CONFIG ORCHARD_SYSCONFDIR "/orchard.conf"

enum { LEAST_MAJOR = 5, LEAST_MINOR = 19, FILE_MAX = 1 << 20 };

/* The contents, or NULL; malloc'ed. */
static char *
contents(const char *path)
{
	struct err err;
	size_t len;
	char *text;

	return file_read_at(AT_FDCWD, path, FILE_MAX, &text, &len, &err) == 0 ? text : NULL;
}

/* Whether a word stands in a text of words. */
static bool
has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
		if ((p == text || strchr(" \t\n", p[-1]) != NULL) && strchr(" \t\n", p[len]) != NULL)
			return true;
	return false;
}

static void
check_kernel(struct findings *findings)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2)
		return;
	if (major < LEAST_MAJOR || (major == LEAST_MAJOR && minor < LEAST_MINOR))
		finding_add(findings, FINDING_FAIL, "kernel", "upgrade the kernel",
			"Linux %s; images need 5.19 or newer", name.release);
	else
		finding_add(findings, FINDING_OK, "kernel", NULL, "Linux %s", name.release);
}

static void
check_namespaces(struct findings *findings)
{
	AUTO_FREE char *most = contents("/proc/sys/user/max_user_namespaces");

	if (most == NULL)
		finding_add(findings, FINDING_FAIL, "namespaces", "a kernel with CONFIG_USER_NS",
			"this kernel has no user namespaces");
	else if (strtoll(most, NULL, 10) <= 0)
		finding_add(findings, FINDING_FAIL, "namespaces", "sysctl -w user.max_user_namespaces=100000",
			"user namespaces are switched off");
	else
		finding_add(findings, FINDING_OK, "namespaces", NULL, "user namespaces are allowed");
}

static void
check_overlay(struct findings *findings)
{
	AUTO_FREE char *known = contents("/proc/filesystems");

	if (known != NULL && has_word(known, "overlay"))
		finding_add(findings, FINDING_OK, "overlayfs", NULL, "the kernel knows it");
	else
		finding_add(findings, FINDING_FAIL, "overlayfs", "modprobe overlay; echo overlay >>/etc/modules",
			"the kernel does not know it");
}

/* v1: each controller has a directory. */
static bool
has_controller(const char *v2, const char *name)
{
	AUTO_FREE char *path = alloc_format("/sys/fs/cgroup/%s", name);
	struct stat stat_;

	return v2 != NULL ? has_word(v2, name) : stat(path, &stat_) == 0;
}

static void
check_cgroups(struct findings *findings)
{
	static const char *const wanted[] = { "cpu", "memory", "pids" };
	AUTO_FREE char *controllers = NULL;
	struct statfs fs;
	bool v2 = statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC, complete = true;

	if (v2) {
		controllers = contents("/sys/fs/cgroup/cgroup.controllers");
		/* In a container the root may be another's group, whose name the file has all the same. */
		if (controllers == NULL)
			controllers = alloc_string("");
	}
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		if (has_controller(controllers, wanted[i]))
			continue;
		complete = false;
		finding_add(findings, FINDING_FAIL, "cgroups",
			v2 ? "boot with cgroup_enable=memory, or give this container the controllers (Delegate=yes)"
			   : "mount the controller below /sys/fs/cgroup, or boot with "
			     "systemd.unified_cgroup_hierarchy=1",
			"there is no controller %s", wanted[i]);
	}
	if (complete)
		finding_add(
			findings, FINDING_OK, "cgroups", NULL, "%s with cpu, memory and pids", v2 ? "v2" : "v1");
}

static bool
is_in_path(const char *program)
{
	AUTO_FREE char *path = alloc_string(
		getenv("PATH") != NULL ? getenv("PATH") : "/usr/sbin:/usr/bin:/sbin:/bin");
	char *save = NULL;

	if (strchr(program, '/') != NULL)
		return access(program, X_OK) == 0;
	for (char *dir = strtok_r(path, ":", &save); dir != NULL; dir = strtok_r(NULL, ":", &save)) {
		AUTO_FREE char *file = alloc_format("%s/%s", dir, program);

		if (access(file, X_OK) == 0)
			return true;
	}
	return false;
}

static void
check_images(struct findings *findings, const struct config *config)
{
	const char *image = config->default_image, *skopeo = config->image_skopeo_path;
	struct stat stat_;

	if (image[0] == '\0')
		finding_add(findings, FINDING_WARN, "images", "set default_image in orchard.conf",
			"the image \"default\" stands for nothing");
	else if (strncmp(image, "dir:", 4) == 0 && (stat(image + 4, &stat_) != 0 || !S_ISDIR(stat_.st_mode)))
		finding_add(findings, FINDING_FAIL, "images", "scripts/quickstart makes one; or set default_image",
			"the default image %s is not there", image);
	else
		finding_add(findings, FINDING_OK, "images", NULL, "default is %s", image);
	if (!is_in_path(skopeo))
		finding_add(findings, FINDING_WARN, "registries", "apt-get install skopeo",
			"%s is not installed, so no image can be fetched", skopeo);
	else
		finding_add(findings, FINDING_OK, "registries", NULL, "images can be fetched by %s", skopeo);
}

/* A file that is named must be there, the default one may be missing: then ret_path is NULL. */
static int
load_settings(const char *conf_path, const char **ret_path, struct config **ret_config, struct err *err)
{
	*ret_path = conf_path != NULL ? conf_path : DEFAULT_CONFIG;
	if (conf_path == NULL && access(DEFAULT_CONFIG, F_OK) != 0)
		*ret_path = NULL;
	/* What is only worth a warning stands in the server's own log. */
	log_set_level(LOG_LEVEL_ERROR);
	return config_load(*ret_path, ret_config, err);
}

/* As orchardd reads them; NULL: it would not take them. */
static struct config *
check_settings(struct findings *findings, const char *conf_path)
{
	struct config *config;
	const char *path;
	struct err err;

	if (load_settings(conf_path, &path, &config, &err) != 0) {
		finding_add(findings, path != NULL ? FINDING_FAIL : FINDING_WARN, "settings",
			path != NULL ? "correct that; 'orchardd -t' tries all of it"
				     : "name the file that orchardd reads: --conf FILE",
			"%s%s",
			path != NULL ? "" : "there is no " DEFAULT_CONFIG ", and the environment alone won't do: ",
			err.msg);
		return NULL;
	}
	finding_add(findings, FINDING_OK, "settings", NULL, "%s",
		path != NULL ? path : "there is no " DEFAULT_CONFIG ": defaults and the environment count");
	return config;
}

char *
doctor_host_key(const char *conf_path)
{
	struct config *config;
	const char *path;
	struct err err;
	char *key = NULL;

	if (load_settings(conf_path, &path, &config, &err) != 0)
		return NULL;
	if (config->api_keys.count > 0)
		key = alloc_string(config->api_keys.items[0]);
	config_forget_keys(config);
	config_free(config);
	return key;
}

void
doctor_check_host(struct findings *findings, const char *conf_path)
{
	struct config *config = check_settings(findings, conf_path);
	struct utsname name;

	if (uname(&name) == 0)
		finding_add(findings, FINDING_OK, "host", NULL,
			"looked at as the server's: %s (with --no-host it is not)", name.nodename);
	if (config != NULL && config_is_kubernetes(config)) {
		doctor_check_rights(findings, config);
	} else {
		check_kernel(findings);
		check_namespaces(findings);
		check_overlay(findings);
		check_cgroups(findings);
		if (config != NULL)
			check_images(findings, config);
	}
	if (config != NULL)
		doctor_check_redis(findings, config);
	config_free(config);
}
