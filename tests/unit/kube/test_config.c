/* test_config.c - what a kubeconfig and a pod say of where and who, and what is refused. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"

#include "base/alloc.h"
#include "base/err.h"
#include "kube/kube_config_impl.h"
#include "kube/kube_credential.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The base64 of lines by which PEM is known. */
#define CERT_LINE  "-----BEGIN CERTIFICATE-----"
#define KEY_LINE   "-----BEGIN PRIVATE KEY-----"
#define CERT64     "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"
#define KEY64      "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t"
#define SEALED64   "LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBLRVktLS0tLQ=="
#define SEALED64_2 "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpQcm9jLVR5cGU6IDQsRU5DUllQVEVECg=="

static void
handle(const struct rig_request *request, void *arg)
{
	(void)request;
	(void)arg;
}

static int
load(struct rig *rig, const char *text, const char *context, struct kube_config **ret_config, struct err *err)
{
	return kube_config_file(rig_file(rig, "kubeconfig", text), context, ret_config, err);
}

static const char two[] =
	"apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: one\n"
	"contexts:\n"
	"- name: one\n  context: {cluster: near, user: me, namespace: mine}\n"
	"- context:\n    cluster: far\n    user: robot\n  name: two\n"
	"clusters:\n"
	"- cluster:\n    certificate-authority-data: LS0tLS1CRUdJTiBD\n      RVJUSUZJQ0FURS0tLS0t\n    server: "
	"https://near:6443/\n  name: near\n"
	"- cluster: {server: 'https://far/k8s/1', certificate-authority: ca.pem, tls-server-name: api, proxy-url: "
	"'http://p:1'}\n"
	"  name: far\n"
	"users:\n"
	"- {name: me, user: {token: abc, client-certificate-data: " CERT64 ", client-key-data: " KEY64 "}}\n"
	"- {name: robot, user: {tokenFile: token, token: ignored}}\n";

static void
test_contexts_lead_to_clusters_and_users(void **state)
{
	struct kube_config *config;
	struct rig rig;
	struct err err;
	char path[128];

	(void)state;
	rig_start(&rig, handle, NULL);
	rig_file(&rig, "ca.pem", CERT_LINE);
	assert_int_equal(load(&rig, two, "two", &config, &err), 0);
	assert_string_equal(kube_config_server(config), "https://far/k8s/1");
	assert_string_equal(kube_config_namespace(config), "default");
	assert_string_equal(config->ca.data, CERT_LINE);
	assert_string_equal(config->tls_name, "api");
	assert_string_equal(config->proxy, "http://p:1");
	snprintf(path, sizeof path, "%s/token", rig.dir);
	assert_string_equal(config->token_file, path);
	kube_config_free(config);
	assert_int_equal(load(&rig, two, "three", &config, &err), -1);
	assert_non_null(strstr(err.msg, "no context 'three'"));
	rig_stop(&rig);
}

static void
test_the_current_context_is_the_default(void **state)
{
	static const char folded[] =
		"current-context: one\n"
		"contexts: [{name: one, context: {cluster: near, user: me, namespace: mine}}]\n"
		"clusters:\n- name: near\n  cluster:\n    server: https://near:6443/\n"
		"    certificate-authority-data: |\n      LS0tLS1CRUdJTiBD\n      RVJUSUZJQ0FURS0tLS0t\n"
		"users: [{name: me, user: {token: abc, client-certificate-data: " CERT64 ", client-key-data: " KEY64
		"}}]\n";
	struct kube_config *config;
	struct rig rig;
	struct err err;

	(void)state;
	rig_start(&rig, handle, NULL);
	/* A base64 text over two lines is folded by YAML into one with a blank: that is none. */
	assert_int_equal(load(&rig, two, "", &config, &err), -1);
	assert_non_null(strstr(err.msg, "certificate-authority-data is no base64"));
	assert_int_equal(load(&rig, folded, "", &config, &err), 0);
	assert_string_equal(kube_config_server(config), "https://near:6443");
	assert_string_equal(kube_config_namespace(config), "mine");
	assert_string_equal(config->ca.data, CERT_LINE);
	assert_string_equal(config->cert.data, CERT_LINE);
	assert_string_equal(config->key.data, KEY_LINE);
	assert_string_equal(config->token, "abc");
	assert_null(config->plugin);
	kube_config_free(config);
	rig_stop(&rig);
}

