/* cmd_config.c - config: servers by name. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/contexts.h"
#include "orchardctl/nearest.h"
#include "orchardctl/output/print.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>

enum { KEY_MAX = 4096 };

struct config_call {
	struct ctl *ctl;
	struct args *args;
	struct contexts *contexts;
	const char *name; /* NULL: none was given */
	const char *key_file, *ca_file;
	bool raw;
};

static const struct column columns[] = {
	{ "CURRENT", "current", COLUMN_TEXT, false },
	{ "NAME", "name", COLUMN_TEXT, false },
	{ "SERVER", "server", COLUMN_TEXT, false },
	{ "KEY", "has_key", COLUMN_BOOL, false },
	{ NULL, NULL, COLUMN_TEXT, false },
};

static struct json_object *
new_string(const char *text)
{
	return must_alloc(json_object_new_string(text));
}

static int
get_contexts(const struct config_call *call)
{
	AUTO_JSON struct json_object *list = must_alloc(json_object_new_array());
	const char *current = contexts_current(call->contexts);

	json_object_object_foreach(contexts_all(call->contexts), name, context)
	{
		struct json_object *item = must_alloc(json_object_new_object());
		bool is_current = current != NULL && strcmp(name, current) == 0;

		json_object_object_add(item, "current", is_current ? new_string("*") : new_string(""));
		json_object_object_add(item, "name", new_string(name));
		json_object_object_add(item, "server", json_object_get(print_member(context, "server")));
		json_object_object_add(
			item, "has_key", json_object_new_boolean(print_member(context, "api_key") != NULL));
		json_object_array_add(list, item);
	}
	print_list(call->ctl, list, columns, "name", "there are none; 'orchardctl config set-context' makes one");
	return CTL_OK;
}

static int
save(const struct config_call *call)
{
	struct err err;

	return contexts_save(call->contexts, &err) < 0 ? ctl_fail(call->ctl, &err) : CTL_OK;
}

static int
no_context(const struct config_call *call)
{
	return args_fail(
		call->args, "there is no context \"%s\"; 'orchardctl config get-contexts' lists them", call->name);
}

static int
use_context(const struct config_call *call)
{
	if (contexts_find(call->contexts, call->name) == NULL)
		return no_context(call);
	json_object_object_add(call->contexts->file, "current_context", new_string(call->name));
	return save(call);
}

static int
delete_context(const struct config_call *call)
{
	const char *current = contexts_current(call->contexts);

	if (contexts_find(call->contexts, call->name) == NULL)
		return no_context(call);
	if (current != NULL && strcmp(current, call->name) == 0)
		json_object_object_del(call->contexts->file, "current_context");
	json_object_object_del(contexts_all(call->contexts), call->name);
	return save(call);
}

/* The first line of a file, or of stdin. NULL after it has said why. */
static char *
read_key(const struct config_call *call)
{
	bool from_stdin = strcmp(call->key_file, "-") == 0;
	AUTO_SECRET char *text = NULL;
	struct err err;
	size_t len;

	if (file_read_at(AT_FDCWD, from_stdin ? "/dev/stdin" : call->key_file, KEY_MAX, &text, &len, &err) < 0) {
		ctl_error("%s", err.msg);
		return NULL;
	}
	text[strcspn(text, "\r\n")] = '\0';
	return STEAL_PTR(text);
}

/* Empty: takes the member away. */
static void
set_member(struct json_object *context, const char *key, const char *value)
{
	if (value != NULL && value[0] != '\0')
		json_object_object_add(context, key, new_string(value));
	else if (value != NULL)
		json_object_object_del(context, key);
}

