/* kube_config_impl.h - what a configuration says, for this directory. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_CONFIG_IMPL_H
#define ORCHARD_KUBE_KUBE_CONFIG_IMPL_H

#include "base/cleanup.h"
#include "kube/kube_config.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct json_object;

/* PEM text; data NULL: none. */
struct kube_blob {
	char *data;
	size_t len;
};
/* Overwrites: it may be a private key. */
void kube_blob_fini(struct kube_blob *blob);

/* A program that prints an ExecCredential. */
struct kube_plugin {
	char *command; /* a path when it has a slash, else a name in PATH */
	char **args; /* argv after the name, NULL-ended */
	char **env; /* "NAME=value" besides our own, NULL-ended */
	char *version; /* its apiVersion */
	char *hint; /* how to install it, or "" */
	char *info; /* KUBERNETES_EXEC_INFO for it */
};

struct kube_config {
	char *server, *name_space;
	char *tls_name; /* the name in its certificate; NULL: the one in server */
	char *proxy; /* NULL: none, whatever the environment says */
	bool insecure; /* any certificate will do */
	struct kube_blob ca; /* none: those of the system */
	struct kube_blob cert, key;
	char *token, *token_file; /* NULL: none; the file goes before the token */
	struct kube_plugin *plugin; /* NULL: none */
};

/* dir holds token, ca.crt and namespace; host and port as in the environment of a pod. */
int kube_config_pod(const char *dir, const char *host, const char *port, struct kube_config **ret_config,
	struct err *err) MUSTCHECK;
/* context "": the current one. */
int
kube_config_file(const char *path, const char *context, struct kube_config **ret_config, struct err *err) MUSTCHECK;

/* Fills config->plugin from a user's "exec"; dir is the kubeconfig's, cluster its entry. */
int kube_config_plugin(struct kube_config *config, struct json_object *exec, const char *dir,
	struct json_object *cluster, struct err *err) MUSTCHECK;

/* A whole small file; ERR_NOT_FOUND, ERR_DENIED... with its path. */
int kube_config_read(const char *path, struct kube_blob *ret_blob, struct err *err) MUSTCHECK;
/* The text without blanks around it, malloc'ed; ERR_INVALID when nothing is left or a control character is in it. */
int kube_config_token(const char *text, size_t len, const char *path, char **ret_token, struct err *err) MUSTCHECK;
/* A path as a file in dir means it; malloc'ed. */
char *kube_config_path(const char *dir, const char *path);

#endif
