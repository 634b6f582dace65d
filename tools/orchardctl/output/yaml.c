/* yaml.c - JSON values as YAML. Only strings that nothing could take for another type go without quotes. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/text.h"
#include "orchardctl/output/print.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <strings.h>
#include <yaml.h>

/* Letters, digits and a few more, beginning with a letter, and no word that means a truth value or null. */
static bool
is_plain(const char *text)
{
	static const char *const words[] = { "y", "n", "yes", "no", "on", "off", "true", "false", "null" };

	if (!isalpha((unsigned char)text[0]))
		return false;
	for (const char *p = text; *p != '\0'; p++)
		if (!isalnum((unsigned char)*p) && strchr("-_./ ", *p) == NULL)
			return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcasecmp(text, words[i]) == 0)
			return false;
	return text[strlen(text) - 1] != ' ';
}

static void
emit(yaml_emitter_t *emitter, yaml_event_t *event)
{
	/* It fails for want of memory, or of stdout, which is seen when it is closed. */
	yaml_emitter_emit(emitter, event);
}

static void
emit_scalar(yaml_emitter_t *emitter, const char *text, bool plain)
{
	AUTO_FREE char *valid = alloc_string(text);
	yaml_event_t event;

	text_utf8_mend(valid);
	yaml_scalar_event_initialize(&event, NULL, NULL, (yaml_char_t *)valid, (int)strlen(valid), plain, !plain,
		plain ? YAML_PLAIN_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE);
	emit(emitter, &event);
}

static void emit_value(yaml_emitter_t *emitter, struct json_object *value);

static void
emit_object(yaml_emitter_t *emitter, struct json_object *object)
{
	bool empty = json_object_object_length(object) == 0;
	yaml_event_t event;

	yaml_mapping_start_event_initialize(
		&event, NULL, NULL, 1, empty ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE);
	emit(emitter, &event);
	json_object_object_foreach(object, key, value)
	{
		emit_scalar(emitter, key, is_plain(key));
		emit_value(emitter, value);
	}
	yaml_mapping_end_event_initialize(&event);
	emit(emitter, &event);
}

static void
emit_array(yaml_emitter_t *emitter, struct json_object *array)
{
	size_t count = json_object_array_length(array);
	yaml_event_t event;

	yaml_sequence_start_event_initialize(
		&event, NULL, NULL, 1, count == 0 ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE);
	emit(emitter, &event);
	for (size_t i = 0; i < count; i++)
		emit_value(emitter, json_object_array_get_idx(array, i));
	yaml_sequence_end_event_initialize(&event);
	emit(emitter, &event);
}

/* As deep as the parser of answers lets them be: 64. */
static void
emit_value(yaml_emitter_t *emitter, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_object:
		emit_object(emitter, value);
		break;
	case json_type_array:
		emit_array(emitter, value);
		break;
	case json_type_string:
		emit_scalar(emitter, json_object_get_string(value), is_plain(json_object_get_string(value)));
		break;
	case json_type_null:
		emit_scalar(emitter, "null", true);
		break;
	default:
		emit_scalar(emitter, json_object_get_string(value), true);
		break;
	}
}

void
print_yaml(struct json_object *value)
{
	yaml_emitter_t emitter;
	yaml_event_t event;

	if (!yaml_emitter_initialize(&emitter))
		abort();
	yaml_emitter_set_output_file(&emitter, stdout);
	yaml_emitter_set_unicode(&emitter, 1);
	yaml_emitter_set_width(&emitter, -1);
	yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
	emit(&emitter, &event);
	yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1);
	emit(&emitter, &event);
	emit_value(&emitter, value);
	yaml_document_end_event_initialize(&event, 1);
	emit(&emitter, &event);
	yaml_stream_end_event_initialize(&event);
	emit(&emitter, &event);
	yaml_emitter_delete(&emitter);
}
