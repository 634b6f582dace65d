/* test_log.c - every line is one JSON object, whatever is logged. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json_object.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int fds[2];

static int
open_pipe(void **state)
{
	(void)state;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	log_init("test", LOG_LEVEL_DEBUG);
	log_set_fd(fds[1]);
	return 0;
}

static int
close_pipe(void **state)
{
	(void)state;
	close(fds[0]);
	close(fds[1]);
	log_set_fd(2);
	return 0;
}

/* The one line that waits in the pipe, parsed by the strict parser. */
static struct json_object *
read_line(void)
{
	char text[16384];
	ssize_t n = read(fds[0], text, sizeof text);
	struct json_object *line;
	struct err err;

	assert_true(n > 0 && n <= 8192);
	assert_int_equal(text[n - 1], '\n');
	assert_null(memchr(text, '\n', (size_t)n - 1));
	line = json_parse(text, (size_t)n, &err);
	if (line == NULL)
		fail_msg("%s: %.*s", err.msg, (int)n, text);
	return line;
}

static const char *
field(struct json_object *line, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(line, name, &value) ? json_object_get_string(value) : NULL;
}

static void
test_line_has_all_fields(void **state)
{
	const struct log_ctx ctx = { .request_id = "r-1", .sandbox_id = "sb-2", .job_id = "j\"3" };
	AUTO_JSON struct json_object *line = NULL;
	char pid[16];

	(void)state;
	log_write(LOG_LEVEL_WARN, &ctx, "made %d", 3);
	line = read_line();
	snprintf(pid, sizeof pid, "%d", (int)getpid());
	assert_string_equal(field(line, "level"), "warn");
	assert_string_equal(field(line, "role"), "test");
	assert_string_equal(field(line, "pid"), pid);
	assert_string_equal(field(line, "msg"), "made 3");
	assert_string_equal(field(line, "request_id"), "r-1");
	assert_string_equal(field(line, "sandbox_id"), "sb-2");
	assert_string_equal(field(line, "job_id"), "j\"3");
	assert_true(strtod(field(line, "ts"), NULL) > 1e9);
}

static void
test_absent_context_leaves_no_field(void **state)
{
	AUTO_JSON struct json_object *line = NULL;

	(void)state;
	log_info("x");
	line = read_line();
	assert_null(field(line, "request_id"));
	assert_null(field(line, "sandbox_id"));
	assert_null(field(line, "job_id"));
}

static void
test_every_single_byte_is_escaped_right(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++) {
		AUTO_JSON struct json_object *line = NULL;
		const char in[] = { 'a', (char)c, 'z', '\0' };

		log_info("%s", in);
		line = read_line();
		assert_string_equal(field(line, "msg"), c < 0x80 ? in : "a\xef\xbf\xbdz");
	}
}

static void
test_invalid_utf8_is_repaired_and_valid_kept(void **state)
{
	AUTO_JSON struct json_object *line = NULL;

	(void)state;
	log_info("%s", "\xff\xfe\xe2\x82\xac\xf0\x9f\x98\x80\xe2\x82");
	line = read_line();
	assert_string_equal(field(line, "msg"), "\xef\xbf\xbd\xef\xbf\xbd\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd");
}

static void
test_long_message_is_cut_and_marked(void **state)
{
	static const char *const units[] = { "a", "\"", "\x01", "\xe2\x82\xac", "\xff" };

	(void)state;
	for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
		AUTO_JSON struct json_object *line = NULL;
		char text[20000] = "";
		const char *msg;

		for (size_t len = 0; len + strlen(units[u]) < sizeof text; len += strlen(units[u]))
			memcpy(text + len, units[u], strlen(units[u]));
		log_info("%s", text);
		line = read_line();
		msg = field(line, "msg");
		assert_string_equal(msg + strlen(msg) - 8, "...[cut]");
	}
}

