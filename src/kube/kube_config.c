/* kube_config.c - the service account of a pod, what both kinds of configuration share, and which of them it is. */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_config_impl.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#define POD_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

enum { FILE_MAX_BYTES = 1 << 20 };

void
kube_blob_fini(struct kube_blob *blob)
{
	if (blob->data != NULL)
		explicit_bzero(blob->data, blob->len);
	free(blob->data);
	*blob = (struct kube_blob){ 0 };
}

static void
list_free(char **list)
{
	for (char **item = list; item != NULL && *item != NULL; item++) {
		explicit_bzero(*item, strlen(*item));
		free(*item);
	}
	free(list);
}

static void
plugin_free(struct kube_plugin *plugin)
{
	if (plugin == NULL)
		return;
	free(plugin->command);
	list_free(plugin->args);
	list_free(plugin->env);
	free(plugin->version);
	free(plugin->hint);
	free(plugin->info);
	free(plugin);
}

void
kube_config_free(struct kube_config *config)
{
	if (config == NULL)
		return;
	free(config->server);
	free(config->name_space);
	free(config->tls_name);
	free(config->proxy);
	kube_blob_fini(&config->ca);
	kube_blob_fini(&config->cert);
	kube_blob_fini(&config->key);
	cleanup_secret(&config->token);
	free(config->token_file);
	plugin_free(config->plugin);
	free(config);
}

const char *
kube_config_server(const struct kube_config *config)
{
	return config->server;
}

const char *
kube_config_namespace(const struct kube_config *config)
{
	return config->name_space;
}

int
kube_config_read(const char *path, struct kube_blob *ret_blob, struct err *err)
{
	struct kube_blob blob;

	if (file_read_at(AT_FDCWD, path, FILE_MAX_BYTES, &blob.data, &blob.len, err) != 0)
		return -1;
	*ret_blob = blob;
	return 0;
}

int
kube_config_token(const char *text, size_t len, const char *path, char **ret_token, struct err *err)
{
	const char *begin = text, *end = text + len;

	while (begin < end && isspace((unsigned char)*begin))
		begin++;
	while (begin < end && isspace((unsigned char)end[-1]))
		end--;
	if (begin == end)
		return err_set(err, ERR_INVALID, "%s holds no token: it is empty", path);
	for (const char *at = begin; at < end; at++) {
		/* It becomes a part of a header. */
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return err_set(
				err, ERR_INVALID, "%s holds no token: a blank or control character is in it", path);
	}
	*ret_token = must_alloc(strndup(begin, (size_t)(end - begin)));
	return 0;
}

char *
kube_config_path(const char *dir, const char *path)
{
	return path[0] == '/' ? alloc_string(path) : alloc_format("%s/%s", dir, path);
}

static int
pod_fill(struct kube_config *config, const char *dir, struct err *err)
{
	AUTO_FREE char *ca = kube_config_path(dir, "ca.crt");
	AUTO_FREE char *names = kube_config_path(dir, "namespace");
	struct kube_blob text = { 0 };
	struct err ignored;

	config->token_file = kube_config_path(dir, "token");
	if (kube_config_read(ca, &config->ca, err) != 0)
		return -1;
	/* The token is read when it is first needed; whether there is one is told now. */
	if (access(config->token_file, R_OK) != 0)
		return err_set(err, ERR_NOT_FOUND, "%s cannot be read: has this pod a service account token?",
			config->token_file);
	if (kube_config_read(names, &text, &ignored) == 0 &&
		kube_config_token(text.data, text.len, names, &config->name_space, &ignored) != 0)
		config->name_space = NULL;
	kube_blob_fini(&text);
	if (config->name_space == NULL)
		config->name_space = alloc_string("default");
	return 0;
}

int
kube_config_pod(
	const char *dir, const char *host, const char *port, struct kube_config **ret_config, struct err *err)
{
	struct kube_config *config;

	if (host == NULL || host[0] == '\0' || port == NULL || port[0] == '\0')
		return err_set(err, ERR_INVALID,
			"this is no pod of Kubernetes: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not "
			"set; elsewhere say in_cluster = off and name a kubeconfig");
	config = alloc_zero(1, sizeof *config);
	config->server = strchr(host, ':') != NULL ? alloc_format("https://[%s]:%s", host, port)
						   : alloc_format("https://%s:%s", host, port);
	if (pod_fill(config, dir, err) != 0) {
		kube_config_free(config);
		return -1;
	}
	*ret_config = config;
	return 0;
}

int
kube_config_load(const struct config *config, struct kube_config **ret_config, struct err *err)
{
	if (config->in_cluster)
		return kube_config_pod(POD_DIR, getenv("KUBERNETES_SERVICE_HOST"),
			getenv("KUBERNETES_SERVICE_PORT"), ret_config, err);
	if (config->kubeconfig[0] == '\0')
		return err_set(err, ERR_INVALID,
			"kubeconfig is empty; name the file that says where the API server of Kubernetes is, or "
			"say "
			"in_cluster = on in a pod");
	return kube_config_file(config->kubeconfig, config->kube_context, ret_config, err);
}
