/* terminal_spec.c - a command as a terminal wants it. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/output/print.h"
#include "orchardctl/terminal/terminal.h"

#include <json-c/json_object.h>

/* What a program has to know of the terminal that it is at. */
static void
pass_variables(struct json_object *env)
{
	static const char *const names[] = { "TERM", "COLORTERM" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *value = getenv(names[i]);

		if (value != NULL && !json_object_object_get_ex(env, names[i], NULL))
			json_object_object_add(env, names[i], must_alloc(json_object_new_string(value)));
	}
}

static struct json_object *
add_member(struct json_object *body, const char *name, struct json_object *value)
{
	json_object_object_add(body, name, must_alloc(value));
	return value;
}

static const char *
string_of(struct json_object *body, const char *name)
{
	struct json_object *value = print_member(body, name);

	return value != NULL ? json_object_get_string(value) : NULL;
}

void
terminal_spec_read(struct terminal_spec *spec, struct json_object *body)
{
	struct json_object *command = print_member(body, "command");

	spec->env = print_member(body, "env");
	if (spec->env == NULL)
		spec->env = add_member(body, "env", json_object_new_object());
	pass_variables(spec->env);
	if (json_object_is_type(command, json_type_string)) {
		struct json_object *words = must_alloc(json_object_new_array());

		json_object_array_add(words, must_alloc(json_object_new_string("sh")));
		json_object_array_add(words, must_alloc(json_object_new_string("-c")));
		json_object_array_add(words, json_object_get(command));
		command = add_member(body, "command", words);
	}
	spec->cmd = command;
	spec->cwd = string_of(body, "cwd");
	spec->user = string_of(body, "user");
	spec->login_shell = json_object_get_boolean(print_member(body, "login_shell"));
}
