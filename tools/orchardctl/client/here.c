/* here.c - whether a server is this host, as its URL says it. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/client/here.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

static bool
is_loopback(const char *host)
{
	size_t len = strlen(host);
	char bare[INET6_ADDRSTRLEN];
	struct in_addr four;
	struct in6_addr six;

	if (inet_pton(AF_INET, host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
	if (len < 2 || len - 2 >= sizeof bare || host[0] != '[' || host[len - 1] != ']')
		return false;
	memcpy(bare, host + 1, len - 2);
	bare[len - 2] = '\0';
	return inet_pton(AF_INET6, bare, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool
is_localhost(const char *host)
{
	static const char name[] = "localhost";
	size_t len = strlen(host), name_len = sizeof name - 1;

	if (len < name_len || strcasecmp(host + len - name_len, name) != 0)
		return false;
	return len == name_len || host[len - name_len - 1] == '.';
}

bool
url_is_here(const char *url)
{
	CURLU *parts = must_alloc(curl_url());
	char *host = NULL;
	bool here = false;

	if (curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
		curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK)
		here = is_loopback(host) || is_localhost(host);
	curl_free(host);
	curl_url_cleanup(parts);
	return here;
}
