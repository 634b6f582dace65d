/* test_net.c - the network's parts: lists of ranges, name servers, the host's routes, wires and rights in real namespaces. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "conf/config.h"
#include "network/net_impl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

struct rig {
	char dir[64];
	struct config *config;
	struct net net;
	pid_t box; /* in a namespace of its own */
};

/* --- lists --- */

static struct egress
list_of(const char *const *texts)
{
	struct egress egress = { .limited = true };
	struct err err;

	for (; *texts != NULL; texts++)
		assert_int_equal(ip_dest_parse(*texts, &egress.allow[egress.count++], &err), 0);
	return egress;
}

static void
test_a_range_counts_once(void **state)
{
	struct egress egress = list_of((const char *const[]){ "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3:80",
		"10.0.0.0/8:80", "10.0.0.0/8", "10.0.0.0/8:443", "0.0.0.0/0:443", "::/0", NULL });
	const bool counts[] = { true, false, false, true, false, false, true, false };

	(void)state;
	for (uint32_t i = 0; i < egress.count; i++)
		assert_int_equal(net_element_counts(&egress, i), counts[i]);
}

static void
test_a_message_too_long_is_not_sent(void **state)
{
	static struct net_msg m;
	static char text[60000];
	struct rtmsg head = { .rtm_family = AF_INET };
	AUTO_FD fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	(void)state;
	net_msg_init(&m);
	net_msg_begin(&m, RTM_NEWROUTE, NLM_F_ACK, &head, sizeof head);
	net_msg_put(&m, 1, text, sizeof text);
	assert_false(m.full);
	net_msg_put(&m, 1, text, sizeof text);
	net_msg_put_u32(&m, 2, 0);
	assert_true(m.full);
	assert_int_equal(net_msg_send(fd, &m), E2BIG);
}

/* --- in namespaces --- */

static void
write_file(const char *path, const char *text)
{
	AUTO_FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
}

