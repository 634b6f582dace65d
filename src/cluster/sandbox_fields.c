/* sandbox_fields.c - a table of what stands under which name, and the few things that need words of their own. */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_fields.h"
#include "base/err.h"
#include "base/text.h"
#include "cluster/shared_clock.h"
#include "redis/answer.h"
#include "redis/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form { TEXT, NUMBER, SMALL_NUMBER, YES_NO, AGE };

struct field {
	const char *name;
	enum sandbox_fields kind;
	enum form form;
	bool needed;
	size_t offset, size;
};

#define PLACE(member) offsetof(struct sandbox_record, member), sizeof((struct sandbox_record *)NULL)->member

/* clang-format off */
static const struct field fields[] = {
	{ "id", SANDBOX_FIELDS_HOME, TEXT, true, PLACE(id) },
	{ "uid", SANDBOX_FIELDS_HOME, TEXT, true, PLACE(uid) },
	{ "tenant", SANDBOX_FIELDS_HOME, TEXT, true, PLACE(tenant) },
	{ "image", SANDBOX_FIELDS_HOME, TEXT, true, PLACE(image) },
	{ "digest", SANDBOX_FIELDS_HOME, TEXT, false, PLACE(spec_digest) },
	{ "token", SANDBOX_FIELDS_HOME, TEXT, true, PLACE(agent_token) },
	{ "endpoint", SANDBOX_FIELDS_HOME, TEXT, false, PLACE(endpoint) },
	{ "working_dir", SANDBOX_FIELDS_HOME, TEXT, false, PLACE(working_dir) },
	{ "message", SANDBOX_FIELDS_HOME, TEXT, false, PLACE(message) },
	{ "ready", SANDBOX_FIELDS_HOME, YES_NO, false, PLACE(ready) },
	{ "block_network", SANDBOX_FIELDS_HOME, YES_NO, true, PLACE(block_network) },
	{ "cpu_milli", SANDBOX_FIELDS_HOME, SMALL_NUMBER, false, PLACE(cpu_milli) },
	{ "memory_bytes", SANDBOX_FIELDS_HOME, NUMBER, false, PLACE(memory_bytes) },
	{ "disk_bytes", SANDBOX_FIELDS_HOME, NUMBER, false, PLACE(disk_bytes) },
	{ "create_timeout_s", SANDBOX_FIELDS_HOME, NUMBER, false, PLACE(create_timeout_s) },
	{ "created_ms", SANDBOX_FIELDS_HOME, AGE, true, PLACE(created_ms) },
	{ "ready_ms", SANDBOX_FIELDS_HOME, AGE, false, PLACE(ready_ms) },
	{ "status_ms", SANDBOX_FIELDS_HOME, AGE, false, PLACE(status_ms) },
	{ "labels", SANDBOX_FIELDS_PATCH, TEXT, false, PLACE(labels) },
	{ "ttl_ms", SANDBOX_FIELDS_PATCH, NUMBER, false, PLACE(ttl_ms) },
	{ "ttl_from_ms", SANDBOX_FIELDS_PATCH, AGE, false, PLACE(ttl_from_ms) },
	{ "idle_timeout_ms", SANDBOX_FIELDS_PATCH, NUMBER, false, PLACE(idle_timeout_ms) },
	{ "heartbeat_ms", SANDBOX_FIELDS_SIGNS, AGE, false, PLACE(heartbeat_ms) },
	{ "activity_ms", SANDBOX_FIELDS_SIGNS, AGE, false, PLACE(activity_ms) },
};
/* clang-format on */

enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static const void *
at(const struct sandbox_record *record, const struct field *field)
{
	return (const char *)record + field->offset;
}

/* --- to Redis --- */

static int64_t
number_of(const struct sandbox_record *record, const struct field *field, const struct shared_clock *shared)
{
	const void *value = at(record, field);

	switch (field->form) {
	case SMALL_NUMBER:
		return *(const int32_t *)value;
	case YES_NO:
		return *(const bool *)value;
	case AGE:
		return shared_clock_to_redis(shared, *(const int64_t *)value);
	case NUMBER:
	case TEXT:
		break;
	}
	return *(const int64_t *)value;
}

/* "any", or the places it may connect to, each followed by a space. */
static void
put_egress(struct redis_args *args, const struct egress *egress)
{
	char text[EGRESS_MAX * IP_DEST_TEXT_SIZE + 1] = "any", range[IP_DEST_TEXT_SIZE];
	size_t len = 0;

	if (egress->limited)
		text[0] = '\0';
	for (uint32_t i = 0; egress->limited && i < egress->count; i++) {
		ip_dest_text(&egress->allow[i], range);
		len += (size_t)snprintf(text + len, sizeof text - len, "%s ", range);
	}
	redis_args_text(args, "egress");
	redis_args_format(args, "%s", text);
}

static void
put_home_words(struct redis_args *args, const struct sandbox_record *record)
{
	redis_args_text(args, "status");
	redis_args_text(args, sandbox_status_name((enum sandbox_status)record->status));
	redis_args_text(args, "created_at");
	redis_args_format(args, "%.6f", record->created_at);
	put_egress(args, &record->egress);
}

void
sandbox_fields_put(struct redis_args *args, enum sandbox_fields kind, const struct sandbox_record *record,
	const struct shared_clock *shared)
{
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		const struct field *field = &fields[i];

		if (field->kind != kind)
			continue;
		redis_args_text(args, field->name);
		if (field->form == TEXT)
			redis_args_text(args, at(record, field));
		else
			redis_args_number(args, number_of(record, field, shared));
	}
	if (kind == SANDBOX_FIELDS_HOME)
		put_home_words(args, record);
}

