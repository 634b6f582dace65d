/* test_auth.c - tokens that change, and programs that print credentials. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/kube_client.h"
#include "kube/kube_config_impl.h"
#include "kube/kube_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct rig rig;
	struct kube_config *config;
	struct kube_client *client;
	uint32_t done;
	enum err_code code;
	char words[512];
	char good[64]; /* the one token that is not refused; "": any */
};

static void
handle(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (f->good[0] != '\0' && strcmp(f->good, request->token) != 0)
		rig_refuse(request, 401, "Unauthorized", "");
	else
		rig_answer(request, 200, "", "{}");
}

static void
on_done(const struct kube_answer *answer, void *arg)
{
	struct fixture *f = arg;

	f->done++;
	f->code = answer->why != NULL ? answer->why->code : ERR_NONE;
	snprintf(f->words, sizeof f->words, "%s", answer->why != NULL ? answer->why->msg : "");
}

static void
start(struct fixture *f, const char *user, uint32_t retries)
{
	struct kube_options options = { .pause_ms = 1, .retries = retries };
	struct err err;

	f->config = rig_config(&f->rig, user);
	assert_int_equal(kube_client_create(f->rig.base, f->config, &options, &f->client, &err), 0);
}

static void
open_rig(struct fixture *f)
{
	memset(f, 0, sizeof *f);
	rig_start(&f->rig, handle, f);
}

static void
stop(struct fixture *f)
{
	kube_client_free(f->client);
	kube_config_free(f->config);
	rig_stop(&f->rig);
}

static enum err_code
outcome(struct fixture *f)
{
	struct kube_request request = { .path = "/x", .retry = KUBE_RETRY_READ };
	struct err err;

	assert_int_equal(kube_call_start(f->client, &request, on_done, f, NULL, &err), 0);
	rig_until_count(&f->rig, &f->done, f->done + 1);
	return f->code;
}

static const char *
last_token(const struct fixture *f)
{
	return f->rig.log[f->rig.requests - 1].token;
}

static void
test_a_token_file_is_read_again_when_it_changes(void **state)
{
	struct fixture f;

	(void)state;
	open_rig(&f);
	start(&f, "tokenFile: token", 0);
	assert_int_equal(outcome(&f), ERR_NOT_FOUND);
	assert_non_null(strstr(f.words, "/token"));
	assert_int_equal(f.rig.requests, 0);
	rig_file(&f.rig, "token", "first\n");
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_string_equal(last_token(&f), "first");
	rig_file(&f.rig, "token", "other\n");
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_string_equal(last_token(&f), "other");
	/* On its way to be another: what was known holds. */
	rig_file(&f.rig, "token", "\n");
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_string_equal(last_token(&f), "other");
	stop(&f);
}

/* Nothing is refused with the old one before it is too late to read the new one beforehand. */
static void
rotate(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (strcmp(request->token, f->good) != 0)
		rig_file(&f->rig, "token", f->good);
	handle(request, arg);
}

static void
test_a_token_that_is_refused_is_read_again_and_the_call_repeated(void **state)
{
	static const struct {
		enum kube_method method;
		enum kube_retry retry;
	} cases[] = { { KUBE_GET, KUBE_RETRY_READ }, { KUBE_POST, KUBE_RETRY_NEVER } };
	struct kube_stats stats;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct kube_request request = { .method = cases[i].method, .path = "/x", .retry = cases[i].retry };
		struct fixture f;

		open_rig(&f);
		f.rig.handle = rotate;
		strcpy(f.good, "new");
		rig_file(&f.rig, "token", "old");
		start(&f, "tokenFile: token", 0);
		assert_int_equal(kube_call_start(f.client, &request, on_done, &f, NULL, &err), 0);
		rig_until_count(&f.rig, &f.done, 1);
		assert_int_equal(f.code, ERR_NONE);
		assert_int_equal(f.rig.requests, 2);
		assert_string_equal(f.rig.log[0].token, "old");
		assert_string_equal(f.rig.log[1].token, "new");
		kube_client_stats(f.client, &stats);
		assert_int_equal(stats.retries, 1);
		stop(&f);
	}
}

