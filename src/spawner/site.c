/* site.c - opens what all sandboxes of this host share. */
/* SPDX-License-Identifier: MIT */
#include "spawner/site.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/proc.h"
#include "conf/config.h"
#include "conf/walls.h"
#include "runtime/runtime.h"
#include "spawner/cgroup/cgroup_earlier.h"
#include "spawner/make/enter_clone.h"
#include "spawner/make/filter.h"
#include "spawner/make/maker.h"
#include "spawner/make/pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* A directory of ours below base; one that somebody else owns is refused. */
static int
own_dir(int base, const char *name, mode_t mode, int *ret_fd, struct err *err)
{
	struct stat st;

	if (mkdirat(base, name, mode) != 0 && errno != EEXIST)
		return err_set_errno(err, errno, "mkdir %s", name);
	*ret_fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0)
		return err_set_errno(err, errno, "open %s", name);
	if (fstat(*ret_fd, &st) != 0 || st.st_uid != geteuid())
		return err_set(err, ERR_DENIED, "%s belongs to user %u; it must be root's", name, st.st_uid);
	if (fchmod(*ret_fd, mode) != 0)
		return err_set_errno(err, errno, "chmod %s", name);
	return 0;
}

/* Of state_dir or run_dir. */
static const struct {
	const char *name;
	mode_t mode;
	bool in_run;
	size_t fd; /* where in struct site */
} own_dirs[] = {
	{ "sandboxes", 0700, false, offsetof(struct site, sandboxes_fd) },
	{ "trash", 0700, false, offsetof(struct site, trash_fd) },
	{ "images", 0700, false, offsetof(struct site, images_fd) },
	{ "sandboxes", 0711, true, offsetof(struct site, sockets_fd) },
	{ "runtime", 0711, true, offsetof(struct site, runtimes_fd) },
	{ "spawner", 0700, true, offsetof(struct site, memory_fd) },
};

enum { OWN_DIRS = sizeof own_dirs / sizeof *own_dirs };

static const char *
own_dir_top(const struct config *config, size_t i)
{
	return own_dirs[i].in_run ? config->run_dir : config->state_dir;
}

static int
own_dir_open(const struct config *config, size_t i, bool *ret_made, int *ret_fd, struct err *err)
{
	const char *top = own_dir_top(config, i);
	AUTO_FD base = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (base < 0)
		return err_set_errno(err, errno, "%s %s", own_dirs[i].in_run ? "run_dir" : "state_dir", top);
	*ret_made = mkdirat(base, own_dirs[i].name, own_dirs[i].mode) == 0;
	if (own_dir(base, own_dirs[i].name, own_dirs[i].mode, ret_fd, err) != 0)
		return err_prefix(err, "%s %s", own_dirs[i].in_run ? "run_dir" : "state_dir", top);
	return 0;
}

static int
open_dirs(struct site *site, struct err *err)
{
	const struct config *config = site->config;
	AUTO_FD run = -1;
	bool made;

	if (file_mkdirs(config->state_dir, 0755, err) != 0 || file_mkdirs(config->run_dir, 0755, err) != 0)
		return -1;
	for (size_t i = 0; i < OWN_DIRS; i++)
		if (own_dir_open(config, i, &made, (int *)(void *)((char *)site + own_dirs[i].fd), err) != 0)
			return -1;
	run = open(config->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run < 0 || pieces_mount(run, &site->pieces_fd, err) != 0)
		return run < 0 ? err_set_errno(err, errno, "run_dir %s", config->run_dir)
			       : err_prefix(err, "run_dir %s", config->run_dir);
	return 0;
}

/* The new one takes the place of the old descriptor. Whoever is the one that makes it says so. */
void
site_keep_dirs(const struct site *site)
{
	for (size_t i = 0; i < OWN_DIRS; i++) {
		int old = *(const int *)(const void *)((const char *)site + own_dirs[i].fd);
		AUTO_FD fd = -1;
		struct stat st;
		struct err err;
		bool made;

		if (fstat(old, &st) != 0 || st.st_nlink > 0)
			continue;
		if (own_dir_open(site->config, i, &made, &fd, &err) != 0)
			log_error("a directory was removed, and can't be made anew: %s", err.msg);
		else if (dup3(fd, old, O_CLOEXEC) >= 0 && made)
			log_warn("%s/%s was removed: it is made anew", own_dir_top(site->config, i),
				own_dirs[i].name);
	}
}

/* Mounts of ours stay ours; what the host unmounts is unmounted here too. */
static int
leave_host_mounts(struct err *err)
{
	if (unshare(CLONE_NEWNS) != 0)
		return err_set_errno(
			err, errno, "no mount namespace of its own (the spawner needs root with CAP_SYS_ADMIN)");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
		return err_set_errno(err, errno, "mounts of the spawner can't be made its own");
	return 0;
}

static int
find_user(struct site *site, struct err *err)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(site->config->service_user);
	if (pw == NULL)
		return err_set(err, ERR_NOT_FOUND,
			"no user \"%s\": create it (useradd --system) or set service_user",
			site->config->service_user);
	site->user = pw->pw_uid;
	site->group = pw->pw_gid;
	return 0;
}

