/* test_listener.c - sockets are made right, and faults name the cure. */
/* SPDX-License-Identifier: MIT */
#include "master/listener.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static uint16_t free_port;
static char dir[] = "/tmp/test-listener-XXXXXX";

static int
make_dir(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	AUTO_FD probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof any;

	(void)state;
	if (bind(probe, (struct sockaddr *)&any, len) < 0 || getsockname(probe, (struct sockaddr *)&any, &len) < 0)
		return -1;
	free_port = ntohs(any.sin_port);
	return mkdtemp(dir) == NULL ? -1 : 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static int
connect_tcp(int family)
{
	struct sockaddr_in v4 = {
		.sin_family = AF_INET, .sin_port = htons(free_port), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};
	struct sockaddr_in6 v6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(free_port), .sin6_addr = IN6ADDR_LOOPBACK_INIT
	};
	AUTO_FD fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return family == AF_INET ? connect(fd, (struct sockaddr *)&v4, sizeof v4)
				 : connect(fd, (struct sockaddr *)&v6, sizeof v6);
}

static void
test_tcp_listener_is_nonblocking_and_private(void **state)
{
	AUTO_FD fd = -1;
	struct err err;

	(void)state;
	assert_int_equal(listener_open_tcp("127.0.0.1", free_port, &fd, &err), 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(connect_tcp(AF_INET), 0);
}

static void
test_taken_port_names_itself_and_the_setting(void **state)
{
	AUTO_FD first = -1;
	int second = -1;
	char words[64];
	struct err err;

	(void)state;
	assert_int_equal(listener_open_tcp("127.0.0.1", free_port, &first, &err), 0);
	assert_int_equal(listener_open_tcp("127.0.0.1", free_port, &second, &err), -1);
	assert_int_equal(second, -1);
	snprintf(words, sizeof words, "127.0.0.1:%u is in use", (unsigned)free_port);
	assert_non_null(strstr(err.msg, words));
	assert_non_null(strstr(err.msg, "setting port"));
}

static void
test_port_can_be_taken_again_at_once(void **state)
{
	AUTO_FD again = -1;
	int fd = -1;
	struct err err;

	(void)state;
	assert_int_equal(listener_open_tcp("127.0.0.1", free_port, &fd, &err), 0);
	assert_int_equal(connect_tcp(AF_INET), 0);
	close(fd);
	assert_int_equal(listener_open_tcp("127.0.0.1", free_port, &again, &err), 0);
}

static void
test_double_colon_takes_both_families(void **state)
{
	AUTO_FD fd = -1;
	AUTO_FD probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct err err;

	(void)state;
	if (probe < 0)
		skip();
	assert_int_equal(listener_open_tcp("[::]", free_port, &fd, &err), 0);
	assert_int_equal(connect_tcp(AF_INET), 0);
	assert_int_equal(connect_tcp(AF_INET6), 0);
}

/* As in a kernel without it, or a service that may not use it. */
static bool
forbid_ipv6(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	bool done = filter != NULL &&
		seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
			SCMP_A0(SCMP_CMP_EQ, AF_INET6, 0)) == 0 &&
		seccomp_load(filter) == 0;

	seccomp_release(filter);
	return done;
}

static int
listens_without_ipv6(void)
{
	struct err err;
	int fd = -1;

	if (!forbid_ipv6())
		return 2;
	return listener_open_tcp("::", free_port, &fd, &err) == 0 && connect_tcp(AF_INET) == 0 ? 0 : 1;
}

static void
test_double_colon_takes_what_there_is(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0)
		_exit(listens_without_ipv6());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
test_foreign_address_is_refused_by_name(void **state)
{
	struct err err;
	int fd = -1;

	(void)state;
	assert_int_equal(listener_open_tcp("192.0.2.77", free_port, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "192.0.2.77"));
	assert_non_null(strstr(err.msg, "listen_host"));
	assert_int_equal(listener_check("192.0.2.77", &err), -1);
	assert_non_null(strstr(err.msg, "192.0.2.77"));
	assert_int_equal(listener_check("127.0.0.1", &err), 0);
	assert_int_equal(listener_check("no address", &err), -1);
	assert_non_null(strstr(err.msg, "no address"));
}

static void
test_seqpacket_socket_replaces_a_stale_one(void **state)
{
	char path[64];
	struct stat st;
	struct err err;

	(void)state;
	snprintf(path, sizeof path, "%s/s", dir);
	for (int round = 0; round < 2; round++) {
		AUTO_FD fd = -1;

		assert_int_equal(listener_open_seqpacket(path, getuid(), getgid(), &fd, &err), 0);
		assert_int_equal(lstat(path, &st), 0);
		assert_true(S_ISSOCK(st.st_mode));
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	unlink(path);
}

static void
test_seqpacket_socket_spares_a_file_in_the_way(void **state)
{
	char path[64];
	struct err err;
	int fd = -1;

	(void)state;
	snprintf(path, sizeof path, "%s/s", dir);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(listener_open_seqpacket(path, getuid(), getgid(), &fd, &err), -1);
	assert_non_null(strstr(err.msg, path));
	assert_int_equal(unlink(path), 0);
}

static void
test_long_socket_path_blames_run_dir(void **state)
{
	char path[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
	struct err err;
	int fd = -1;

	(void)state;
	memset(path, 'x', sizeof path - 1);
	path[0] = '/';
	path[sizeof path - 1] = '\0';
	assert_int_equal(listener_open_seqpacket(path, 0, 0, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "run_dir"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp_listener_is_nonblocking_and_private),
		cmocka_unit_test(test_taken_port_names_itself_and_the_setting),
		cmocka_unit_test(test_port_can_be_taken_again_at_once),
		cmocka_unit_test(test_double_colon_takes_both_families),
		cmocka_unit_test(test_double_colon_takes_what_there_is),
		cmocka_unit_test(test_foreign_address_is_refused_by_name),
		cmocka_unit_test(test_seqpacket_socket_replaces_a_stale_one),
		cmocka_unit_test(test_seqpacket_socket_spares_a_file_in_the_way),
		cmocka_unit_test(test_long_socket_path_blames_run_dir),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
