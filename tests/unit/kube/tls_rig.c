/* tls_rig.c - certificates are made once for a test program; a door ends when its standard input does. */
/* SPDX-License-Identifier: MIT */
#include "tls_rig.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char certificates[] = "/tmp/orchard-test-kube-tls-XXXXXX";

static char *
source(const char *name)
{
	const char *srcdir = getenv("srcdir");

	return alloc_format("%s/tests/unit/kube/%s", srcdir != NULL ? srcdir : ".", name);
}

char *
tls_path(const char *name)
{
	return alloc_format("%s/%s", certificates, name);
}

int
tls_make_certificates(void **state)
{
	AUTO_FREE char *script = source("certificates.sh");
	AUTO_FREE char *command = NULL;

	(void)state;
	assert_non_null(mkdtemp(certificates));
	command = alloc_format("'%s' %s", script, certificates);
	return system(command);
}

int
tls_remove_certificates(void **state)
{
	struct err err;

	(void)state;
	return file_remove_tree_at(AT_FDCWD, certificates, &err);
}

static int
spawn_door(struct door *door, char **argv)
{
	int in[2], out[2];
	posix_spawn_file_actions_t actions;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	assert_int_equal(posix_spawn(&door->pid, argv[0], &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	door->hold = in[1];
	return out[0];
}

void
door_open(struct door *door, const char *script, const char *certificate, const char *const *words)
{
	AUTO_FREE char *program = source(script);
	AUTO_FREE char *cert = alloc_format("%s/%s.crt", certificates, certificate);
	AUTO_FREE char *key = alloc_format("%s/%s.key", certificates, certificate);
	char *argv[DOOR_WORDS_MAX + 4] = { program, cert, key };
	AUTO_FILE *said = NULL;

	for (int i = 0; words[i] != NULL; i++) {
		assert_true(i < DOOR_WORDS_MAX);
		argv[3 + i] = alloc_string(words[i]);
	}
	said = fdopen(spawn_door(door, argv), "r");
	for (char **word = argv + 3; *word != NULL; word++)
		free(*word);
	assert_non_null(said);
	assert_int_equal(fscanf(said, "%hu", &door->port), 1);
}

void
door_close(struct door *door)
{
	close(door->hold);
	(void)kill(door->pid, SIGKILL);
	assert_int_equal(waitpid(door->pid, NULL, 0), door->pid);
}
