/* kube_credential.c - reads an ExecCredential. */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_credential.h"
#include "kube/kube_status.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <string.h>
#include <time.h>

void
kube_credential_fini(struct kube_credential *credential)
{
	cleanup_secret(&credential->token);
	kube_blob_fini(&credential->cert);
	kube_blob_fini(&credential->key);
	*credential = (struct kube_credential){ 0 };
}

int64_t
kube_credential_left_ms(const struct kube_credential *credential)
{
	return credential->expires > 0 ? (int64_t)((credential->expires - clock_wall()) * 1000) : INT64_MAX;
}

int
kube_credential_time(const char *text, double *ret_seconds)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int hours, minutes, used = 0;
	double seconds;

	if (rest == NULL)
		return -1;
	seconds = (double)timegm(&tm);
	if (*rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (*rest == '+' || *rest == '-') {
		if (sscanf(rest + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 || used != 5 || rest[6] != '\0')
			return -1;
		seconds -= (*rest == '+' ? 1 : -1) * (hours * 3600.0 + minutes * 60.0);
	} else if (strcmp(rest, "Z") != 0) {
		return -1;
	}
	*ret_seconds = seconds;
	return 0;
}

static void
take_pem(struct json_object *status, const char *name, struct kube_blob *ret_blob)
{
	const char *text = kube_json_text(status, name);

	if (text[0] != '\0')
		*ret_blob = (struct kube_blob){ must_alloc(strdup(text)), strlen(text) };
}

static int
take_status(struct json_object *status, struct kube_credential *credential, struct err *err)
{
	const char *token = kube_json_text(status, "token"),
		   *expires = kube_json_text(status, "expirationTimestamp");

	take_pem(status, "clientCertificateData", &credential->cert);
	take_pem(status, "clientKeyData", &credential->key);
	if ((credential->cert.data == NULL) != (credential->key.data == NULL))
		return err_set(err, ERR_INVALID, "it printed one of clientCertificateData and clientKeyData");
	if (expires[0] != '\0' && kube_credential_time(expires, &credential->expires) != 0)
		return err_set(err, ERR_INVALID, "its expirationTimestamp '%.60s' is no time", expires);
	if (token[0] != '\0')
		return kube_config_token(token, strlen(token), "its answer", &credential->token, err);
	return credential->cert.data != NULL
		? 0
		: err_set(err, ERR_INVALID, "it printed neither a token nor a certificate");
}

int
kube_credential_parse(
	const char *text, size_t len, const char *version, struct kube_credential *ret_credential, struct err *err)
{
	AUTO_JSON struct json_object *root = json_parse(text, len, err);
	struct kube_credential credential = { 0 };
	struct json_object *status;
	const char *kind, *spoken;

	/* What json_parse() says quotes the text, which may be a secret. */
	if (root == NULL)
		return err_set(err, ERR_INVALID, "it printed no JSON");
	kind = kube_json_text(root, "kind");
	spoken = kube_json_text(root, "apiVersion");
	if (strcmp(kind, "ExecCredential") != 0 || strcmp(spoken, version) != 0)
		return err_set(err, ERR_INVALID, "it printed no ExecCredential of %s", version);
	if (!json_object_object_get_ex(root, "status", &status))
		return err_set(err, ERR_INVALID, "its ExecCredential has no status");
	if (take_status(status, &credential, err) != 0) {
		kube_credential_fini(&credential);
		return -1;
	}
	*ret_credential = credential;
	return 0;
}
