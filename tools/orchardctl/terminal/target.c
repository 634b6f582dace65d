/* target.c - libcurl reads the URL, so that both see the same in it. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/target.h"

#include "base/alloc.h"
#include "base/err.h"
#include "orchardctl/command.h"

#include <curl/curl.h>
#include <string.h>

/* "" where the URL has no such part. */
static char *
part(CURLU *url, CURLUPart what, unsigned flags)
{
	char *text = NULL, *copy;

	if (curl_url_get(url, what, &text, flags) != CURLUE_OK)
		return alloc_string("");
	copy = alloc_string(text);
	curl_free(text);
	return copy;
}

static void
read_parts(struct target *target, CURLU *url)
{
	AUTO_FREE char *scheme = part(url, CURLUPART_SCHEME, 0), *host = part(url, CURLUPART_HOST, 0);
	AUTO_FREE char *port = part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
	AUTO_FREE char *given = part(url, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
	size_t len = strlen(host);

	target->tls = strcmp(scheme, "https") == 0;
	target->port = (int)strtol(port, NULL, 10);
	target->host = *given != '\0' ? alloc_format("%s:%s", host, given) : alloc_string(host);
	target->address = host[0] == '[' ? alloc_format("%.*s", (int)len - 2, host + 1) : alloc_string(host);
	target->prefix = part(url, CURLUPART_PATH, 0);
	len = strlen(target->prefix);
	while (len > 0 && target->prefix[len - 1] == '/')
		target->prefix[--len] = '\0';
}

int
target_init(struct target *target, const struct server *server, struct err *err)
{
	CURLU *url = must_alloc(curl_url());
	CURLUcode code = curl_url_set(url, CURLUPART_URL, server->url, CURLU_GUESS_SCHEME);

	*target = (struct target){ .key = server->key, .ca_file = server->ca_file };
	if (code == CURLUE_OK)
		read_parts(target, url);
	curl_url_cleanup(url);
	if (code != CURLUE_OK)
		return err_set(
			err, ERR_INVALID, "\"%s\" is no URL of a server: %s", server->url, curl_url_strerror(code));
	return 0;
}

void
target_fini(struct target *target)
{
	free(target->address);
	free(target->host);
	free(target->prefix);
	*target = (struct target){ .port = 0 };
}