void
sandbox_fields_put_host(struct redis_args *args, const char *home, const char *host)
{
	redis_args_text(args, "home");
	redis_args_text(args, home);
	redis_args_text(args, "host");
	redis_args_text(args, host);
}

/* FNV-1a: equal records have equal digests, and nobody chooses what is in one to make two look the same. */
static uint64_t
mix(uint64_t digest, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		digest = (digest ^ bytes[i]) * 0x100000001b3;
	return digest;
}

uint64_t
sandbox_fields_digest(const struct sandbox_record *record)
{
	uint64_t digest = 0xcbf29ce484222325;

	for (size_t i = 0; i < FIELD_COUNT; i++) {
		const struct field *field = &fields[i];

		if (field->kind != SANDBOX_FIELDS_HOME)
			continue;
		digest = mix(digest, at(record, field),
			field->form == TEXT ? strlen(at(record, field)) + 1 : field->size);
	}
	digest = mix(digest, &record->status, sizeof record->status);
	return digest != 0 ? digest : 1;
}

/* --- from Redis --- */

static int
misread(struct err *err, const char *name)
{
	return err_set(err, ERR_INVALID,
		"its field \"%s\" is missing, or says what this server does not understand", name);
}

static int
read_number(const struct redis_answer *value, const struct field *field, const struct shared_clock *shared,
	void *ret, struct err *err)
{
	int64_t number;

	if (!redis_answer_number(value, &number))
		return misread(err, field->name);
	if (field->form == AGE)
		*(int64_t *)ret = shared_clock_to_boot(shared, number);
	else if (field->form == YES_NO)
		*(bool *)ret = number != 0;
	else if (field->form == NUMBER)
		*(int64_t *)ret = number;
	else if (number == (int32_t)number)
		*(int32_t *)ret = (int32_t)number;
	else
		return misread(err, field->name);
	return 0;
}

static int
read_field(const struct redis_answer *list, const struct field *field, const struct shared_clock *shared,
	struct sandbox_record *record, struct err *err)
{
	const struct redis_answer *value = redis_answer_field(list, field->name);
	char *ret = (char *)record + field->offset;

	if (value->kind == REDIS_NIL)
		return field->needed ? misread(err, field->name) : 0;
	if (field->form != TEXT)
		return read_number(value, field, shared, ret, err);
	if (value->kind != REDIS_STRING || memchr(value->text, '\0', value->size) != NULL ||
		!text_copy(ret, field->size, value->text))
		return misread(err, field->name);
	return 0;
}

static int
read_text(const struct redis_answer *list, const char *name, char *ret_text, size_t size, struct err *err)
{
	const struct redis_answer *value = redis_answer_field(list, name);

	if (value->kind != REDIS_STRING || !text_copy(ret_text, size, value->text))
		return misread(err, name);
	return 0;
}

static int
read_egress(const struct redis_answer *list, struct egress *ret_egress, struct err *err)
{
	const struct redis_answer *value = redis_answer_field(list, "egress");
	char text[EGRESS_MAX * IP_DEST_TEXT_SIZE + 1], *rest = text, *range;

	if (value->kind == REDIS_NIL || redis_answer_is(value, "any"))
		return 0;
	if (read_text(list, "egress", text, sizeof text, err) != 0)
		return -1;
	ret_egress->limited = true;
	while ((range = strtok_r(rest, " ", &rest)) != NULL) {
		if (ret_egress->count == EGRESS_MAX ||
			ip_dest_parse(range, &ret_egress->allow[ret_egress->count++], err) != 0)
			return misread(err, "egress");
	}
	return 0;
}

static int
read_status(const struct redis_answer *list, uint32_t *ret_status, struct err *err)
{
	const struct redis_answer *value = redis_answer_field(list, "status");

	for (int status = 0; status < SANDBOX_DOUBTFUL; status++) {
		if (!redis_answer_is(value, sandbox_status_name((enum sandbox_status)status)))
			continue;
		*ret_status = (uint32_t)status;
		return 0;
	}
	return misread(err, "status");
}

static int
read_words(const struct redis_answer *list, struct shared_sandbox *sandbox, struct err *err)
{
	struct sandbox_record *record = &sandbox->record;
	char created_at[32];
	int64_t version;

	if (read_text(list, "home", record->home, sizeof record->home, err) != 0 ||
		read_text(list, "host", sandbox->host, sizeof sandbox->host, err) != 0 ||
		read_text(list, "created_at", created_at, sizeof created_at, err) != 0 ||
		read_status(list, &record->status, err) != 0 || read_egress(list, &record->egress, err) != 0)
		return -1;
	record->created_at = strtod(created_at, NULL);
	if (redis_answer_field(list, "rule")->kind != REDIS_NIL &&
		read_text(list, "rule", record->reap_rule, sizeof record->reap_rule, err) != 0)
		return -1;
	if (!redis_answer_number(redis_answer_field(list, "version"), &version) || version <= 0)
		return misread(err, "version");
	record->version = (uint64_t)version;
	return 0;
}

int
sandbox_fields_read(const struct redis_answer *list, const struct shared_clock *shared,
	struct shared_sandbox *ret_sandbox, struct err *err)
{
	struct sandbox_record *record = &ret_sandbox->record;

	*ret_sandbox = (struct shared_sandbox){ .record = { .ttl_ms = SANDBOX_TIME_DEFAULT,
							.idle_timeout_ms = SANDBOX_TIME_DEFAULT } };
	for (size_t i = 0; i < FIELD_COUNT; i++)
		if (read_field(list, &fields[i], shared, record, err) != 0)
			return -1;
	return read_words(list, ret_sandbox, err);
}
