/* kube_credential.h - the ExecCredential that a plugin prints. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_CREDENTIAL_H
#define ORCHARD_KUBE_KUBE_CREDENTIAL_H

#include "kube/kube_config_impl.h"

#include <stdint.h>

struct kube_credential {
	char *token; /* NULL: none */
	struct kube_blob cert, key;
	double expires; /* Unix seconds; 0: it does not say */
};

/* ERR_INVALID; text is overwritten nowhere and kept nowhere else. */
int kube_credential_parse(const char *text, size_t len, const char *version, struct kube_credential *ret_credential,
	struct err *err) MUSTCHECK;
void kube_credential_fini(struct kube_credential *credential);
/* How long it holds; INT64_MAX: it does not say, <= 0: not any more. */
int64_t kube_credential_left_ms(const struct kube_credential *credential);
/* RFC 3339; -1: that is no time. */
int kube_credential_time(const char *text, double *ret_seconds) MUSTCHECK;

#endif
