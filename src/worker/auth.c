/* auth.c - finds the key in the headers and compares it with all that are configured. */
/* SPDX-License-Identifier: MIT */
#include "worker/auth.h"

#include "base/id.h"
#include "conf/config.h"

#include <string.h>
#include <strings.h>

/* Every key belongs to the one tenant that there is; a tenant per key would begin here. */
static const char *
tenant_of_key(size_t key_index)
{
	(void)key_index;
	return "default";
}

const char *
auth_open_tenant(void)
{
	return "default";
}

static const char *
bearer_token(const char *authorization)
{
	static const char scheme[] = "Bearer ";

	if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
		return NULL;
	authorization += sizeof scheme - 1;
	return authorization + strspn(authorization, " ");
}

enum auth_result
auth_check(
	const struct config_list *keys, const char *x_api_key, const char *authorization, const char **ret_tenant)
{
	const char *key = x_api_key != NULL && *x_api_key != '\0' ? x_api_key : bearer_token(authorization);
	size_t len, found = keys->count;

	if (key == NULL || *key == '\0')
		return AUTH_MISSING;
	len = strlen(key);
	for (size_t i = 0; i < keys->count; i++) {
		const char *item = keys->items[i];

		/* No early exit, and an empty configured key opens nothing. */
		if (id_secret_equal(item, strlen(item), key, len) && *item != '\0')
			found = i;
	}
	if (found == keys->count)
		return AUTH_WRONG;
	*ret_tenant = tenant_of_key(found);
	return AUTH_OK;
}