/* One cluster's and one user's fields at a time. */
static const struct refusal {
	const char *cluster, *user, *words;
} refusals[] = {
	{ "x: y", "token: t", "names no server" },
	{ "server: 'ftp://x'", "token: t", "must begin with https://" },
	{ "server: 'https://'", "token: t", "is no address" },
	{ "server: 'https://a@b'", "token: t", "is no address" },
	{ "server: [1]", "token: t", "server must be a text" },
	{ "server: 'https://x', proxy-url: 'ftp://x'", "token: t", "proxy-url must begin" },
	{ "server: 'https://x', insecure-skip-tls-verify: true, certificate-authority-data: " CERT64, "token: t",
		"contradict" },
	{ "server: 'https://x', insecure-skip-tls-verify: no", "token: t", "must be true or false" },
	{ "server: 'https://x', insecure-skip-tls-verify: 'false'", "token: t", "must be true or false" },
	{ "server: 'https://x', certificate-authority-data: YQ==", "token: t",
		"certificate-authority holds no CERTIFICATE" },
	{ "server: 'https://x', certificate-authority-data: " KEY64, "token: t",
		"certificate-authority holds no CERTIFICATE" },
	{ "server: 'https://x', certificate-authority: empty", "token: t",
		"certificate-authority holds no CERTIFICATE" },
	{ "server: 'https://x', tls-server-name: 'y/z'", "token: t", "is no name" },
	{ "server: 'https:///x'", "token: t", "is no address" },
	{ "server: \"https://x\\r\\ny\"", "token: t", "is no address" },
	{ "server: 'https://x'}}, {name: x, cluster: {server: 'https://y'", "token: t",
		"cluster 'x' is in it twice" },
	{ "server: 'https://x'", "token: t}}, {name: u, user: {token: s", "user 'u' is in it twice" },
	{ "server: 'https://x', certificate-authority: nosuch.pem", "token: t", "nosuch.pem" },
	{ "server: 'https://x'", "username: u, password: p", "'username', which is not supported" },
	{ "server: 'https://x'", "auth-provider: {name: gcp}", "'auth-provider', which" },
	{ "server: 'https://x'", "token: t, as: root", "'as', which" },
	{ "server: 'https://x'", "client-certificate-data: " CERT64, "both are needed" },
	{ "server: 'https://x'", "client-certificate-data: " CERT64 ", client-key-data: " CERT64,
		"client-key holds no PRIVATE KEY" },
	{ "server: 'https://x'", "client-certificate-data: " CERT64 ", client-key-data: " SEALED64,
		"client-key is encrypted" },
	{ "server: 'https://x'", "client-certificate-data: " CERT64 ", client-key-data: " SEALED64_2,
		"client-key is encrypted" },
	{ "server: 'https://x'", "token: \"a\\r\\nX: y\"", "control character" },
	{ "server: 'https://x'", "exec: {command: x}", "apiVersion '' is not supported" },
	{ "server: 'https://x'", "exec: {apiVersion: client.authentication.k8s.io/v1}", "no command" },
	{ "server: 'https://x'",
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}",
		"nobody is there" },
	{ "server: 'https://x'", "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, args: [1]}",
		"args must be texts" },
	{ "server: 'https://x'", "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [x]}",
		"env must be" },
	{ "server: 'https://x'",
		"exec: {apiVersion: client.authentication.k8s.io/v1, command: x, provideClusterInfo: 'false'}",
		"provideClusterInfo must be" },
};

