/* spec.c - options to members of a JSON body; what a value may be is the server's to say. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/commands/spec.h"
#include "base/alloc.h"
#include "base/quantity.h"
#include "base/text.h"
#include "orchardctl/args.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

void
spec_set_string(struct json_object *body, const char *member, const char *value)
{
	json_object_object_add(body, member, must_alloc(json_object_new_string(value)));
}

static int
set_string(struct args *args, struct json_object *body, const char *member)
{
	spec_set_string(body, member, args->value);
	return 1;
}

static int
set_true(struct json_object *body, const char *member, bool value)
{
	json_object_object_add(body, member, json_object_new_boolean(value));
	return 1;
}

static int
set_seconds(struct args *args, struct json_object *body, const char *what, const char *member)
{
	double seconds;

	if (!args_duration(args, what, &seconds))
		return -1;
	json_object_object_add(body, member, must_alloc(json_object_new_double(seconds)));
	return 1;
}

static int
set_cpu(struct args *args, struct json_object *body)
{
	int32_t milli;

	if (quantity_parse_cpu(args->value, &milli) == 0)
		return set_string(args, body, "cpu");
	args_fail(args, "--cpu takes cores such as 2, 0.5 or 500m, not \"%s\"", args->value);
	return -1;
}

static int
set_bytes(struct args *args, struct json_object *body, const char *what, const char *member)
{
	int64_t bytes;

	if (quantity_parse_memory(args->value, &bytes) == 0)
		return set_string(args, body, member);
	args_fail(args, "%s takes bytes such as 512Mi, 2Gi or 1G, not \"%s\"", what, args->value);
	return -1;
}

bool
spec_check_words(struct args *args, char *const *words, int count)
{
	for (int i = 0; i < count; i++) {
		if (text_is_utf8(words[i], strlen(words[i])))
			continue;
		args_fail(args, "word %d of the command is not UTF-8, in which commands travel", i + 1);
		return false;
	}
	return true;
}

int
spec_add_pair(struct args *args, const char *what, struct json_object *body, const char *member)
{
	const char *equals = strchr(args->value, '='), *value;
	AUTO_FREE char *name = NULL;
	struct json_object *map = print_member(body, member);

	value = equals != NULL ? equals + 1 : getenv(args->value);
	if (equals == args->value || args->value[0] == '\0') {
		args_fail(args, "%s takes NAME=VALUE, not \"%s\"", what, args->value);
		return -1;
	}
	if (value == NULL) {
		args_fail(args, "%s %s: there is no such variable here; give NAME=VALUE", what, args->value);
		return -1;
	}
	name = alloc_format("%.*s", (int)strcspn(args->value, "="), args->value);
	if (map == NULL) {
		map = must_alloc(json_object_new_object());
		json_object_object_add(body, member, map);
	}
	spec_set_string(map, name, value);
	return 1;
}

static int
add_egress(struct args *args, struct json_object *body)
{
	struct json_object *allow = print_array(body, "egress.allow");

	if (allow == NULL) {
		struct json_object *egress = must_alloc(json_object_new_object());

		allow = must_alloc(json_object_new_array());
		json_object_object_add(egress, "allow", allow);
		json_object_object_add(body, "egress", egress);
	}
	json_object_array_add(allow, must_alloc(json_object_new_string(args->value)));
	return set_true(body, "block_network", false);
}

int
spec_take_sandbox(struct args *args, int code, struct json_object *body)
{
	switch (code) {
	case OPT_ID:
		return set_string(args, body, "sandbox_id");
	case OPT_CPU:
		return set_cpu(args, body);
	case 'm':
		return set_bytes(args, body, "--memory", "memory");
	case OPT_DISK:
		if (strcmp(args->value, "0") == 0) /* no limit */
			return set_string(args, body, "disk");
		return set_bytes(args, body, "--disk", "disk");
	case OPT_NETWORK:
		return set_true(body, "block_network", false);
	case OPT_EGRESS:
		return add_egress(args, body);
	case 'l':
		if (strchr(args->value, '=') == NULL) {
			args_fail(args, "--label takes NAME=VALUE, not \"%s\"", args->value);
			return -1;
		}
		return spec_add_pair(args, "--label", body, "labels");
	case OPT_TTL:
		return set_seconds(args, body, "--ttl", "ttl_seconds");
	case OPT_IDLE:
		return set_seconds(args, body, "--idle-timeout", "idle_timeout_seconds");
	case OPT_READY_TIMEOUT:
		return set_seconds(args, body, "--ready-timeout", "timeout");
	default:
		return 0;
	}
}

int
spec_take_exec(struct args *args, int code, struct json_object *body)
{
	switch (code) {
	case 'e':
		return spec_add_pair(args, "--env", body, "env");
	case 'w':
		return set_string(args, body, "cwd");
	case 'u':
		return set_string(args, body, "user");
	case OPT_LANE:
		return set_string(args, body, "lane");
	case OPT_TIMEOUT:
		return set_seconds(args, body, "--timeout", "timeout_seconds");
	case OPT_LOGIN_SHELL:
		return set_true(body, "login_shell", true);
	default:
		return 0;
	}
}

void
spec_set_command(struct json_object *body, char *const *words, int count, int by_shell)
{
	struct json_object *list;

	if (by_shell) {
		char *line = alloc_string(words[0]);

		for (int i = 1; i < count; i++) {
			AUTO_FREE char *before = line;

			line = alloc_format("%s %s", before, words[i]);
		}
		spec_set_string(body, "command", line);
		free(line);
		return;
	}
	list = must_alloc(json_object_new_array());
	for (int i = 0; i < count; i++)
		json_object_array_add(list, must_alloc(json_object_new_string(words[i])));
	json_object_object_add(body, "command", list);
}