static int
write_resolv(const struct site *site, struct err *err)
{
	char text[256];

	net_resolv_text(&site->net, text, sizeof text);
	return pieces_write(site->pieces_fd, PIECE_RESOLV, text, err);
}

static int
copy_file(int from, int to)
{
	ssize_t n;

	while ((n = sendfile(to, from, NULL, 1 << 20)) != 0) {
		if (n < 0 && errno != EINTR)
			return -1;
	}
	return 0;
}

/*
 * The program is copied once into memory that nobody can write, so what user
 * code may find under /proc/1/exe is not the file on the host's disk.
 */
static int
load_agent(const char *path, int *ret_fd, struct err *err)
{
	AUTO_FD file = open(path, O_RDONLY | O_CLOEXEC);
	AUTO_FD copy = -1;

	if (file < 0)
		return err_set_errno(err, errno, "agent program %s", path);
	copy = memfd_create("orchard-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (copy < 0 && errno == EINVAL)
		copy = memfd_create("orchard-agent", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy < 0)
		return err_set_errno(err, errno, "memory for the agent program");
	if (copy_file(file, copy) != 0 || fchmod(copy, 0555) != 0)
		return err_set_errno(err, errno, "copy agent program %s", path);
	if (file_seal(copy) != 0)
		return err_set_errno(err, errno, "seal agent program");
	*ret_fd = STEAL_FD(copy);
	return 0;
}

/*
 * Where commands may make namespaces the agent is held like them. Without no_new_privs it could not load the filter
 * that takes clone3 from them.
 */
static bool
may_clone(const struct site *site)
{
	const struct config *config = site->config;

	return site->maker == &maker_builtin && enter_clone_takes_cgroup() && config->sandbox_seccomp &&
		config->sandbox_no_new_privs && !walls_allows_call(config, "clone3") &&
		!walls_allows_call(config, "clone") && !walls_allows_call(config, "unshare") &&
		!walls_allows_call(config, "setns");
}

/* What a runtime's program leaves running becomes ours, as what we clone is from the start. */
static int
open_cgroups(struct site *site, struct err *err)
{
	const struct config *config = site->config;
	const struct cgroup_wish wish = {
		.parent = config->cgroup_parent,
		.state_dir = config->state_dir,
		.share_io = config->sandbox_io_weight != CGROUP_USUAL_WEIGHT,
	};

	if (cgroup_host_open(&site->cgroup, &wish, err) != 0)
		return -1;
	cgroup_earlier_open(&site->cgroup, site->memory_fd);
	return 0;
}

static int
find_maker(struct site *site, struct err *err)
{
	site->runtime = calloc(1, sizeof *site->runtime);
	if (site->runtime == NULL)
		abort();
	if (runtime_find(site->config, site->runtime, err) != 0)
		return -1;
	if (site->runtime->kind == RUNTIME_BUILTIN)
		return 0;
	site->maker = &maker_oci;
	log_info("%s (%s) makes the sandboxes", site->runtime->name, site->runtime->path);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		return err_set_errno(err, errno, "subreaper");
	return 0;
}

int
site_open(struct site *site, const struct config *config, struct err *err)
{
	struct err agent_err;

	memset(site, 0, sizeof *site);
	site->config = config;
	site->maker = &maker_builtin;
	site->runtimes_fd = site->memory_fd = -1;
	site->sandboxes_fd = site->trash_fd = site->images_fd = site->sockets_fd = -1;
	site->pieces_fd = site->agent_fd = site->null_fd = -1;
	cgroup_host_init(&site->cgroup);
	net_init(&site->net);
	proc_boot_id(site->boot_id);
	if (geteuid() != 0)
		return err_set(
			err, ERR_UNSUPPORTED, "sandboxes of the local driver need root: start orchardd as root");
	net_keep_mounts(&site->net);
	if (find_user(site, err) != 0 || leave_host_mounts(err) != 0 || open_dirs(site, err) != 0)
		return -1;
	net_open(&site->net, config);
	if (write_resolv(site, err) != 0)
		return -1;
	disk_open(&site->disk, site->sandboxes_fd, config->disk_project_base);
	site->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (site->null_fd < 0)
		return err_set_errno(err, errno, "/dev/null");
	if (find_maker(site, err) != 0)
		return -1;
	site->agent_clones = may_clone(site);
	if (filter_build(config, site->agent_clones, &site->filter, err) != 0 ||
		walls_capabilities(config, &site->capabilities, err) != 0)
		return -1;
	walls_warn(config);
	if (load_agent(config->agent_path, &site->agent_fd, &agent_err) != 0)
		snprintf(site->agent_problem, sizeof site->agent_problem, "%.200s; set agent_path", agent_err.msg);
	return open_cgroups(site, err);
}

void
site_close(struct site *site)
{
	cleanup_fd(&site->sandboxes_fd);
	cleanup_fd(&site->trash_fd);
	cleanup_fd(&site->images_fd);
	cleanup_fd(&site->sockets_fd);
	cleanup_fd(&site->runtimes_fd);
	cleanup_fd(&site->memory_fd);
	cleanup_fd(&site->pieces_fd);
	cleanup_fd(&site->agent_fd);
	cleanup_fd(&site->null_fd);
	net_close(&site->net);
	free(site->filter.filter);
	free(site->runtime);
	cgroup_host_close(&site->cgroup);
}
