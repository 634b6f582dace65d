/*
 * net_gateway.c - the life of the gateway's namespace: found or made, kept, taken down.
 *
 * It is kept by a mount in the host's mount namespace, so that it outlives every
 * process of ours. The host is touched only when the first sandbox wants a network.
 */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/vfs.h>

enum { KEEP_PATH_SIZE = 256 };

void
net_init(struct net *net)
{
	*net = (struct net){ .host_ns = -1, .gate_ns = -1, .mounts_ns = -1 };
}

void
net_keep_mounts(struct net *net)
{
	net->mounts_ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
}

static void
keep_path(const struct net *net, char ret_path[KEEP_PATH_SIZE])
{
	snprintf(ret_path, KEEP_PATH_SIZE, "%.200s/network", net->config->run_dir);
}

/* The namespace that an earlier spawner has left, or -1. */
static int
find_kept(const struct net *net)
{
	char path[KEEP_PATH_SIZE];
	AUTO_FD fd = -1;
	struct statfs fs;

	keep_path(net, path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) != 0 || (unsigned long)fs.f_type != NSFS_MAGIC ||
		ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return -1;
	return STEAL_FD(fd);
}

static int
make_space(struct net *net, struct err *err)
{
	if (unshare(CLONE_NEWNET) != 0)
		return err_set_errno(err, errno, "a network namespace (CAP_SYS_ADMIN is needed)");
	net->gate_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (net->gate_ns < 0)
		err_set_errno(err, errno, "a network namespace");
	net_space_leave(net);
	return net->gate_ns >= 0 ? 0 : -1;
}

/* Several servers on one host must not meet. */
static void
name_device(struct net *net)
{
	char hex[TEXT_SHA256_HEX_SIZE];

	text_sha256_hex(net->config->state_dir, strlen(net->config->state_dir), hex);
	snprintf(net->device, sizeof net->device, "orchard-%.7s", hex);
}

static int
open_spaces(struct net *net, struct err *err)
{
	if (net->config->network_subnet[0] == '\0')
		return err_set(err, ERR_UNSUPPORTED,
			"this server gives sandboxes no network (network_subnet is empty); ask for block_network "
			"true");
	if (ip_range_parse(net->config->network_subnet, &net->subnet, err) != 0)
		return -1;
	net->host_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (net->host_ns < 0)
		return err_set_errno(err, errno, "the host's network namespace");
	net->gate_ns = find_kept(net);
	net->kept = net->gate_ns >= 0;
	return net->kept ? 0 : make_space(net, err);
}

void
net_open(struct net *net, const struct config *config)
{
	struct err err;

	net->config = config;
	name_device(net);
	if (open_spaces(net, &err) != 0) {
		snprintf(net->problem, sizeof net->problem, "%s", err.msg);
		return;
	}
	net_dns_read(net);
	if (net_host_check(net, &err) != 0)
		log_error("sandboxes will get no network as it stands: %s", err.msg);
}

void
net_close(struct net *net)
{
	cleanup_fd(&net->host_ns);
	cleanup_fd(&net->gate_ns);
	cleanup_fd(&net->mounts_ns);
	net->host_ns = net->gate_ns = net->mounts_ns = -1;
}

uint32_t
net_capacity(const struct net *net)
{
	if (net->gate_ns < 0)
		return 0;
	return ip_range_last(&net->subnet) - net->subnet.address - NET_FIRST_HOST; /* without the last, too */
}

/* --- up and down --- */

static int
put_sysctl(const char *path, const char *value, struct err *err)
{
	return file_put_at(AT_FDCWD, path, value, err);
}

static int
prepare_gate(const struct net *net, struct err *err)
{
	struct err ignored;
	int rc;

	if (net_space_enter(net->gate_ns, err) != 0)
		return -1;
	rc = put_sysctl("/proc/sys/net/ipv4/ip_forward", "1", err);
	if (rc == 0)
		rc = put_sysctl("/proc/sys/net/ipv4/conf/all/send_redirects", "0", err);
	if (rc == 0) /* a refusal that is not told is a timeout */
		rc = put_sysctl("/proc/sys/net/ipv4/icmp_ratemask", "0", err);
	/* missing where the kernel has no IPv6 */
	(void)!put_sysctl("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1", &ignored);
	(void)!put_sysctl("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1", &ignored);
	net_space_leave(net);
	return rc;
}

