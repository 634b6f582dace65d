/*
 * kube_config.h - where the API server of Kubernetes is, and who we are there.
 *
 * In a pod by the service account (its token is read again when the file changes), elsewhere by a kubeconfig file:
 * contexts, client certificates, tokens, files with tokens, programs that print credentials
 * (client.authentication.k8s.io/v1 and v1beta1), proxies. What it cannot do is refused in words and never ignored:
 * user names with passwords, auth-provider, impersonation.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_CONFIG_H
#define ORCHARD_KUBE_KUBE_CONFIG_H

#include "base/cleanup.h"

struct config;
struct err;
struct kube_config;

/*
 * By in_cluster, kubeconfig and kube_context of the settings. ERR_INVALID names the file and what is wrong with it,
 * ERR_NOT_FOUND and ERR_DENIED a file that cannot be read. Reads files only: nothing is run and nobody is asked.
 */
int kube_config_load(const struct config *config, struct kube_config **ret_config, struct err *err) MUSTCHECK;
/* NULL is fine. After the clients that use it. */
void kube_config_free(struct kube_config *config);

/* "https://10.0.0.1:443", without a slash at the end. */
const char *kube_config_server(const struct kube_config *config);
/* The namespace of the pod that we run in, or the context's; "default" when there is none. */
const char *kube_config_namespace(const struct kube_config *config);

#endif
