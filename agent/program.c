/* program.c - picks the shell, words the hand-over, and searches PATH by hand. */
/* SPDX-License-Identifier: MIT */
#include "agent/program.h"

#include "agent/login.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROGRAM_FD_SCRIPT = 3 };

/* The evaluated text starts on the line of the prologue, so line numbers stay right. */
static const char bash_script[] = "IFS= read -r -d '' o <&3; eval \"exec 3<&-; unset -v o; $o\"";
static const char sh_script[] = "eval \"exec 3<&-; $(command -p cat <&3)\"";

int
program_memory_file(const void *data, size_t len)
{
	AUTO_FD fd = memfd_create("orchard", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (file_write_all(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) < 0 || file_seal(fd) < 0)
		return -1;
	return STEAL_FD(fd);
}

static bool
program_is_executable(const char *root, const char *path)
{
	char full[4096];
	struct stat st;

	snprintf(full, sizeof full, "%s%s", root, path);
	return stat(full, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0;
}

const char *
program_find_shell(const char *root, bool *ret_is_bash)
{
	static const char *const shells[] = { "/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh", "/bin/ash" };

	for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
		if (program_is_executable(root, shells[i])) {
			*ret_is_bash = i < 2;
			return shells[i];
		}
	return NULL;
}

static char **
program_strings(size_t count)
{
	return alloc_zero(count + 1, sizeof(char *));
}

/* execvpe's rule: a name with a slash is a path, any other is tried in each directory of PATH. */
static char **
program_search(const char *name, const char *path)
{
	size_t count = 1, at = 0;
	char **paths;

	for (const char *p = path; *p != '\0'; p++)
		count += *p == ':';
	paths = program_strings(count);
	if (strchr(name, '/') != NULL || *name == '\0') {
		paths[0] = alloc_string(name);
		return paths;
	}
	for (;; path++) {
		size_t len = strcspn(path, ":");

		paths[at++] = len == 0 ? alloc_format("./%s", name) : alloc_format("%.*s/%s", (int)len, path, name);
		path += len;
		if (*path == '\0')
			return paths;
	}
}

static void
program_list(struct json_object *command, const char *path, struct program *program)
{
	size_t count = json_object_array_length(command);

	program->argv = program_strings(count);
	for (size_t i = 0; i < count; i++)
		program->argv[i] = alloc_string(json_object_get_string(json_object_array_get_idx(command, i)));
	program->paths = program_search(program->argv[0], path);
}

static int
program_hand_over(struct program *program, const char *text, size_t len, int target, struct err *err)
{
	program->script_fd = program_memory_file(text, len);
	if (program->script_fd < 0)
		return err_set_errno(err, errno, "cannot hand over the command text");
	program->script_target = target;
	return 0;
}

/* A NUL ends the text, so that reading even an empty one moves the position in the file. */
static int
program_login(const struct program_request *request, bool is_bash, struct program *program, struct err *err)
{
	const char *text = json_object_get_string(request->command);
	size_t len = (size_t)json_object_get_string_len(request->command), at = 1;

	program->argv[at++] = alloc_string("-l");
	if (is_bash)
		program->argv[at++] = alloc_string("-i");
	program->argv[at++] = alloc_string("-c");
	program->argv[at] = login_script(is_bash, request->cwd);
	program->login = true;
	return program_hand_over(program, text, len + 1, is_bash ? LOGIN_FD_BASH : LOGIN_FD_SH, err);
}

static int
program_shell(const struct program_request *request, struct program *program, struct err *err)
{
	const char *text = json_object_get_string(request->command);
	size_t len = (size_t)json_object_get_string_len(request->command);
	bool is_bash = false;
	const char *shell = program_find_shell(request->root, &is_bash);

	if (shell == NULL)
		return err_set(err, ERR_NOT_FOUND, "no shell in image");
	program->paths = program_strings(1);
	program->paths[0] = alloc_string(shell);
	program->argv = program_strings(5);
	program->argv[0] = alloc_string(is_bash ? "bash" : "sh");
	if (request->login_shell)
		return program_login(request, is_bash, program, err);
	program->argv[1] = alloc_string("-c");
	if (len <= PROGRAM_MAX_ARGUMENT) {
		program->argv[2] = alloc_string("--"); /* the text may begin with "-" or "+" */
		program->argv[3] = alloc_string(text);
		return 0;
	}
	program->argv[2] = alloc_string(is_bash ? bash_script : sh_script);
	return program_hand_over(program, text, len, PROGRAM_FD_SCRIPT, err);
}

int
program_prepare(const struct program_request *request, struct program *ret_program, struct err *err)
{
	struct program program = { .script_fd = -1 };

	if (json_object_is_type(request->command, json_type_array)) {
		program_list(request->command, request->path, &program);
	} else if (program_shell(request, &program, err) < 0) {
		program_fini(&program);
		return -1;
	}
	*ret_program = program;
	return 0;
}

void
program_own(const char *option, struct program *ret_program)
{
	*ret_program = (struct program){ .script_fd = -1 };
	ret_program->paths = program_strings(1);
	ret_program->paths[0] = alloc_string("/proc/self/exe");
	ret_program->argv = program_strings(2);
	ret_program->argv[0] = alloc_string("orchard-agent");
	ret_program->argv[1] = alloc_string(option);
}

static void
program_free_strings(char **strings)
{
	for (char **s = strings; s != NULL && *s != NULL; s++)
		free(*s);
	free(strings);
}

void
program_fini(struct program *program)
{
	program_free_strings(program->argv);
	program_free_strings(program->paths);
	if (program->script_fd >= 0)
		close(program->script_fd);
	*program = (struct program){ .script_fd = -1 };
}

bool
program_is_unread(const struct program *program)
{
	return program->login && lseek(program->script_fd, 0, SEEK_CUR) == 0;
}

void
program_drop_login(struct program *program)
{
	bool is_bash = program->script_target == LOGIN_FD_BASH;
	char **argv = program_strings(3);

	argv[0] = alloc_string(program->argv[0]);
	argv[1] = alloc_string("-c");
	argv[2] = alloc_string(is_bash ? bash_script : sh_script);
	program_free_strings(program->argv);
	program->argv = argv;
	program->login = false;
	program->script_target = PROGRAM_FD_SCRIPT;
}
