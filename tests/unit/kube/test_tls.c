/* test_tls.c - who the API server is, and who we are to it, by certificates. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"
#include "tls_rig.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"
#include "kube/kube_client.h"
#include "kube/kube_config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct rig rig;
	struct door door;
	struct kube_config *config;
	struct kube_client *client;
	uint32_t done, held_count;
	enum err_code code;
	char words[512];
};

static void
handle(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (strstr(request->line, "/hold") != NULL)
		f->held_count++;
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

/* cluster and user: entries of the kubeconfig, with a comma before each. */
static void
start(struct fixture *f, const char *cert, const char *client_ca, const char *cluster, const char *user)
{
	struct kube_options options = { .pause_ms = 1, .retries = 2 };
	AUTO_FREE char *backend = NULL;
	AUTO_FREE char *ca = client_ca != NULL ? tls_path(client_ca) : NULL;
	struct err err;

	memset(f, 0, sizeof *f);
	rig_start(&f->rig, handle, f);
	backend = alloc_format("%u", f->rig.port);
	door_open(&f->door, "tls_door.py", cert, (const char *const[]){ backend, ca, NULL });
	f->config = rig_config_tls(&f->rig, f->door.port, cluster, user);
	assert_int_equal(kube_client_create(f->rig.base, f->config, &options, &f->client, &err), 0);
}

static void
stop(struct fixture *f)
{
	kube_client_free(f->client);
	kube_config_free(f->config);
	door_close(&f->door);
	rig_stop(&f->rig);
}

static void
ask(struct fixture *f, const char *path)
{
	struct kube_request request = { .path = path, .retry = KUBE_RETRY_READ };
	struct err err;

	assert_int_equal(kube_call_start(f->client, &request, on_done, f, NULL, &err), 0);
}

/* What came of one request, told by its code. */
static enum err_code
outcome(struct fixture *f)
{
	ask(f, "/x");
	rig_until_count(&f->rig, &f->done, f->done + 1);
	return f->code;
}

static void
test_a_server_of_the_right_authority_is_asked(void **state)
{
	AUTO_FREE char *ca = tls_path("ca.crt");
	AUTO_FREE char *cluster = alloc_format(", certificate-authority: '%s'", ca);
	struct fixture f;

	(void)state;
	start(&f, "address", NULL, cluster, "");
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_int_equal(outcome(&f), ERR_NONE);
	assert_int_equal(f.rig.connections, 1);
	assert_string_equal(f.rig.log[0].token, "sesame");
	/* One that hangs on a connection that cannot be shared holds nobody up. */
	ask(&f, "/hold");
	rig_until_count(&f.rig, &f.held_count, 1);
	assert_int_equal(outcome(&f), ERR_NONE);
	stop(&f);
}

static void
test_another_authority_is_refused_at_once_and_hears_nothing(void **state)
{
	AUTO_FREE char *ca = tls_path("other.crt");
	AUTO_FREE char *cluster = alloc_format(", certificate-authority: '%s'", ca);
	struct kube_stats stats;
	struct fixture f;

	(void)state;
	start(&f, "address", NULL, cluster, "");
	assert_int_equal(outcome(&f), ERR_UNAVAILABLE);
	assert_non_null(strstr(f.words, "certificate"));
	kube_client_stats(f.client, &stats);
	assert_int_equal(stats.attempts, 1);
	assert_int_equal(f.rig.requests, 0);
	stop(&f);
	/* Nor do those of the system know it. */
	start(&f, "address", NULL, "", "");
	assert_int_equal(outcome(&f), ERR_UNAVAILABLE);
	stop(&f);
	start(&f, "address", NULL, ", insecure-skip-tls-verify: true", "");
	assert_int_equal(outcome(&f), ERR_NONE);
	stop(&f);
}

static void
test_the_name_in_the_certificate_counts(void **state)
{
	AUTO_FREE char *ca = tls_path("ca.crt");
	AUTO_FREE char *plain = alloc_format(", certificate-authority: '%s'", ca);
	AUTO_FREE char *named = alloc_format("%s, tls-server-name: api.test", plain);
	AUTO_FREE char *misnamed = alloc_format("%s, tls-server-name: x.test", plain);
	struct fixture f;

	(void)state;
	start(&f, "name", NULL, plain, "");
	assert_int_equal(outcome(&f), ERR_UNAVAILABLE);
	stop(&f);
	start(&f, "name", NULL, misnamed, "");
	assert_int_equal(outcome(&f), ERR_UNAVAILABLE);
	stop(&f);
	start(&f, "name", NULL, named, "");
	assert_int_equal(outcome(&f), ERR_NONE);
	stop(&f);
}

static void
test_a_certificate_that_has_expired_is_none(void **state)
{
	AUTO_FREE char *ca = tls_path("ca.crt");
	AUTO_FREE char *cluster = alloc_format(", certificate-authority: '%s'", ca);
	struct fixture f;

	(void)state;
	start(&f, "expired", NULL, cluster, "");
	assert_int_equal(outcome(&f), ERR_UNAVAILABLE);
	assert_non_null(strstr(f.words, "expired"));
	assert_int_equal(f.rig.requests, 0);
	stop(&f);
}

static char *
encoded(const char *name)
{
	AUTO_FREE char *data = NULL;
	struct err err;
	size_t len;
	char *text;

	if (file_read_at(AT_FDCWD, name, 65536, &data, &len, &err) != 0)
		fail_msg("%s", err.msg);
	text = alloc_zero(1, text_base64_size(len) + 1);
	text_base64_encode(data, len, text);
	return text;
}

static void
test_a_client_shows_its_certificate(void **state)
{
	AUTO_FREE char *ca = tls_path("ca.crt");
	AUTO_FREE char *cert = tls_path("client.crt");
	AUTO_FREE char *key = tls_path("client.key");
	AUTO_FREE char *ca_data = encoded(ca);
	AUTO_FREE char *cert_data = encoded(cert);
	AUTO_FREE char *key_data = encoded(key);
	AUTO_FREE char *cluster = alloc_format(", certificate-authority-data: %s", ca_data);
	AUTO_FREE char *files = alloc_format(", client-certificate: '%s', client-key: '%s'", cert, key);
	AUTO_FREE char *inlined = alloc_format(
		", client-certificate-data: %s, client-key-data: %s", cert_data, key_data);
	struct fixture f;

	(void)state;
	start(&f, "address", "ca.crt", cluster, "");
	assert_int_equal(outcome(&f), ERR_UNAVAILABLE);
	assert_int_equal(f.rig.requests, 0);
	stop(&f);
	start(&f, "address", "ca.crt", cluster, files);
	assert_int_equal(outcome(&f), ERR_NONE);
	stop(&f);
	start(&f, "address", "ca.crt", cluster, inlined);
	assert_int_equal(outcome(&f), ERR_NONE);
	stop(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_server_of_the_right_authority_is_asked),
		cmocka_unit_test(test_another_authority_is_refused_at_once_and_hears_nothing),
		cmocka_unit_test(test_the_name_in_the_certificate_counts),
		cmocka_unit_test(test_a_certificate_that_has_expired_is_none),
		cmocka_unit_test(test_a_client_shows_its_certificate),
	};

	return cmocka_run_group_tests(tests, tls_make_certificates, tls_remove_certificates);
}