/* What others on this host rely on by then is not known, so it is never switched off again. */
static int
forward_on_host(struct err *err)
{
	static const char path[] = "/proc/sys/net/ipv4/ip_forward";
	AUTO_FREE char *text = NULL;
	size_t len;

	if (file_read_at(AT_FDCWD, path, 16, &text, &len, err) != 0)
		return -1;
	if (text[0] == '1')
		return 0;
	if (put_sysctl(path, "1", err) != 0)
		return err_prefix(
			err, "switch IPv4 forwarding on (or set it yourself and network_host_setup = off)");
	log_info("IPv4 forwarding of this host is on now: sandboxes with a network need it");
	return 0;
}

static int
set_up_host(const struct net *net, struct err *err)
{
	struct err ignored;

	if (!net->config->network_host_setup) {
		(void)!net_table_unload_host(net, &ignored); /* of a time when it was on */
		return 0;
	}
	return net_table_load_host(net, err) != 0 ? -1 : forward_on_host(err);
}

/* Stays in the host's mounts: for a child that has nothing else to do. */
static int
keep(const struct net *net, struct err *err)
{
	char path[KEEP_PATH_SIZE], from[64];
	AUTO_FD file = -1;

	keep_path(net, path);
	snprintf(from, sizeof from, "/proc/self/fd/%d", net->gate_ns);
	if (setns(net->mounts_ns, CLONE_NEWNS) != 0)
		return err_set_errno(err, errno, "enter the host's mounts");
	file = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (file < 0)
		return err_set_errno(err, errno, "%s", path);
	if (mount(from, path, NULL, MS_BIND, NULL) != 0)
		return err_set_errno(err, errno, "mount %s", path);
	return 0;
}

/* Those that an earlier gateway was lost under. */
static void
rewire(const struct net *net, const struct net_member *members, size_t count)
{
	AUTO_FD fd = -1;
	struct err err;
	unsigned lost = 0;

	if (net_space_socket(net, net->gate_ns, NETLINK_ROUTE, &fd, &err) != 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (members[i].pid == 0 || net_link_exists(fd, net_box_index(net, members[i].grant.address)))
			continue;
		lost++;
		if (net_box_wire(net, members[i].pid, &members[i].grant, &err) != 0)
			log_error("process %d's sandbox has lost its network: %s", (int)members[i].pid, err.msg);
	}
	if (lost > 0)
		log_warn("%u sandboxes were without a gateway and are wired to a new one", lost);
}

static void
warn_of_own_dns(const struct net *net, const uint32_t *host, size_t count)
{
	char text[IP_RANGE_TEXT_SIZE];

	for (unsigned i = 0; i < net->dns_count; i++) {
		for (size_t j = 0; j < count; j++) {
			if (net->dns[i] != host[j])
				continue;
			ip_range_text(&(struct ip_range){ host[j], 32, 0 }, text);
			log_warn(
				"the name server %s is this host, which no sandbox reaches; set network_dns", text);
		}
	}
}

int
net_up(const struct net *net, const struct net_member *members, size_t count, struct err *err)
{
	AUTO_FREE uint32_t *host = NULL;
	size_t host_count;
	struct err why;

	if (net_host_check(net, err) != 0 || net_host_addresses(net, &host, &host_count, err) != 0 ||
		prepare_gate(net, err) != 0 || net_table_load(net, members, count, host, host_count, err) != 0 ||
		net_uplink_make(net, err) != 0)
		return -1;
	if (set_up_host(net, err) != 0) {
		(void)!net_uplink_remove(net, &why);
		(void)!net_table_unload_host(net, &why);
		return -1;
	}
	warn_of_own_dns(net, host, host_count);
	rewire(net, members, count);
	if (!net->kept && keep(net, &why) != 0)
		log_warn("a restart will cut the sandboxes' connections: the gateway can't be kept: %s", why.msg);
	return 0;
}

int
net_down(const struct net *net, struct err *err)
{
	char path[KEEP_PATH_SIZE];

	if (net->config->network_host_setup && net_table_unload_host(net, err) != 0)
		return -1;
	if (net_uplink_remove(net, err) != 0)
		return -1;
	keep_path(net, path);
	if (setns(net->mounts_ns, CLONE_NEWNS) != 0)
		return err_set_errno(err, errno, "enter the host's mounts");
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL && errno != ENOENT)
		return err_set_errno(err, errno, "unmount %s", path);
	if (unlink(path) != 0 && errno != ENOENT)
		return err_set_errno(err, errno, "unlink %s", path);
	return 0;
}

int
net_follow_host(const struct net *net, struct err *err)
{
	AUTO_FREE uint32_t *host = NULL;
	size_t count;

	if (net_host_addresses(net, &host, &count, err) != 0)
		return -1;
	return net_element_set_host(net, host, count, err);
}
