/* test_call.c - a program that hangs is ended and named. */
/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "base/err.h"
#include "runtime/runtime.h"
#include "runtime/runtime_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
write_program(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static void
test_a_program_that_hangs_is_named(void **state)
{
	char dir[] = "/tmp/orchard-call-XXXXXX";
	struct runtime runtime = { .kind = RUNTIME_CRUN, .name = "crun" };
	struct runtime_call call = { .runtime = &runtime, .dir = dir, .name = "one", .patience_ms = 100 };
	struct err err;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(runtime.path, sizeof runtime.path, "%s/hangs", dir);
	write_program(runtime.path, "#!/bin/sh\nexec sleep 1000\n");
	call.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	call.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(runtime_create(&call, &pid, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_non_null(strstr(err.msg, "crun create did not end within 0.1 s"));
	assert_non_null(strstr(err.msg, runtime.path));
	close(call.dir_fd);
	close(call.null_fd);
	unlink(runtime.path);
	rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_program_that_hangs_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
