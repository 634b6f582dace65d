/* test_file.c - files are read within a bound and replaced whole. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/time.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_file.XXXXXX";
static int dfd = -1;

static int
make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dfd < 0 ? -1 : 0;
}

static int
remove_dir(void **state)
{
	struct err err;

	(void)state;
	close(dfd);
	return file_remove_tree_at(AT_FDCWD, dir, &err);
}

static void
put(const char *name, const void *data, size_t len)
{
	struct err err;

	if (file_write_atomic_at(dfd, name, 0640, data, len, false, &err) < 0)
		fail_msg("%s", err.msg);
}

static size_t
count_entries(void)
{
	AUTO_DIR *d = opendir(dir);
	size_t count = 0;

	while (readdir(d) != NULL)
		count++;
	return count - 2;
}

static void
test_read_gives_all_bytes_and_a_nul_behind(void **state)
{
	struct err err;
	char *data;
	size_t len;

	(void)state;
	put("a", "x\0y", 3);
	assert_int_equal(file_read_at(dfd, "a", 3, &data, &len, &err), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(data, "x\0y", 4);
	free(data);
	put("a", "", 0);
	assert_int_equal(file_read_at(dfd, "a", 0, &data, &len, &err), 0);
	assert_int_equal(len, 0);
	free(data);
}

static void
test_read_stops_at_the_bound(void **state)
{
	static char big[100000];
	struct err err;
	char *data = NULL;
	size_t len = 7;

	(void)state;
	put("big", big, sizeof big);
	assert_int_equal(file_read_at(dfd, "big", sizeof big - 1, &data, &len, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	assert_null(data);
	assert_int_equal(len, 7);
	assert_int_equal(file_read_at(dfd, "big", sizeof big, &data, &len, &err), 0);
	assert_int_equal(len, sizeof big);
	free(data);
	/* Endless, and without a size that would warn. */
	assert_int_equal(file_read_at(AT_FDCWD, "/dev/zero", 50000, &data, &len, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void
test_read_of_a_file_without_size_is_whole(void **state)
{
	struct err err;
	char *data;
	size_t len;

	(void)state;
	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/status", 1 << 20, &data, &len, &err), 0);
	assert_true(len > 100);
	assert_int_equal(strlen(data), len);
	free(data);
}

static void
test_read_of_a_pipe_waits_for_writers_only(void **state)
{
	struct err err;
	char *data, path[64];
	size_t len;
	int pipefd[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(mkfifoat(dfd, "fifo", 0600), 0);
	assert_int_equal(file_read_at(dfd, "fifo", 10, &data, &len, &err), -1);
	assert_non_null(strstr(err.msg, "fifo"));
	assert_int_equal(unlinkat(dfd, "fifo", 0), 0);
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(pipefd[0]);
		_exit(write(pipefd[1], "late", 4) == 4 ? 0 : 1);
	}
	close(pipefd[1]);
	snprintf(path, sizeof path, "/proc/self/fd/%d", pipefd[0]);
	assert_int_equal(file_read_at(AT_FDCWD, path, 10, &data, &len, &err), 0);
	assert_int_equal(len, 4);
	assert_string_equal(data, "late");
	free(data);
	close(pipefd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
test_read_of_nothing_is_not_found(void **state)
{
	struct err err;
	char *data;
	size_t len;

	(void)state;
	assert_int_equal(file_read_at(dfd, "none", 1, &data, &len, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(err.msg, "none"));
}

static void
test_write_replaces_whole_with_the_given_mode(void **state)
{
	size_t before;
	struct stat st;
	mode_t mask = umask(077);
	struct err err;
	char *data;
	size_t len;

	(void)state;
	put("w", "old and long", 12);
	before = count_entries();
	assert_int_equal(file_write_atomic_at(dfd, "w", 0644, "new", 3, true, &err), 0);
	umask(mask);
	assert_int_equal(fstatat(dfd, "w", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(count_entries(), before);
	assert_int_equal(file_read_at(dfd, "w", 100, &data, &len, &err), 0);
	assert_string_equal(data, "new");
	free(data);
}

static void
test_failed_write_leaves_nothing_behind(void **state)
{
	size_t before = count_entries();
	struct err err;

	(void)state;
	assert_int_equal(file_write_atomic_at(dfd, "none/w", 0644, "x", 1, false, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(mkdirat(dfd, "taken", 0755), 0);
	assert_int_equal(file_write_atomic_at(dfd, "taken", 0644, "x", 1, false, &err), -1);
	assert_int_equal(unlinkat(dfd, "taken", AT_REMOVEDIR), 0);
	assert_int_equal(count_entries(), before);
}

static void
test_write_takes_paths_with_directories(void **state)
{
	char path[64];
	struct err err;

	(void)state;
	assert_int_equal(mkdirat(dfd, "sub", 0755), 0);
	assert_int_equal(file_write_atomic_at(dfd, "sub/f", 0600, "x", 1, false, &err), 0);
	snprintf(path, sizeof path, "%s/sub/g", dir);
	assert_int_equal(file_write_atomic_at(-1, path, 0600, "x", 1, false, &err), 0);
	assert_int_equal(faccessat(dfd, "sub/f", R_OK, 0), 0);
	assert_int_equal(faccessat(dfd, "sub/g", R_OK, 0), 0);
}

static void
test_put_writes_to_existing_files_only(void **state)
{
	struct err err;
	char *data;
	size_t len;

	(void)state;
	put("p", "previous", 8);
	assert_int_equal(file_put_at(dfd, "p", "max", &err), 0);
	assert_int_equal(file_read_at(dfd, "p", 100, &data, &len, &err), 0);
	assert_string_equal(data, "max");
	free(data);
	assert_int_equal(file_put_at(dfd, "q", "max", &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(file_put_at(AT_FDCWD, "/dev/full", "max", &err), -1);
	assert_int_equal(err.code, ERR_NO_SPACE);
}

static void
test_mkdirs_makes_what_is_missing(void **state)
{
	char path[128];
	mode_t mask = umask(077);
	struct err err;
	struct stat st;

	(void)state;
	snprintf(path, sizeof path, "%s//m/n///o/", dir);
	assert_int_equal(file_mkdirs(path, 02775, &err), 0);
	assert_int_equal(file_mkdirs(path, 0700, &err), 0);
	umask(mask);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 02775);
	assert_int_equal(file_mkdirs("/", 0755, &err), 0);
	put("plain", "", 0);
	snprintf(path, sizeof path, "%s/plain", dir);
	assert_int_equal(file_mkdirs(path, 0755, &err), -1);
	snprintf(path, sizeof path, "%s/plain/below", dir);
	assert_int_equal(file_mkdirs(path, 0755, &err), -1);
	assert_int_equal(file_mkdirs("", 0755, &err), -1);
}

static void *held;

/* Lets go of what keeps a file from being sealed. */
static void
let_go(int sig)
{
	(void)sig;
	munmap(held, 4096);
	held = NULL;
}

static int
held_memory(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, "text", 4), 0);
	held = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(held != MAP_FAILED);
	return fd;
}

static void
test_a_file_that_is_held_for_a_moment_is_sealed_when_it_is_free(void **state)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 50000 } };
	const struct sigaction action = { .sa_handler = let_go };
	AUTO_FD fd = held_memory();

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_int_equal(file_seal(fd), 0);
	assert_null(held);
	assert_int_equal(write(fd, "more", 4), -1);
	assert_int_equal(errno, EPERM);
}

static void
test_a_file_that_stays_held_is_told(void **state)
{
	AUTO_FD fd = held_memory();

	(void)state;
	assert_int_equal(file_seal(fd), -1);
	assert_int_equal(errno, EBUSY);
	let_go(0);
	assert_int_equal(file_seal(fd), 0);
	assert_int_equal(file_seal(fd), -1);
	assert_int_equal(errno, EPERM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_gives_all_bytes_and_a_nul_behind),
		cmocka_unit_test(test_read_stops_at_the_bound),
		cmocka_unit_test(test_read_of_a_file_without_size_is_whole),
		cmocka_unit_test(test_read_of_a_pipe_waits_for_writers_only),
		cmocka_unit_test(test_read_of_nothing_is_not_found),
		cmocka_unit_test(test_write_replaces_whole_with_the_given_mode),
		cmocka_unit_test(test_failed_write_leaves_nothing_behind),
		cmocka_unit_test(test_write_takes_paths_with_directories),
		cmocka_unit_test(test_put_writes_to_existing_files_only),
		cmocka_unit_test(test_mkdirs_makes_what_is_missing),
		cmocka_unit_test(test_a_file_that_is_held_for_a_moment_is_sealed_when_it_is_free),
		cmocka_unit_test(test_a_file_that_stays_held_is_told),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