static void
test_a_refused_token_that_stays_is_final(void **state)
{
	struct fixture f;

	(void)state;
	open_rig(&f);
	strcpy(f.good, "right");
	start(&f, "token: wrong", 3);
	assert_int_equal(outcome(&f), ERR_DENIED);
	assert_non_null(strstr(f.words, "words of Unauthorized"));
	assert_int_equal(f.rig.requests, 1);
	stop(&f);
}

/* A plugin that counts its runs in a file and prints what another file holds. */
static void
write_plugin(struct fixture *f, const char *body)
{
	AUTO_FREE char *script = alloc_format("#!/bin/sh\ncd %s\necho run >>runs\n%s\n", f->rig.dir, body);

	rig_file(&f->rig, "plugin", script);
}

static void
write_credential(struct fixture *f, const char *token, const char *expires)
{
	AUTO_FREE char *text = alloc_format("{\"apiVersion\":\"client.authentication.k8s.io/v1\","
					    "\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s\"%s%s%s}}",
		token, expires != NULL ? ",\"expirationTimestamp\":\"" : "", expires != NULL ? expires : "",
		expires != NULL ? "\"" : "");

	rig_file(&f->rig, "credential", text);
}

static uint32_t
runs(const struct fixture *f)
{
	AUTO_FREE char *path = alloc_format("%s/runs", f->rig.dir);
	AUTO_FILE *file = fopen(path, "r");
	char line[16];
	uint32_t count = 0;

	while (file != NULL && fgets(line, sizeof line, file) != NULL)
		count++;
	return count;
}

static const char plugin_user[] = "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, "
				  "args: [a, 'b c'], env: [{name: SAID, value: so}], provideClusterInfo: true, "
				  "installHint: ask your admin}";

static void
test_a_plugin_runs_once_until_its_credentials_expire(void **state)
{
	struct fixture f;

	(void)state;
	open_rig(&f);
	write_plugin(&f, "cat credential");
	write_credential(&f, "one", "2999-01-01T00:00:00Z");
	start(&f, plugin_user, 0);
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_string_equal(last_token(&f), "one");
	assert_int_equal(runs(&f), 1);
	kube_client_free(f.client);
	kube_config_free(f.config);
	/* Expired when it comes: used up each time. */
	write_credential(&f, "two", "1999-01-01T00:00:00Z");
	start(&f, plugin_user, 0);
	assert_int_not_equal(outcome(&f), ERR_NONE);
	assert_non_null(strstr(f.words, "expired"));
	stop(&f);
}

static void
test_a_plugin_hears_what_it_needs_to_know(void **state)
{
	struct fixture f;

	(void)state;
	open_rig(&f);
	write_plugin(&f,
		"[ \"$1\" = a ] && [ \"$2\" = 'b c' ] && [ \"$SAID\" = so ] && [ -n \"$PATH\" ] &&\n"
		"case $KUBERNETES_EXEC_INFO in\n"
		"*'\"interactive\":false'*'\"server\":\"http:'*) cat credential;;\n*) exit 9;;\nesac");
	write_credential(&f, "one", NULL);
	start(&f, plugin_user, 0);
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_string_equal(last_token(&f), "one");
	stop(&f);
}

static void
test_401_makes_a_plugin_run_again_but_not_for_ever(void **state)
{
	struct fixture f;

	(void)state;
	open_rig(&f);
	write_plugin(&f, "cat credential; [ $(wc -l <runs) = 1 ] && sed -i s/old/new/ credential; true");
	write_credential(&f, "old", NULL);
	strcpy(f.good, "new");
	start(&f, plugin_user, 0);
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_int_equal(runs(&f), 2);
	strcpy(f.good, "none");
	assert_int_equal(outcome(&f), ERR_DENIED);
	assert_int_equal(outcome(&f), ERR_DENIED);
	assert_int_equal(runs(&f), 2);
	stop(&f);
}

