/*
 * fuzz_uri.c - any target of a request: what its path and its query mean.
 *
 * The input is PATH?QUERY. An id stays inside its segment, so it can't hold what ends one undecoded.
 */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "http/http_parser.h"
#include "worker/router.h"

static const struct route table[] = {
	{ HTTP_GET, "/", NULL, ROUTE_OPEN, BODY_NONE },
	{ HTTP_GET, "/sandboxes", NULL, ROUTE_KEY, BODY_NONE },
	{ HTTP_DELETE, "/sandboxes/{sandbox}", NULL, ROUTE_KEY, BODY_NONE },
	{ HTTP_POST, "/sandboxes/{sandbox}/exec", NULL, ROUTE_KEY, BODY_OBJECT },
	{ HTTP_PUT, "/sandboxes/{sandbox}/files/raw", NULL, ROUTE_KEY, BODY_NONE },
	{ HTTP_GET, "/jobs/{job}/output", NULL, ROUTE_KEY, BODY_NONE },
};

static void
check_route(const char *path)
{
	struct router_match match;
	char allow[ROUTER_ALLOW_SIZE];

	for (enum http_method method = HTTP_GET; method <= HTTP_OTHER; method++) {
		enum router_result result = router_find(
			table, sizeof table / sizeof table[0], method, path, &match);

		if (result == ROUTER_NO_PATH)
			continue;
		FUZZ_CHECK(memchr(match.id, '\0', sizeof match.id) != NULL);
		router_allow(match.methods, allow);
		FUZZ_CHECK(strstr(allow, "OPTIONS") != NULL);
		/* A valid id is plain text: nothing of it could mean another path. */
		if (match.id_kind != ROUTER_ID_NONE && router_id_is_valid(&match))
			FUZZ_CHECK(strcspn(match.id, "/%?.") == strlen(match.id));
	}
}

static void
check_query(const char *query)
{
	static const char *const names[] = { "path", "a", "", "offset" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		AUTO_FREE char *value = NULL;
		int rc = http_query_get(query, names[i], &value);

		FUZZ_CHECK(rc >= -1 && rc <= 1 && (rc == 1) == (value != NULL));
		if (rc == 1)
			FUZZ_CHECK(strlen(value) <= strlen(query));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_FREE char *text = fuzz_string(data, len);
	AUTO_FREE char *decoded = NULL;
	char *query = strchr(text, '?');

	if (http_percent_decode((const char *)data, len, &decoded) == 0)
		FUZZ_CHECK(strlen(decoded) <= len);
	if (query != NULL)
		*query++ = '\0';
	check_route(text);
	if (query != NULL)
		check_query(query);
	return 0;
}
