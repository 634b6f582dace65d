/*
 * filter.c - a deny list: what no rule of conf/wall_rules.c matches is allowed.
 *
 * A sandbox is root of its own user namespace only, so the kernel refuses most
 * of this anyway; the list keeps user code away from the parts of the kernel
 * where such checks have failed before. A program of another ABI (32 bit, x32)
 * is killed with SIGSYS: its call numbers are not checked.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/filter.h"

#include "base/err.h"
#include "conf/config.h"
#include "conf/wall_rules.h"

#include <errno.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const enum scmp_compare compares[] = {
	[WALL_EQ] = SCMP_CMP_EQ,
	[WALL_NE] = SCMP_CMP_NE,
	[WALL_GT] = SCMP_CMP_GT,
	[WALL_MASKED_EQ] = SCMP_CMP_MASKED_EQ,
};

struct building {
	scmp_filter_ctx ctx;
	bool agent_clones;
};

static int
add_rule(const struct wall_rule *rule, void *arg)
{
	const struct building *building = arg;
	int number = seccomp_syscall_resolve_name(rule->call);
	struct scmp_arg_cmp when[WALL_CONDITIONS];

	if (number < 0) /* unknown to this library, or no call of this machine */
		return 0;
	if (building->agent_clones && strcmp(rule->call, "clone3") == 0)
		return 0;
	for (unsigned i = 0; i < rule->count; i++) {
		const struct wall_condition *from = &rule->when[i];

		when[i] = (struct scmp_arg_cmp){ .arg = from->arg, .op = compares[from->compare] };
		when[i].datum_a = from->compare == WALL_MASKED_EQ ? from->mask : from->value;
		when[i].datum_b = from->compare == WALL_MASKED_EQ ? from->value : 0;
	}
	return seccomp_rule_add_array(
		building->ctx, SCMP_ACT_ERRNO((uint32_t)rule->answer), number, rule->count, when);
}

static int
export_program(scmp_filter_ctx ctx, struct sock_fprog *ret_program, struct err *err)
{
	AUTO_FD fd = memfd_create("filter", MFD_CLOEXEC);
	off_t size;

	if (fd < 0)
		return err_set_errno(err, errno, "memfd_create");
	if (seccomp_export_bpf(ctx, fd) != 0 || (size = lseek(fd, 0, SEEK_END)) <= 0)
		return err_set(err, ERR_INTERNAL, "the system call filter can't be exported");
	ret_program->filter = malloc((size_t)size);
	if (ret_program->filter == NULL || pread(fd, ret_program->filter, (size_t)size, 0) != size) {
		free(ret_program->filter);
		return err_set(err, ERR_INTERNAL, "the system call filter can't be read back");
	}
	ret_program->len = (unsigned short)((size_t)size / sizeof(struct sock_filter));
	return 0;
}

int
filter_build(const struct config *config, bool agent_clones, struct sock_fprog *ret_program, struct err *err)
{
	struct building building = { .agent_clones = agent_clones };
	scmp_filter_ctx ctx = NULL;
	int rc;

	*ret_program = (struct sock_fprog){ 0 };
	if (!config->sandbox_seccomp)
		return 0;
	ctx = seccomp_init(SCMP_ACT_ALLOW);
	if (ctx == NULL)
		return err_set(err, ERR_INTERNAL, "seccomp_init failed");
	building.ctx = ctx;
	rc = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = wall_rules_each(config, add_rule, &building);
	if (rc != 0)
		rc = err_set_errno(err, -rc, "system call filter");
	else
		rc = export_program(ctx, ret_program, err);
	seccomp_release(ctx);
	return rc;
}
