/* test_sd_notify.c - what a service manager hears. */
/* SPDX-License-Identifier: MIT */
#include "master/sd_notify.h"

#include "base/cleanup.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static char heard[512];

/* A manager's socket at address ("@name" is abstract), which NOTIFY_SOCKET names from then on. */
static int
manager_listen(const char *address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(address));
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(un.sun_path, address, strlen(address));
	if (address[0] == '@')
		un.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (const struct sockaddr *)&un, len), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", address, 1), 0);
	return fd;
}

static const char *
hear(int fd)
{
	ssize_t n = recv(fd, heard, sizeof heard - 1, 0);

	heard[n > 0 ? n : 0] = '\0';
	return heard;
}

static void
test_abstract_socket_hears_ready(void **state)
{
	char name[64];
	AUTO_FD fd = -1;

	(void)state;
	snprintf(name, sizeof name, "@orchard-test-%d", (int)getpid());
	fd = manager_listen(name);
	sd_notify_init();
	sd_notify_ready("all well");
	assert_string_equal(hear(fd), "READY=1\nSTATUS=all well");
}

static void
test_path_socket_hears_reload_and_stop(void **state)
{
	char dir[] = "/tmp/test-notify-XXXXXX";
	char path[64];
	AUTO_FD fd = -1;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/s", dir);
	fd = manager_listen(path);
	sd_notify_init();
	sd_notify_reloading();
	assert_int_equal(strncmp(hear(fd), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
	sd_notify_stopping(35000);
	assert_non_null(strstr(hear(fd), "STOPPING=1\n"));
	assert_non_null(strstr(heard, "EXTEND_TIMEOUT_USEC=35000000"));
	unlink(path);
	rmdir(dir);
}

static void
test_children_do_not_inherit_the_address(void **state)
{
	(void)state;
	assert_int_equal(setenv("NOTIFY_SOCKET", "/run/nobody/listens", 1), 0);
	sd_notify_init();
	assert_null(getenv("NOTIFY_SOCKET"));
}

static void
test_deaf_or_absent_manager_is_no_fault(void **state)
{
	AUTO_FD null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	log_set_fd(null);
	sd_notify_ready("nobody listens at the address of the test before");
	assert_int_equal(setenv("NOTIFY_SOCKET", "no/address", 1), 0);
	sd_notify_init();
	sd_notify_ready("nowhere");
	unsetenv("NOTIFY_SOCKET");
	sd_notify_init();
	sd_notify_ready("nowhere");
	log_set_fd(2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abstract_socket_hears_ready),
		cmocka_unit_test(test_path_socket_hears_reload_and_stop),
		cmocka_unit_test(test_children_do_not_inherit_the_address),
		cmocka_unit_test(test_deaf_or_absent_manager_is_no_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