static void
test_message_of_format_limit_is_cut_and_marked(void **state)
{
	AUTO_JSON struct json_object *line = NULL;
	struct log_ctx ctx = { .request_id = "" };
	char text[9000], id[9000];
	const char *msg;

	(void)state;
	memset(text, 'a', sizeof text);
	text[8191] = '\0';
	memset(id, 'i', sizeof id);
	id[sizeof id - 1] = '\0';
	ctx.request_id = ctx.sandbox_id = ctx.job_id = id;
	log_write(LOG_LEVEL_ERROR, &ctx, "%s", text);
	line = read_line();
	msg = field(line, "msg");
	assert_string_equal(msg + strlen(msg) - 8, "...[cut]");
}

static void
test_lower_levels_are_silent(void **state)
{
	char byte;

	(void)state;
	log_set_level(LOG_LEVEL_WARN);
	log_debug("no");
	log_info("no");
	assert_int_equal(read(fds[0], &byte, 1), -1);
	log_warn("yes");
	json_object_put(read_line());
}

static void
test_errno_survives(void **state)
{
	(void)state;
	log_set_fd(-1);
	errno = ENOTTY;
	log_error("into nowhere");
	assert_int_equal(errno, ENOTTY);
}

static void
test_full_pipe_drops_lines_and_says_so_later(void **state)
{
	AUTO_JSON struct json_object *line = NULL;
	char text[4096];

	(void)state;
	memset(text, 'x', sizeof text);
	while (write(fds[1], text, sizeof text) > 0)
		;
	log_info("lost");
	log_info("lost");
	while (read(fds[0], text, sizeof text) > 0)
		;
	log_info("found");
	line = read_line();
	assert_string_equal(field(line, "msg"), "found");
	assert_string_equal(field(line, "dropped"), "2");
}

/* end becomes stderr, and nobody reads the other one. */
static void
expect_no_wait(int end)
{
	int stderr_copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);

	assert_int_equal(fcntl(end, F_GETFL) & O_NONBLOCK, 0);
	dup2(end, STDERR_FILENO);
	log_set_fd(STDERR_FILENO);
	log_never_block();
	for (int i = 0; i < 20000; i++)
		log_info("a line that nobody reads, and then another, until there is no room for the next one");
	dup2(stderr_copy, STDERR_FILENO);
	close(stderr_copy);
	log_set_fd(STDERR_FILENO);
	/* What others have of the same end is as it was. */
	assert_int_equal(fcntl(end, F_GETFL) & O_NONBLOCK, 0);
}

static void
test_who_does_not_read_stderr_holds_nobody_up(void **state)
{
	int pipe_ends[2], socket_ends[2];

	(void)state;
	assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socket_ends), 0);
	expect_no_wait(pipe_ends[1]);
	expect_no_wait(socket_ends[1]);
	for (int i = 0; i < 2; i++) {
		close(pipe_ends[i]);
		close(socket_ends[i]);
	}
}

static void
test_levels_are_parsed_in_any_case(void **state)
{
	enum log_level level = LOG_LEVEL_DEBUG;

	(void)state;
	assert_int_equal(log_level_parse("Error", &level), 0);
	assert_int_equal(level, LOG_LEVEL_ERROR);
	assert_int_equal(log_level_parse("info", &level), 0);
	assert_int_equal(level, LOG_LEVEL_INFO);
	assert_int_equal(log_level_parse("warning", &level), -1);
	assert_int_equal(log_level_parse("", &level), -1);
	assert_int_equal(level, LOG_LEVEL_INFO);
}

#define PIPED(test) cmocka_unit_test_setup_teardown(test, open_pipe, close_pipe)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PIPED(test_line_has_all_fields),
		PIPED(test_absent_context_leaves_no_field),
		PIPED(test_every_single_byte_is_escaped_right),
		PIPED(test_invalid_utf8_is_repaired_and_valid_kept),
		PIPED(test_long_message_is_cut_and_marked),
		PIPED(test_message_of_format_limit_is_cut_and_marked),
		PIPED(test_lower_levels_are_silent),
		PIPED(test_errno_survives),
		PIPED(test_full_pipe_drops_lines_and_says_so_later),
		cmocka_unit_test(test_who_does_not_read_stderr_holds_nobody_up),
		cmocka_unit_test(test_levels_are_parsed_in_any_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
