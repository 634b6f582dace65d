/* pull_words.c - the messages of skopeo and of registries, and ours for them. */
/* SPDX-License-Identifier: MIT */
#include "image/pull_words.h"

#include "base/err.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { MESSAGE_MAX = 2048, DETAIL_MAX = 160 };

/* The first that is found counts. */
static const struct {
	const char *part;
	enum err_code code;
	const char *words;
} meanings[] = {
	{ "no space left on device", ERR_NO_SPACE, "the disk is full" },
	{ "disk quota exceeded", ERR_NO_SPACE, "the disk is full" },
	{ "file too large", ERR_INVALID, "the registry sends more than it has announced" },
	{ "did not match", ERR_INVALID, "the registry has sent something corrupt; push the image again" },
	{ "HTTP response to HTTPS client", ERR_UNSUPPORTED,
		"the registry speaks plain HTTP: declare it insecure in /etc/containers/registries.conf" },
	{ "x509:", ERR_UNSUPPORTED,
		"the registry's certificate is not trusted: put its authority below /etc/containers/certs.d" },
	{ "toomanyrequests", ERR_UNAVAILABLE,
		"the registry limits how often may be pulled: log in, or use a mirror" },
	{ "too many requests", ERR_UNAVAILABLE,
		"the registry limits how often may be pulled: log in, or use a mirror" },
	{ "unauthorized", ERR_DENIED,
		"the registry refuses: wrong or no credentials (see image_auth_file), or no such image" },
	{ "authentication required", ERR_DENIED,
		"the registry refuses: wrong or no credentials (see image_auth_file), or no such image" },
	{ "invalid username/password", ERR_DENIED, "the registry refuses the credentials of image_auth_file" },
	{ "denied", ERR_DENIED,
		"the registry refuses: wrong or no credentials (see image_auth_file), or no such image" },
	{ "forbidden", ERR_DENIED,
		"the registry refuses: wrong or no credentials (see image_auth_file), or no such image" },
	{ "error fetching blob", ERR_INVALID, "the registry lacks a part of the image; push it again" },
	{ "manifest unknown", ERR_NOT_FOUND, "the registry has no such image or tag" },
	{ "name unknown", ERR_NOT_FOUND, "the registry has no such image" },
	{ "404 (not found)", ERR_NOT_FOUND, "the registry has no such image or tag" },
	{ "rejected by policy", ERR_DENIED, "/etc/containers/policy.json does not allow this image" },
	{ "no such host", ERR_UNAVAILABLE, "there is no registry of that name" },
	{ "connection refused", ERR_UNAVAILABLE, "the registry can't be reached" },
	{ "connection reset", ERR_UNAVAILABLE, "the registry can't be reached" },
	{ "network is unreachable", ERR_UNAVAILABLE, "the registry can't be reached" },
	{ "no route to host", ERR_UNAVAILABLE, "the registry can't be reached" },
	{ "timeout", ERR_UNAVAILABLE, "the registry does not answer" },
	{ "deadline exceeded", ERR_UNAVAILABLE, "the registry does not answer" },
	{ "server misbehaving", ERR_UNAVAILABLE, "the name of the registry can't be looked up" },
	{ "temporary failure", ERR_UNAVAILABLE, "the name of the registry can't be looked up" },
	{ "received unexpected http status: 5", ERR_UNAVAILABLE, "the registry has trouble" },
	{ "status code from registry 5", ERR_UNAVAILABLE, "the registry has trouble" },
	{ "server error", ERR_UNAVAILABLE, "the registry has trouble" },
	{ "eof", ERR_UNAVAILABLE, "the registry has broken off" },
};

/* The last msg="..." of its log, unquoted. */
static void
find_message(const char *said, char *text, size_t size)
{
	static const char head[] = "msg=\"";
	const char *next;
	size_t len = 0;

	while ((next = strstr(said, head)) != NULL)
		said = next + sizeof head - 1;
	for (; *said != '\0' && *said != '"' && *said != '\n' && len + 1 < size; said++) {
		if (*said == '\\' && said[1] != '\0')
			said++;
		text[len++] = *said >= ' ' && *said <= '~' ? *said : ' ';
	}
	text[len] = '\0';
}

/* From start to behind end, if both are there. */
static void
cut(char *text, const char *start, const char *end)
{
	char *from = strstr(text, start), *to = from != NULL ? strstr(from + strlen(start), end) : NULL;

	if (to != NULL)
		memmove(from, to + strlen(end), strlen(to + strlen(end)) + 1);
}

/* Takes out what the image is called: a name may read like a failure. */
static void
forget_names(char *text)
{
	cut(text, "Error parsing image name \"", "\": ");
	cut(text, "initializing source docker://", ": ");
	cut(text, "reading manifest ", ": ");
	for (int urls = 0; urls < 4; urls++)
		cut(text, " \"http", "\"");
}

int
pull_words(const char *said, struct err *err)
{
	char text[MESSAGE_MAX];
	const char *detail = text;

	find_message(said, text, sizeof text);
	forget_names(text);
	if (strlen(text) > DETAIL_MAX)
		detail = text + strlen(text) - DETAIL_MAX;
	for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
		if (strcasestr(text, meanings[i].part) != NULL)
			return err_set(err, meanings[i].code, "%s (%s)", meanings[i].words, detail);
	}
	return err_set(err, ERR_INVALID, "skopeo could not fetch it: %s", detail);
}
