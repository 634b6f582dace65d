/* client_impl.h - what client.c and transfer.c share. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_CLIENT_CLIENT_IMPL_H
#define ORCHARDCTL_CLIENT_CLIENT_IMPL_H

#include "orchardctl/client/client.h"

#include <curl/curl.h>

struct client {
	CURLM *multi;
	char *url; /* owned */
	char *key_header; /* owned, secret; NULL: none */
	char *ca_file; /* owned; NULL: the system's */
	double retry_seconds;
	bool quiet;
	struct signals *signals; /* borrowed; NULL: none */
};

struct transfer {
	struct client *client;
	const struct request *request;
	struct answer *answer;
	CURL *easy;
	struct curl_slist *headers;
	char *body_text; /* owned: JSON that is sent */
	size_t head_len;
	bool done, too_large, stopped;
	CURLcode code; /* when done */
	char words[CURL_ERROR_SIZE];
};

#endif