/* A host of our own: its network, and its mounts for /etc/resolv.conf and the gateway. */
static int
set_up(void **state)
{
	static struct rig rig;
	char path[128];
	struct err err;

	memset(&rig, 0, sizeof rig);
	log_init("test", LOG_LEVEL_ERROR);
	strcpy(rig.dir, "/tmp/orchard-net-XXXXXX");
	if (mkdtemp(rig.dir) == NULL || unshare(CLONE_NEWNET | CLONE_NEWNS) != 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -1;
	snprintf(path, sizeof path, "%s/orchard.conf", rig.dir);
	write_file(path, "auth_enabled = off\nnetwork_subnet = \"10.200.0.0/24\"\nnetwork_host_setup = off\n");
	if (config_load(path, &rig.config, &err) != 0)
		fail_msg("%s", err.msg);
	free(rig.config->run_dir);
	rig.config->run_dir = strdup(rig.dir);
	net_init(&rig.net);
	net_keep_mounts(&rig.net);
	*state = &rig;
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *rig = *state;
	char path[128];
	struct err err;

	if (rig->box > 0) {
		kill(rig->box, SIGKILL);
		waitpid(rig->box, NULL, 0);
	}
	net_close(&rig->net);
	config_free(rig->config);
	snprintf(path, sizeof path, "%s/network", rig->dir);
	(void)umount2(path, MNT_DETACH);
	return file_remove_tree_at(AT_FDCWD, rig->dir, &err);
}

static void
open_net(struct rig *rig)
{
	net_open(&rig->net, rig->config);
	if (rig->net.gate_ns < 0)
		fail_msg("%s", rig->net.problem);
}

/* What net_up does is done in a child, as the spawner does it. */
static int
bring_up(struct rig *rig, const struct net_member *members, size_t count)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct err err;
		int rc = net_up(&rig->net, members, count, &err);

		if (rc != 0)
			fprintf(stderr, "net_up: %s\n", err.msg);
		_exit(rc == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rig->net.kept = rig->net.kept || status == 0;
	return status;
}

static pid_t
start_box(struct rig *rig)
{
	int ends[2];
	char word;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	rig->box = fork();
	if (rig->box == 0) {
		if (unshare(CLONE_NEWNET) != 0 || write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ends[0], &word, 1), 1);
	close(ends[0]);
	close(ends[1]);
	return rig->box;
}

static bool
wire_is_there(const struct rig *rig, uint32_t address)
{
	AUTO_FD fd = -1;
	struct err err;

	assert_int_equal(net_space_socket(&rig->net, rig->net.gate_ns, NETLINK_ROUTE, &fd, &err), 0);
	return net_link_exists(fd, net_box_index(&rig->net, address));
}

static void
bind_resolv(const struct rig *rig, const char *text)
{
	char path[128];

	snprintf(path, sizeof path, "%s/resolv.conf", rig->dir);
	write_file(path, text);
	assert_int_equal(mount(path, "/etc/resolv.conf", NULL, MS_BIND, NULL), 0);
}

static void
test_name_servers_of_the_host_are_taken(void **state)
{
	struct rig *rig = *state;
	char text[256];

	bind_resolv(rig,
		"# nameserver 9.9.9.9\nsearch x\nnameserver 2001:db8::1\n nameserver\t1.1.1.1 \nnameserver\n"
		"nameserver 169.254.169.254\nnameserver 127.0.0.53\nnameserver 10.0.0.2\noptions x\n"
		"nameserver 8.8.8.8\nnameserver 8.8.4.4\n");
	open_net(rig);
	net_resolv_text(&rig->net, text, sizeof text);
	assert_string_equal(text,
		"# set by orchard, network_dns\nnameserver 1.1.1.1\nnameserver 10.0.0.2\nnameserver 8.8.8.8\n");
	umount("/etc/resolv.conf");
}

static void
test_a_range_in_use_is_named(void **state)
{
	struct rig *rig = *state;
	struct ip_range inside = { 0x0ac80080, 25, 0 }; /* 10.200.0.128/25 */
	struct net_msg m;
	struct err err;
	AUTO_FD fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	open_net(rig);
	assert_int_equal(net_host_check(&rig->net, &err), 0);
	net_msg_init(&m);
	net_link_up(&m, 1);
	net_link_route(&m, NLM_F_ACK, 1, &inside, 0);
	assert_int_equal(net_msg_send(fd, &m), 0);
	assert_int_equal(net_host_check(&rig->net, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_non_null(strstr(err.msg, "10.200.0.128/25 on lo"));
	assert_int_not_equal(bring_up(rig, NULL, 0), 0);
	assert_int_equal(if_nametoindex(rig->net.device), 0);
}

static void
test_a_wire_is_laid_and_laid_anew(void **state)
{
	struct rig *rig = *state;
	struct net_member member = { .grant = { .address = 0x0ac80003 } };
	struct err err;

	open_net(rig);
	assert_int_equal(net_capacity(&rig->net), 252);
	assert_int_equal(bring_up(rig, NULL, 0), 0);
	assert_int_not_equal(if_nametoindex(rig->net.device), 0);
	member.pid = start_box(rig);
	if (net_attach(&rig->net, member.pid, &member.grant, &err) != 0)
		fail_msg("%s", err.msg);
	assert_true(wire_is_there(rig, member.grant.address));
	/* the end of one that is still being torn down is no obstacle */
	kill(rig->box, SIGKILL);
	waitpid(rig->box, NULL, 0);
	member.pid = start_box(rig);
	member.grant.egress = list_of((const char *const[]){ "0.0.0.0/0", "1.2.3.4:80", "1.0.0.0/8:80", NULL });
	if (net_attach(&rig->net, member.pid, &member.grant, &err) != 0)
		fail_msg("%s", err.msg);
	assert_int_equal(net_detach(&rig->net, &member.grant, &err), 0);
	assert_int_equal(net_detach(&rig->net, &member.grant, &err), 0); /* nothing there is fine */
	/* up again, as after a restart: the wire stays, its rights are back, and can be taken again */
	assert_int_equal(bring_up(rig, &member, 1), 0);
	assert_true(wire_is_there(rig, member.grant.address));
	assert_int_equal(net_detach(&rig->net, &member.grant, &err), 0);
}

static void
test_a_full_list_fits(void **state)
{
	struct rig *rig = *state;
	struct net_grant grant = { .address = 0x0ac80003, .egress = { .limited = true, .count = EGRESS_MAX } };
	struct err err;

	open_net(rig);
	assert_int_equal(bring_up(rig, NULL, 0), 0);
	for (uint32_t i = 0; i < EGRESS_MAX; i++)
		grant.egress.allow[i] = ip_dest_of_v4(
			&(struct ip_range){ 0x0b000000 + (i << 16), 16, (uint16_t)(i % 2 ? 443 : 0) });
	if (net_attach(&rig->net, start_box(rig), &grant, &err) != 0 || net_detach(&rig->net, &grant, &err) != 0)
		fail_msg("%s", err.msg);
}

static void
test_a_failed_attach_leaves_nothing(void **state)
{
	struct rig *rig = *state;
	struct net_grant grant = { .address = 0x0ac80003 };
	struct err err;

	open_net(rig); /* and not up: there is no table */
	assert_int_equal(net_attach(&rig->net, start_box(rig), &grant, &err), -1);
	assert_false(wire_is_there(rig, grant.address));
	assert_int_equal(net_detach(&rig->net, &grant, &err), 0);
	assert_int_equal(net_attach(&rig->net, 0x7ffffff0, &grant, &err), -1); /* no such process */
}

static void
test_another_subnet_makes_the_uplink_anew(void **state)
{
	struct rig *rig = *state;
	unsigned before;

	open_net(rig);
	assert_int_equal(bring_up(rig, NULL, 0), 0);
	before = if_nametoindex(rig->net.device);
	assert_int_equal(bring_up(rig, NULL, 0), 0);
	assert_int_equal(if_nametoindex(rig->net.device), before); /* nothing is torn down that is right */
	strcpy(rig->config->network_subnet, "10.99.0.0/24");
	rig->net.subnet.address = 0x0a630000;
	assert_int_equal(bring_up(rig, NULL, 0), 0);
	assert_int_not_equal(if_nametoindex(rig->net.device), before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_range_counts_once),
		cmocka_unit_test(test_a_message_too_long_is_not_sent),
		cmocka_unit_test_setup_teardown(test_name_servers_of_the_host_are_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_range_in_use_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_wire_is_laid_and_laid_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_full_list_fits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_failed_attach_leaves_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_subnet_makes_the_uplink_anew, set_up, tear_down),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
