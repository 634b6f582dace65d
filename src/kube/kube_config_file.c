/*
 * kube_config_file.c - a kubeconfig: a context, and the cluster and the user that it names.
 *
 * Paths in it are relative to its own directory. What would make us somebody else than it says is refused, not passed
 * over.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_config_impl.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "kube/kube_yaml.h"

#include <json-c/json.h>
#include <libgen.h>
#include <string.h>

/* NULL: not there, or null. */
static struct json_object *
field(struct json_object *object, const char *name)
{
	struct json_object *value;

	return json_object_is_type(object, json_type_object) && json_object_object_get_ex(object, name, &value)
		? value
		: NULL;
}

/* "" stands for what is not there, as it does for kubectl; NULL: it is no text. */
static const char *
text_of(struct json_object *object, const char *name)
{
	struct json_object *value = field(object, name);

	if (value == NULL)
		return "";
	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : NULL;
}

static int
copy_text(struct json_object *object, const char *name, char **ret_text, struct err *err)
{
	const char *text = text_of(object, name);

	if (text == NULL)
		return err_set(err, ERR_INVALID, "%s must be a text", name);
	*ret_text = text[0] != '\0' ? alloc_string(text) : NULL;
	return 0;
}

/* What is no truth value is not guessed at: "no" and 'false' would be texts that are there. */
static int
copy_bool(struct json_object *object, const char *name, bool *ret_value, struct err *err)
{
	struct json_object *value = field(object, name);

	if (value != NULL && !json_object_is_type(value, json_type_boolean))
		return err_set(err, ERR_INVALID, "%s must be true or false", name);
	*ret_value = json_object_get_boolean(value);
	return 0;
}

/* The entry `kind` of the one in root's list with that name. */
static int
find_named(struct json_object *root, const char *list_name, const char *kind, const char *name,
	struct json_object **ret_entry, struct err *err)
{
	struct json_object *list = field(root, list_name);
	size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	struct json_object *found = NULL;

	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(list, i);
		const char *item_name = text_of(item, "name");

		if (item_name == NULL || strcmp(item_name, name) != 0)
			continue;
		if (found != NULL)
			return err_set(err, ERR_INVALID, "%s '%.100s' is in it twice", kind, name);
		found = item;
	}
	if (found == NULL)
		return err_set(err, ERR_INVALID, "there is no %s '%.100s' in it", kind, name);
	*ret_entry = field(found, kind);
	return json_object_is_type(*ret_entry, json_type_object)
		? 0
		: err_set(err, ERR_INVALID, "%s '%.100s' says nothing", kind, name);
}

/* As Go's decoder: line breaks do not count. */
static int
decode(const char *text, struct kube_blob *ret_blob)
{
	AUTO_SECRET char *dense = alloc_zero(1, strlen(text) + 1);
	size_t len = 0;
	uint8_t *bytes;

	for (const char *at = text; *at != '\0'; at++) {
		if (*at != '\n' && *at != '\r')
			dense[len++] = *at;
	}
	if (text_base64_decode(dense, len, &bytes, &ret_blob->len) != 0)
		return -1;
	ret_blob->data = (char *)bytes;
	return 0;
}

static int
read_bytes(
	struct json_object *entry, const char *name, const char *dir, struct kube_blob *ret_blob, struct err *err)
{
	AUTO_FREE char *data_name = alloc_format("%s-data", name);
	const char *data = text_of(entry, data_name), *path = text_of(entry, name);
	AUTO_FREE char *whole = NULL;

	if (data == NULL || path == NULL)
		return err_set(err, ERR_INVALID, "%s must be a text", name);
	if (data[0] != '\0')
		return decode(data, ret_blob) == 0 ? 0 : err_set(err, ERR_INVALID, "%s is no base64", data_name);
	if (path[0] == '\0')
		return 0;
	whole = kube_config_path(dir, path);
	return kube_config_read(whole, ret_blob, err);
}

static bool
has_text(const struct kube_blob *blob, const char *text)
{
	return memmem(blob->data, blob->len, text, strlen(text)) != NULL;
}

/* PEM inline as base64 under name-data, or in a file under name; what: what it holds. */
static int
read_blob(struct json_object *entry, const char *name, const char *what, const char *dir,
	struct kube_blob *ret_blob, struct err *err)
{
	AUTO_FREE char *end = alloc_format("%s-----", what);

	if (read_bytes(entry, name, dir, ret_blob, err) != 0)
		return -1;
	if (ret_blob->data == NULL)
		return 0;
	if (!has_text(ret_blob, "-----BEGIN ") || !has_text(ret_blob, end))
		return err_set(err, ERR_INVALID, "%s holds no %s as PEM", name, what);
	if (has_text(ret_blob, "Proc-Type: 4,ENCRYPTED") || has_text(ret_blob, "BEGIN ENCRYPTED "))
		return err_set(err, ERR_INVALID, "%s is encrypted, and nobody is there to open it", name);
	return 0;
}

static bool
is_printable(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text <= ' ' || *text == 0x7f)
			return false;
	return true;
}

static int
check_server(const char *server, struct err *err)
{
	const char *host;

	if (strncmp(server, "https://", 8) == 0)
		host = server + 8;
	else if (strncmp(server, "http://", 7) == 0)
		host = server + 7;
	else
		return err_set(err, ERR_INVALID, "server '%.100s' must begin with https://", server);
	if (host[0] == '\0' || host[0] == '/' || strpbrk(host, "?#@\\ ") != NULL || !is_printable(host))
		return err_set(err, ERR_INVALID, "server '%.100s' is no address", server);
	return 0;
}