static void
test_what_cannot_be_done_is_refused_in_words(void **state)
{
	struct kube_config *config;
	struct rig rig;
	struct err err;

	(void)state;
	rig_start(&rig, handle, NULL);
	rig_file(&rig, "empty", "");
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		AUTO_FREE char *text = alloc_format("current-context: c\n"
						    "contexts: [{name: c, context: {cluster: x, user: u}}]\n"
						    "clusters: [{name: x, cluster: {%s}}]\n"
						    "users: [{name: u, user: {%s}}]\n",
			refusals[i].cluster, refusals[i].user);

		assert_int_equal(load(&rig, text, "", &config, &err), -1);
		if (strstr(err.msg, refusals[i].words) == NULL || strstr(err.msg, "kubeconfig") == NULL)
			fail_msg("{%s} {%s}: %s", refusals[i].cluster, refusals[i].user, err.msg);
	}
	assert_int_equal(load(&rig, "[]", "", &config, &err), -1);
	assert_int_equal(load(&rig, "a: [", "", &config, &err), -1);
	assert_int_equal(kube_config_file("/nosuch/kubeconfig", "", &config, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	rig_stop(&rig);
}

static void
test_a_pod_knows_by_its_files_and_environment(void **state)
{
	struct kube_config *config;
	struct rig rig;
	struct err err;

	(void)state;
	rig_start(&rig, handle, NULL);
	assert_int_equal(kube_config_pod(rig.dir, NULL, NULL, &config, &err), -1);
	assert_non_null(strstr(err.msg, "no pod of Kubernetes"));
	assert_int_equal(kube_config_pod(rig.dir, "10.0.0.1", "443", &config, &err), -1);
	rig_file(&rig, "ca.crt", "authority");
	assert_int_equal(kube_config_pod(rig.dir, "10.0.0.1", "443", &config, &err), -1);
	assert_non_null(strstr(err.msg, "token"));
	rig_file(&rig, "token", "abc\n");
	assert_int_equal(kube_config_pod(rig.dir, "10.0.0.1", "443", &config, &err), 0);
	assert_string_equal(kube_config_server(config), "https://10.0.0.1:443");
	assert_string_equal(kube_config_namespace(config), "default");
	kube_config_free(config);
	rig_file(&rig, "namespace", "boxes\n");
	assert_int_equal(kube_config_pod(rig.dir, "fd00::1", "443", &config, &err), 0);
	assert_string_equal(kube_config_server(config), "https://[fd00::1]:443");
	assert_string_equal(kube_config_namespace(config), "boxes");
	kube_config_free(config);
	rig_stop(&rig);
}

static void
test_times_are_read_as_they_are_written(void **state)
{
	static const char *const bad[] = { "", "soon", "2026-11-30", "2026-11-30T08:00:00", "2026-11-30T08:00:00+1",
		"2026-11-30T08:00:00Zx", "2026-11-30T08:00:00+01:00x" };
	double seconds, other;

	(void)state;
	assert_int_equal(kube_credential_time("1970-01-02T00:00:00Z", &seconds), 0);
	assert_int_equal((int)seconds, 86400);
	assert_int_equal(kube_credential_time("1970-01-02T01:30:00.123456+01:30", &other), 0);
	assert_int_equal((int)other, 86400);
	assert_int_equal(kube_credential_time("1970-01-01T22:30:00-01:30", &other), 0);
	assert_int_equal((int)other, 86400);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(kube_credential_time(bad[i], &seconds), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contexts_lead_to_clusters_and_users),
		cmocka_unit_test(test_the_current_context_is_the_default),
		cmocka_unit_test(test_what_cannot_be_done_is_refused_in_words),
		cmocka_unit_test(test_a_pod_knows_by_its_files_and_environment),
		cmocka_unit_test(test_times_are_read_as_they_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
