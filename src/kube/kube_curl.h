/*
 * kube_curl.h - libcurl, for those who include this and not <curl/curl.h>: it is loaded by the process that makes a client.
 *
 * It brings two dozen libraries along. Linked, each process of each server would load and relocate them at its start, and
 * keep them, to speak with nobody.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_CURL_H
#define ORCHARD_KUBE_KUBE_CURL_H

#include "base/cleanup.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

struct err;

#define KUBE_CURL_FUNCTIONS(X)                                                                                     \
	X(global_init)                                                                                             \
	X(easy_init)                                                                                               \
	X(easy_setopt)                                                                                             \
	X(easy_getinfo)                                                                                            \
	X(easy_strerror)                                                                                           \
	X(easy_cleanup)                                                                                            \
	X(multi_init)                                                                                              \
	X(multi_setopt)                                                                                            \
	X(multi_add_handle)                                                                                        \
	X(multi_remove_handle)                                                                                     \
	X(multi_assign)                                                                                            \
	X(multi_socket_action)                                                                                     \
	X(multi_info_read)                                                                                         \
	X(multi_strerror)                                                                                          \
	X(multi_cleanup)                                                                                           \
	X(slist_append)                                                                                            \
	X(slist_free_all)

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

/* NULL before kube_curl_load(). */
struct kube_curl {
#define KUBE_CURL_MEMBER(name) __typeof__(curl_##name) *name;
	KUBE_CURL_FUNCTIONS(KUBE_CURL_MEMBER)
#undef KUBE_CURL_MEMBER
};
extern struct kube_curl kube_curl;

/* May be called often; what it loads stays. ERR_INTERNAL says which library is not there, and how to get it. */
int kube_curl_load(struct err *err) MUSTCHECK;
/* Whether it could be loaded here: tried by a child, so that nothing of it stays. Before there are threads. */
int kube_curl_check(struct err *err) MUSTCHECK;

#endif