/* It stands in a URL in the server's place. */
static int
check_tls_name(const char *name, struct err *err)
{
	if (name == NULL || (is_printable(name) && strpbrk(name, "/?#@:\\[] ") == NULL))
		return 0;
	return err_set(err, ERR_INVALID, "tls-server-name '%.100s' is no name", name);
}

static int
check_proxy(const char *proxy, struct err *err)
{
	static const char *const schemes[] = { "http://", "https://", "socks5://", "socks5h://" };

	for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
		if (proxy == NULL || strncmp(proxy, schemes[i], strlen(schemes[i])) == 0)
			return 0;
	}
	return err_set(err, ERR_INVALID, "proxy-url must begin with http://, https://, socks5:// or socks5h://");
}

static int
take_cluster(struct kube_config *config, struct json_object *cluster, const char *dir, struct err *err)
{
	size_t len;

	if (copy_text(cluster, "server", &config->server, err) != 0 ||
		copy_text(cluster, "tls-server-name", &config->tls_name, err) != 0 ||
		copy_text(cluster, "proxy-url", &config->proxy, err) != 0 ||
		copy_bool(cluster, "insecure-skip-tls-verify", &config->insecure, err) != 0 ||
		read_blob(cluster, "certificate-authority", "CERTIFICATE", dir, &config->ca, err) != 0)
		return -1;
	if (config->server == NULL)
		return err_set(err, ERR_INVALID, "its cluster names no server");
	if (check_server(config->server, err) != 0 || check_tls_name(config->tls_name, err) != 0 ||
		check_proxy(config->proxy, err) != 0)
		return -1;
	for (len = strlen(config->server); config->server[len - 1] == '/'; len--)
		config->server[len - 1] = '\0';
	if (config->insecure && config->ca.data != NULL)
		return err_set(err, ERR_INVALID,
			"insecure-skip-tls-verify and certificate-authority contradict each other");
	return 0;
}

static int
refuse_unknown(struct json_object *user, struct err *err)
{
	static const char *const names[] = { "username", "password", "auth-provider", "as", "as-uid", "as-groups",
		"as-user-extra" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (field(user, names[i]) != NULL)
			return err_set(err, ERR_INVALID,
				"its user has '%s', which is not supported: use a token, a client certificate or "
				"exec",
				names[i]);
	}
	return 0;
}

static int
take_user(struct kube_config *config, struct json_object *user, const char *dir, struct err *err)
{
	const char *file = text_of(user, "tokenFile");
	AUTO_SECRET char *token = NULL;

	if (refuse_unknown(user, err) != 0 || copy_text(user, "token", &token, err) != 0 ||
		read_blob(user, "client-certificate", "CERTIFICATE", dir, &config->cert, err) != 0 ||
		read_blob(user, "client-key", "PRIVATE KEY", dir, &config->key, err) != 0)
		return -1;
	if ((config->cert.data == NULL) != (config->key.data == NULL))
		return err_set(
			err, ERR_INVALID, "its user has one of client-certificate and client-key; both are needed");
	if (file == NULL)
		return err_set(err, ERR_INVALID, "tokenFile must be a text");
	if (file[0] != '\0')
		config->token_file = kube_config_path(dir, file);
	if (token != NULL)
		return kube_config_token(token, strlen(token), "token", &config->token, err);
	return 0;
}

static int
take_context(
	struct kube_config *config, struct json_object *root, const char *name, const char *dir, struct err *err)
{
	struct json_object *context, *cluster, *user = NULL, *exec;
	const char *cluster_name, *user_name;

	if (name[0] == '\0')
		name = text_of(root, "current-context");
	if (name == NULL || name[0] == '\0')
		return err_set(err, ERR_INVALID, "it has no current-context; name one by kube_context");
	if (find_named(root, "contexts", "context", name, &context, err) != 0)
		return -1;
	cluster_name = text_of(context, "cluster");
	user_name = text_of(context, "user");
	if (cluster_name == NULL || user_name == NULL)
		return err_set(err, ERR_INVALID, "context '%.100s' names no cluster or no user", name);
	if (copy_text(context, "namespace", &config->name_space, err) != 0 ||
		find_named(root, "clusters", "cluster", cluster_name, &cluster, err) != 0 ||
		take_cluster(config, cluster, dir, err) != 0)
		return -1;
	if (user_name[0] != '\0' && find_named(root, "users", "user", user_name, &user, err) != 0)
		return -1;
	if (config->name_space == NULL)
		config->name_space = alloc_string("default");
	if (user == NULL)
		return 0;
	exec = field(user, "exec");
	if (exec != NULL && kube_config_plugin(config, exec, dir, cluster, err) != 0)
		return -1;
	return take_user(config, user, dir, err);
}

int
kube_config_file(const char *path, const char *context, struct kube_config **ret_config, struct err *err)
{
	AUTO_FREE char *copy = alloc_string(path);
	AUTO_JSON struct json_object *root = NULL;
	struct kube_config *config;
	struct kube_blob text = { 0 };
	int result;

	if (kube_config_read(path, &text, err) != 0)
		return err_prefix(err, "kubeconfig");
	result = kube_yaml_parse(text.data, text.len, &root, err);
	kube_blob_fini(&text);
	if (result != 0)
		return err_prefix(err, "kubeconfig %.200s", path);
	config = alloc_zero(1, sizeof *config);
	if (take_context(config, root, context, dirname(copy), err) != 0) {
		kube_config_free(config);
		return err_prefix(err, "kubeconfig %.200s", path);
	}
	*ret_config = config;
	return 0;
}