static void
test_a_plugin_that_fails_is_told_in_its_words_and_paced(void **state)
{
	static const struct {
		const char *body, *words;
	} cases[] = {
		{ "echo log in first >&2; exit 3", "ended with status 3: log in first" },
		{ "exit 3", "ask your admin" },
		{ "kill -9 $$", "killed by signal 9" },
		{ "echo '{'", "no JSON" },
		{ "echo '{}'", "no ExecCredential" },
		{ "head -c 2000000 /dev/zero", "more than" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct fixture f;

		open_rig(&f);
		write_plugin(&f, cases[i].body);
		start(&f, plugin_user, 0);
		assert_int_not_equal(outcome(&f), ERR_NONE);
		if (strstr(f.words, cases[i].words) == NULL || strstr(f.words, "plugin") == NULL)
			fail_msg("%s: %s", cases[i].body, f.words);
		outcome(&f);
		assert_int_equal(f.rig.requests, 0);
		assert_true(runs(&f) <= 2);
		stop(&f);
	}
}

static void
test_a_plugin_that_is_not_there_is_told_with_its_hint(void **state)
{
	struct fixture f;

	(void)state;
	open_rig(&f);
	start(&f, plugin_user, 0);
	assert_int_equal(outcome(&f), ERR_NOT_FOUND);
	assert_non_null(strstr(f.words, "see ask your admin"));
	stop(&f);
}

struct run {
	bool over;
	enum err_code code;
};

static void
on_run(const char *text, size_t len, const struct err *why, void *arg)
{
	struct run *run = arg;

	(void)text;
	(void)len;
	run->over = true;
	run->code = why != NULL ? why->code : ERR_NONE;
}

/* Whoever adopts orphans here may never wait for them: a zombie is none. */
static bool
is_alive(int pid)
{
	AUTO_FREE char *path = alloc_format("/proc/%d/stat", pid);
	AUTO_FILE *stat = fopen(path, "r");
	char letter = 'Z';

	return stat != NULL && fscanf(stat, "%*d %*s %c", &letter) == 1 && letter != 'Z';
}

/* Its children go with it: the group is killed, and with it who holds the pipe. */
static void
test_a_program_that_hangs_is_killed_with_its_children(void **state)
{
	struct fixture f;
	struct run run = { 0 };
	struct err err;
	AUTO_FREE char *path = NULL;
	AUTO_FILE *file = NULL;
	int child = 0;

	(void)state;
	open_rig(&f);
	write_plugin(&f, "sleep 1000 & echo $! >child.new; mv child.new child; wait");
	start(&f, plugin_user, 0);
	path = alloc_format("%s/child", f.rig.dir);
	for (int i = 0; access(path, F_OK) != 0; i++) {
		assert_true(i < 100);
		run = (struct run){ 0 };
		assert_non_null(kube_program_start(f.rig.base, f.config->plugin, 300, on_run, &run, &err));
		rig_until(&f.rig, &run.over);
		assert_int_equal(run.code, ERR_TIMEOUT);
	}
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &child), 1);
	for (int64_t end = clock_boot_ms() + 60000; is_alive(child); rig_turn(&f.rig, 5))
		assert_true(clock_boot_ms() < end);
	stop(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_token_file_is_read_again_when_it_changes),
		cmocka_unit_test(test_a_token_that_is_refused_is_read_again_and_the_call_repeated),
		cmocka_unit_test(test_a_refused_token_that_stays_is_final),
		cmocka_unit_test(test_a_plugin_runs_once_until_its_credentials_expire),
		cmocka_unit_test(test_a_plugin_hears_what_it_needs_to_know),
		cmocka_unit_test(test_401_makes_a_plugin_run_again_but_not_for_ever),
		cmocka_unit_test(test_a_plugin_that_fails_is_told_in_its_words_and_paced),
		cmocka_unit_test(test_a_plugin_that_is_not_there_is_told_with_its_hint),
		cmocka_unit_test(test_a_program_that_hangs_is_killed_with_its_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