static int
set_context(const struct config_call *call)
{
	struct json_object *context = contexts_find(call->contexts, call->name);
	AUTO_SECRET char *key = NULL;
	struct err err;

	if (call->ctl->server_flag == NULL && context == NULL)
		return args_fail(call->args, "a new context needs --server");
	if (call->ctl->server_flag != NULL && contexts_check_url(call->ctl->server_flag, &err) < 0)
		return args_fail(call->args, "%s", err.msg);
	if (call->key_file != NULL)
		key = read_key(call);
	else if (call->ctl->key_flag != NULL)
		key = alloc_string(call->ctl->key_flag);
	if (call->key_file != NULL && key == NULL)
		return CTL_FAILED;
	if (context == NULL) {
		context = must_alloc(json_object_new_object());
		json_object_object_add(contexts_all(call->contexts), call->name, context);
	}
	set_member(context, "server", call->ctl->server_flag);
	set_member(context, "api_key", key);
	set_member(context, "ca_file", call->ca_file);
	if (contexts_current(call->contexts) == NULL)
		json_object_object_add(call->contexts->file, "current_context", new_string(call->name));
	return save(call);
}

static int
current_context(const struct config_call *call)
{
	const char *current = contexts_current(call->contexts);

	if (current == NULL) {
		ctl_error("no context is in use; 'orchardctl config use-context' chooses one");
		return CTL_FAILED;
	}
	puts(current);
	return CTL_OK;
}

static int
view(const struct config_call *call)
{
	if (!call->raw) {
		json_object_object_foreach(contexts_all(call->contexts), name, context)
		{
			(void)name;
			if (print_member(context, "api_key") != NULL)
				json_object_object_add(context, "api_key", new_string("(hidden; --raw shows it)"));
		}
	}
	if (call->contexts->path != NULL)
		ctl_note(call->ctl, "%s:", call->contexts->path);
	if (call->ctl->output == OUTPUT_YAML)
		print_yaml(call->contexts->file);
	else
		print_json(call->contexts->file);
	return CTL_OK;
}

static const struct verb {
	const char *name;
	int (*run)(const struct config_call *call);
	bool needs_name;
} verbs[] = {
	{ "get-contexts", get_contexts, false },
	{ "current-context", current_context, false },
	{ "use-context", use_context, true },
	{ "set-context", set_context, true },
	{ "delete-context", delete_context, true },
	{ "view", view, false },
};

static const struct verb *
find_verb(struct args *args, const char *name)
{
	struct nearest nearest;

	if (name == NULL) {
		args_fail(args,
			"what? One of get-contexts, current-context, use-context, set-context, delete-context, "
			"view");
		return NULL;
	}
	nearest_init(&nearest, name);
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
		nearest_try(&nearest, verbs[i].name);
	}
	args_fail(args, "there is no \"%s\"; %s%s", name, nearest.word != NULL ? "do you mean " : "see its help",
		nearest.word != NULL ? nearest.word : "");
	return NULL;
}

static int
read_words(struct config_call *call, const char **ret_verb)
{
	for (;;) {
		switch (args_next(call->args)) {
		case ARG_END:
			return 0;
		case OPT_RAW:
			call->raw = true;
			break;
		case OPT_API_KEY_FILE:
			call->key_file = call->args->value;
			break;
		case OPT_CA_FILE:
			call->ca_file = call->args->value;
			break;
		case ARG_WORD:
			if (*ret_verb == NULL) {
				*ret_verb = call->args->value;
			} else if (call->name == NULL) {
				call->name = call->args->value;
			} else {
				args_fail(call->args, "what is \"%s\"?", call->args->value);
				return -1;
			}
			break;
		default:
			return -1;
		}
	}
}

int
cmd_config(struct ctl *ctl, int argc, char **argv)
{
	AUTO_CONTEXTS contexts = { 0 };
	struct args args;
	struct config_call call = { .ctl = ctl, .args = &args, .contexts = &contexts };
	const struct verb *verb;
	const char *name = NULL;
	struct err err;

	args_init(&args, ctl, argc, argv);
	if (read_words(&call, &name) < 0)
		return args.status;
	verb = find_verb(&args, name);
	if (verb == NULL)
		return args.status;
	if (verb->needs_name != (call.name != NULL))
		return args_fail(&args, verb->needs_name ? "%s needs the name of a context" : "%s takes no name",
			verb->name);
	if (contexts_load(&contexts, &err) < 0)
		return ctl_fail(ctl, &err);
	return verb->run(&call);
}
