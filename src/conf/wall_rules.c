/* wall_rules.c - the denied calls of walls.c, and those that are judged by their arguments. */
/* SPDX-License-Identifier: MIT */
#include "conf/wall_rules.h"

#include "conf/config.h"
#include "conf/walls.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define LOW_HALF 0xffffffffULL

#if defined(__s390__)
enum { CLONE_FLAGS_ARG = 1 };
#else
enum { CLONE_FLAGS_ARG = 0 };
#endif

struct walk {
	const struct config *config;
	wall_rule_f *emit;
	void *arg;
};

static const uint64_t namespace_flags[] = {
	CLONE_NEWUSER,
	CLONE_NEWNS,
	CLONE_NEWPID,
	CLONE_NEWNET,
	CLONE_NEWIPC,
	CLONE_NEWUTS,
	CLONE_NEWCGROUP,
};

/* Not in the network namespace, or for root of the host only. */
static const uint64_t netlink_denied[] = { NETLINK_XFRM, NETLINK_ISCSI, NETLINK_SCSITRANSPORT, NETLINK_RDMA,
	NETLINK_CRYPTO };

static int
deny(const struct walk *walk, const char *call, int answer, struct wall_condition when)
{
	return walk->emit(&(struct wall_rule){ call, answer, 1, { when } }, walk->arg);
}

static int
deny_flag(const struct walk *walk, const char *call, unsigned arg, uint64_t flag)
{
	return deny(walk, call, EPERM, (struct wall_condition){ arg, WALL_MASKED_EQ, flag, flag });
}

/* A new namespace of any kind; every other use of clone and unshare is fine. */
static int
deny_namespaces(const struct walk *walk)
{
	bool clone_allowed = walls_allows_call(walk->config, "clone");
	bool unshare_allowed = walls_allows_call(walk->config, "unshare");
	int rc = 0;

	for (size_t i = 0; i < sizeof namespace_flags / sizeof *namespace_flags && rc == 0; i++) {
		if (!clone_allowed)
			rc = deny_flag(walk, "clone", CLONE_FLAGS_ARG, namespace_flags[i]);
		if (rc == 0 && !unshare_allowed)
			rc = deny_flag(walk, "unshare", 0, namespace_flags[i]);
	}
	if (rc == 0 && !unshare_allowed)
		rc = deny_flag(walk, "unshare", 0, CLONE_NEWTIME);
	return rc;
}

static int
deny_netlink(const struct walk *walk, const char *call)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof netlink_denied / sizeof *netlink_denied && rc == 0; i++) {
		struct wall_rule rule = { call, EPROTONOSUPPORT, 2,
			{ { 0, WALL_EQ, AF_NETLINK, 0 }, { 2, WALL_MASKED_EQ, netlink_denied[i], LOW_HALF } } };

		rc = walk->emit(&rule, walk->arg);
	}
	return rc;
}

/*
 * Local and internet sockets and netlink stay. The rest is either not in the
 * network namespace (vsock, the kernel's crypto) or a protocol that nobody needs
 * on a loopback. The kernel reads the low half of the argument only, so whatever
 * is set above it makes the number a large one, which is denied.
 */
static int
deny_families(const struct walk *walk, const char *call)
{
	int rc;

	if (walls_allows_call(walk->config, call))
		return 0;
	rc = deny(walk, call, EAFNOSUPPORT, (struct wall_condition){ 0, WALL_GT, AF_NETLINK, 0 });
	for (uint64_t family = AF_INET + 1; family < AF_NETLINK && rc == 0; family++) {
		if (family != AF_INET6)
			rc = deny(walk, call, EAFNOSUPPORT, (struct wall_condition){ 0, WALL_EQ, family, 0 });
	}
	return rc != 0 ? rc : deny_netlink(walk, call);
}

/* Typing into a terminal that a command with more rights reads. */
static int
deny_terminal_tricks(const struct walk *walk)
{
	const uint64_t requests[] = { TIOCSTI, TIOCLINUX };
	int rc = 0;

	for (size_t i = 0; i < 2 && rc == 0 && !walls_allows_call(walk->config, "ioctl"); i++)
		rc = deny(
			walk, "ioctl", EPERM, (struct wall_condition){ 1, WALL_MASKED_EQ, requests[i], LOW_HALF });
	return rc;
}

/* Root of the sandbox is the same user as the agent, and could end it by a limit on its cpu time. */
static int
deny_limits_of_agent(const struct walk *walk)
{
	struct wall_rule rule = { "prlimit64", EPERM, 2,
		{ { 0, WALL_MASKED_EQ, 1, LOW_HALF }, { 2, WALL_NE, 0, 0 } } };

	return walk->emit(&rule, walk->arg);
}

static int
deny_calls(const struct walk *walk)
{
	int rc = 0;

	for (size_t i = 0; i < walls_call_count && rc == 0; i++) {
		struct wall_rule rule = { walls_calls[i].name, walls_calls[i].answer, 0, { { 0 } } };

		if (!walls_allows_call(walk->config, rule.call))
			rc = walk->emit(&rule, walk->arg);
	}
	return rc;
}

int
wall_rules_each(const struct config *config, wall_rule_f *emit, void *arg)
{
	const struct walk walk = { config, emit, arg };
	int rc = deny_calls(&walk);

	if (rc == 0)
		rc = deny_namespaces(&walk);
	if (rc == 0)
		rc = deny_families(&walk, "socket");
	if (rc == 0)
		rc = deny_families(&walk, "socketpair");
	if (rc == 0)
		rc = deny_terminal_tricks(&walk);
	return rc != 0 ? rc : deny_limits_of_agent(&walk);
}
