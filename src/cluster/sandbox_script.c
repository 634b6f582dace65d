/*
 * sandbox_script.c - the texts, and the words they are called with.
 *
 * A version is Redis' time in microseconds, or one more than the last, which whoever writes knows, too: so it grows also over a
 * flush and a fail-over to an older copy, whatever its clock says, and a later life of an id has higher ones than an
 * earlier. Only a deletion asks for no version: its home takes it with any.
 *
 * A deletion leaves two marks that outlive the record: of the uid, so that nothing of that life is written any more, and
 * of tenant and id, for whoever still asks. The record itself goes when its home has removed what it stands for.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_script.h"
#include "cluster/sandbox_fields.h"
#include "cluster/shared_clock.h"
#include "ipc/sandbox_table.h"
#include "redis/args.h"

#include <inttypes.h>

/* clang-format off */

/* Numbers beyond 14 digits are written out, since Lua rounds them in texts. */
#define PRELUDE \
	"local time = redis.call('TIME')\n" \
	"local now = time[1] * 1000 + math.floor(time[2] / 1000)\n" \
	"local function whole(number) return string.format('%.0f', number) end\n" \
	"local function after(version)\n" \
	"  return math.max((tonumber(version) or 0) + 1, time[1] * 1000000 + time[2])\n" \
	"end\n"

/* what: made, told, changed, deleted, finished. */
#define CHANGED \
	"local function changed(stream, what, version, id, uid, by, keep)\n" \
	"  redis.call('XADD', stream, 'MAXLEN', '~', keep, '*', 'kind', 'sandbox', 'what', what, 'id', id, 'uid', uid,\n" \
	"    'version', whole(version), 'by', by)\n" \
	"end\n"

/*
 * KEYS  record, index, changes, mark of the uid
 * ARGV  1 id, 2 uid, 3 who asks, 4 length of the stream, 5 ms that the record is kept, 6... fields
 */
const struct redis_script sandbox_script_create = { .keys = 4, .text =
	PRELUDE CHANGED
	"if redis.call('EXISTS', KEYS[4]) == 1 then return { 'gone', now } end\n"
	"local was = redis.call('HMGET', KEYS[1], 'uid', 'version')\n"
	"if was[1] == ARGV[2] then return { 'made', now, tonumber(was[2]) } end\n"
	"if was[1] then return { 'there', now, redis.call('HGETALL', KEYS[1]) } end\n"
	"local version = after(0)\n"
	"redis.call('DEL', KEYS[1])\n"
	"redis.call('HSET', KEYS[1], 'version', whole(version), unpack(ARGV, 6))\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[5])\n"
	"redis.call('SADD', KEYS[2], ARGV[1])\n"
	"changed(KEYS[3], 'made', version, ARGV[1], ARGV[2], ARGV[3], ARGV[4])\n"
	"return { 'made', now, version }\n" };

/*
 * KEYS  as create
 * ARGV  1-5 as create, 6 the version it knows, 7 the one that it told last, 8 digest, 9 how many words its own fields are,
 *       10... own fields, then the others
 *
 * The others are written only where Redis has lost them: what it has may be newer.
 */
const struct redis_script sandbox_script_tell = { .keys = 4, .text =
	PRELUDE CHANGED
	"if redis.call('EXISTS', KEYS[4]) == 1 then return { 'gone', now } end\n"
	"local was = redis.call('HMGET', KEYS[1], 'uid', 'version', 'told', 'status', 'home')\n"
	"if was[1] and was[1] ~= ARGV[2] then return { 'taken', now } end\n"
	"if was[5] and was[5] ~= ARGV[3] then return { 'moved', now } end\n"
	"if was[4] == 'deleting' then return { 'gone', now } end\n"
	"local known = tonumber(ARGV[6])\n"
	"local whole_record = not was[1] or tonumber(was[2]) < known\n"
	"redis.call('SADD', KEYS[2], ARGV[1])\n"
	"if not whole_record and was[3] == ARGV[8] then\n"
	"  redis.call('PEXPIRE', KEYS[1], ARGV[5])\n"
	"  return { 'same', now, tonumber(was[2]) }\n"
	"end\n"
	"local version = after(math.max(tonumber(was[2]) or 0, known, tonumber(ARGV[7])))\n"
	"local last = whole_record and #ARGV or 9 + tonumber(ARGV[9])\n"
	"redis.call('HSET', KEYS[1], 'version', whole(version), 'told', ARGV[8], unpack(ARGV, 10, last))\n"
	"local status = redis.call('HGET', KEYS[1], 'status')\n"
	"if status ~= 'pending' and status ~= 'unschedulable' then redis.call('HDEL', KEYS[1], 'env') end\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[5])\n"
	"changed(KEYS[3], 'told', version, ARGV[1], ARGV[2], ARGV[3], ARGV[4])\n"
	"return { 'told', now, version }\n" };

/*
 * KEYS  record, changes
 * ARGV  1-4 as create, 5 the version it knows, 6 how many words the fields as it knows them are, 7... those, then fields; a
 *       ttl_ms counts from now
 *
 * What it knows is written only where Redis has an older copy: a change that this one lacks is not undone by the next.
 */
const struct redis_script sandbox_script_patch = { .keys = 2, .text =
	PRELUDE CHANGED
	"local was = redis.call('HMGET', KEYS[1], 'uid', 'version', 'status', 'activity_ms')\n"
	"if was[1] ~= ARGV[2] or was[3] == 'deleting' then return { 'none', now } end\n"
	"local known, first = tonumber(ARGV[5]), 7 + tonumber(ARGV[6])\n"
	"if (tonumber(was[2]) or 0) < known then redis.call('HSET', KEYS[1], unpack(ARGV, 7, first - 1)) end\n"
	"local version = after(math.max(tonumber(was[2]) or 0, known))\n"
	"for i = first, #ARGV, 2 do\n"
	"  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])\n"
	"  if ARGV[i] == 'ttl_ms' then redis.call('HSET', KEYS[1], 'ttl_from_ms', now) end\n"
	"end\n"
	"redis.call('HSET', KEYS[1], 'version', whole(version), 'activity_ms', math.max(tonumber(was[4]) or 0, now))\n"
	"changed(KEYS[2], 'changed', version, ARGV[1], ARGV[2], ARGV[3], ARGV[4])\n"
	"return { 'done', now, redis.call('HGETALL', KEYS[1]) }\n" };

/*
 * KEYS  record, changes, mark of the uid, mark of tenant and id
 * ARGV  1-4 as create, 5 rule, 6 ms that the marks stay, 7 and 8 heartbeat and activity by which it was judged, or nothing
 *
 * Two replicas' ideas of one moment are less than a second apart.
 */
const struct redis_script sandbox_script_delete = { .keys = 4, .text =
	PRELUDE CHANGED
	"local was = redis.call('HMGET', KEYS[1], 'uid', 'version', 'status', 'heartbeat_ms', 'activity_ms')\n"
	"if was[1] ~= ARGV[2] then return { 'none', now } end\n"
	"if was[3] == 'deleting' then return { 'done', now } end\n"
	"local beat, used = tonumber(was[4]) or 0, tonumber(was[5]) or 0\n"
	"if ARGV[7] and (beat > tonumber(ARGV[7]) + 1000 or used > tonumber(ARGV[8]) + 1000) then\n"
	"  return { 'used', now, beat, used }\n"
	"end\n"
	"local version = after(was[2])\n"
	"redis.call('HSET', KEYS[1], 'version', whole(version), 'status', 'deleting', 'ready', 0, 'rule', ARGV[5],\n"
	"  'status_ms', now)\n"
	"redis.call('SET', KEYS[3], ARGV[5], 'PX', ARGV[6])\n"
	"redis.call('SET', KEYS[4], ARGV[5], 'PX', ARGV[6])\n"
	"changed(KEYS[2], 'deleted', version, ARGV[1], ARGV[2], ARGV[3], ARGV[4])\n"
	"return { 'done', now }\n" };

/*
 * KEYS  record, index, changes, mark of the uid, mark of tenant and id
 * ARGV  1-4 as create, 5 rule, 6 ms that the marks stay
 *
 * A Redis that had lost the record tells of the end, too: others may still have it. Without a rule it has never been
 * there, as far as its client knows.
 */
const struct redis_script sandbox_script_finish = { .keys = 5, .text =
	PRELUDE CHANGED
	"local was = redis.call('HMGET', KEYS[1], 'uid', 'version')\n"
	"local known = redis.call('EXISTS', KEYS[4])\n"
	"redis.call('SET', KEYS[4], ARGV[5], 'PX', ARGV[6])\n"
	"if was[1] and was[1] ~= ARGV[2] then return { 'done', now } end\n"
	"if ARGV[5] ~= '' then redis.call('SET', KEYS[5], ARGV[5], 'PX', ARGV[6]) end\n"
	"if redis.call('DEL', KEYS[1]) == 0 and known == 1 then return { 'done', now } end\n"
	"redis.call('SREM', KEYS[2], ARGV[1])\n"
	"changed(KEYS[3], 'finished', after(was[2]), ARGV[1], ARGV[2], ARGV[3], ARGV[4])\n"
	"return { 'done', now }\n" };

/*
 * KEYS  record, mark of tenant and id, in which epoch its home has told everything, epoch, index
 * ARGV  1 id
 *
 * What is nowhere may have got lost with a whole Redis, unless its home has told this one everything it has. A record
 * that ran out of time has left its id in the index.
 */
const struct redis_script sandbox_script_look = { .keys = 5, .text =
	PRELUDE
	"local record = redis.call('HGETALL', KEYS[1])\n"
	"if #record > 0 then return { 'there', now, record } end\n"
	"redis.call('SREM', KEYS[5], ARGV[1])\n"
	"local rule = redis.call('GET', KEYS[2])\n"
	"if rule then return { 'gone', now, rule } end\n"
	"local told, epoch = redis.call('GET', KEYS[3]), redis.call('GET', KEYS[4])\n"
	"return { 'none', now, told and told == epoch and 1 or 0 }\n" };

/*
 * KEYS  record, changes
 * ARGV  1-4 as create, 5 heartbeat_ms, 6 activity_ms
 *
 * Signs of life only ever grow, and raise no version: they are told as they are.
 */
const struct redis_script sandbox_script_sign = { .keys = 2, .text =
	PRELUDE
	"local was = redis.call('HMGET', KEYS[1], 'uid', 'heartbeat_ms', 'activity_ms')\n"
	"if was[1] ~= ARGV[2] then return { 'none', now } end\n"
	"local beat, used = tonumber(was[2]) or 0, tonumber(was[3]) or 0\n"
	"local new_beat, new_used = math.max(beat, tonumber(ARGV[5])), math.max(used, tonumber(ARGV[6]))\n"
	"if new_beat == beat and new_used == used then return { 'done', now } end\n"
	"redis.call('HSET', KEYS[1], 'heartbeat_ms', whole(new_beat), 'activity_ms', whole(new_used))\n"
	"redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 'kind', 'sandbox', 'what', 'sign', 'id', ARGV[1],\n"
	"  'uid', ARGV[2], 'by', ARGV[3], 'heartbeat_ms', whole(new_beat), 'activity_ms', whole(new_used))\n"
	"return { 'done', now }\n" };

/*
 * KEYS  record, index, changes, mark of the uid, replicas
 * ARGV  1-5 as create, 6 its home so far, 7 ms of silence after which that is gone, 8 the version it knows, 9... all fields
 *
 * The first who asks has it. All fields are written only where Redis has lost them.
 */
const struct redis_script sandbox_script_adopt = { .keys = 5, .text =
	PRELUDE CHANGED
	"local was = redis.call('HMGET', KEYS[1], 'uid', 'version', 'home')\n"
	"if was[1] and (was[1] ~= ARGV[2] or was[3] ~= ARGV[6]) then return { 'moved', now } end\n"
	"local beat = redis.call('ZSCORE', KEYS[5], ARGV[6])\n"
	"if ARGV[6] ~= ARGV[3] and beat and now - beat <= tonumber(ARGV[7]) then return { 'moved', now } end\n"
	"if not was[1] then\n"
	"  if redis.call('EXISTS', KEYS[4]) == 1 then return { 'gone', now, '' } end\n"
	"  redis.call('HSET', KEYS[1], unpack(ARGV, 9))\n"
	"end\n"
	"local version = after(math.max(tonumber(was[2]) or 0, tonumber(ARGV[8])))\n"
	"redis.call('HSET', KEYS[1], 'version', whole(version), 'home', ARGV[3])\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[5])\n"
	"redis.call('SADD', KEYS[2], ARGV[1])\n"
	"changed(KEYS[3], 'adopted', version, ARGV[1], ARGV[2], ARGV[3], ARGV[4])\n"
	"return { 'done', now, redis.call('HGETALL', KEYS[1]) }\n" };

/*
 * KEYS  record, replicas, epoch
 * ARGV  1 uid, 2 the name before a server's id under which it says that it has told everything, 3 ms of silence
 *
 * What every living server has told is all there is: a Redis that was emptied is believed no sooner.
 */
const struct redis_script sandbox_script_orphan = { .keys = 3, .text =
	PRELUDE
	"if redis.call('HGET', KEYS[1], 'uid') == ARGV[1] then return { 'kept', now } end\n"
	"local epoch, all = redis.call('GET', KEYS[3]), redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')\n"
	"local asked = false\n"
	"for i = 1, #all, 2 do\n"
	"  if now - all[i + 1] <= tonumber(ARGV[3]) then\n"
	"    if redis.call('GET', ARGV[2] .. all[i]) ~= epoch then return { 'kept', now } end\n"
	"    asked = true\n"
	"  end\n"
	"end\n"
	"return { epoch and asked and 'none' or 'kept', now, 0 }\n" };

/* clang-format on */

/* --- keys --- */

static void
key_record(struct redis_args *args, const struct sandbox_scripts *scripts, const char *id)
{
	redis_args_format(args, "%ssandbox:%s", scripts->prefix, id);
}

static void
key_index(struct redis_args *args, const struct sandbox_scripts *scripts)
{
	redis_args_format(args, "%ssandboxes", scripts->prefix);
}

static void
key_changes(struct redis_args *args, const struct sandbox_scripts *scripts)
{
	redis_args_format(args, "%schanges", scripts->prefix);
}

static void
key_life_mark(struct redis_args *args, const struct sandbox_scripts *scripts, const char *uid)
{
	redis_args_format(args, "%sended:%s", scripts->prefix, uid);
}

static void
key_id_mark(struct redis_args *args, const struct sandbox_scripts *scripts, const char *tenant, const char *id)
{
	redis_args_format(args, "%sgone:%s:%s", scripts->prefix, tenant, id);
}

/* ARGV 1 to 4 of all that write. */
static void
add_life(struct redis_args *args, const struct sandbox_scripts *scripts, const struct sandbox_record *record)
{
	redis_args_text(args, record->id);
	redis_args_text(args, record->uid);
	redis_args_text(args, scripts->replica);
	redis_args_number(args, scripts->changes);
}

/* --- calls --- */

static void
add_record_keys(struct redis_args *args, const struct sandbox_scripts *scripts, const struct sandbox_record *record)
{
	redis_args_init(args);
	key_record(args, scripts, record->id);
	key_index(args, scripts);
	key_changes(args, scripts);
	key_life_mark(args, scripts, record->uid);
}

static void
begin_record(struct redis_args *args, const struct sandbox_scripts *scripts, const struct sandbox_record *record)
{
	add_record_keys(args, scripts, record);
	add_life(args, scripts, record);
	redis_args_number(args, scripts->record_ttl_ms);
}

static void
put_all(struct redis_args *args, const struct sandbox_scripts *scripts, const struct sandbox_record *record,
	const struct shared_clock *shared)
{
	sandbox_fields_put_host(args, scripts->replica, scripts->host);
	sandbox_fields_put(args, SANDBOX_FIELDS_HOME, record, shared);
	sandbox_fields_put(args, SANDBOX_FIELDS_PATCH, record, shared);
	sandbox_fields_put(args, SANDBOX_FIELDS_SIGNS, record, shared);
}

void
sandbox_script_create_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, const char *env, const struct shared_clock *shared)
{
	begin_record(args, scripts, record);
	redis_args_text(args, "told");
	redis_args_format(args, "%" PRIx64, sandbox_fields_digest(record));
	put_all(args, scripts, record, shared);
	if (env == NULL)
		return;
	redis_args_text(args, "env");
	redis_args_text(args, env);
}

void
sandbox_script_adopt_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, int64_t silent_ms, const struct shared_clock *shared)
{
	add_record_keys(args, scripts, record);
	redis_args_format(args, "%sreplicas", scripts->prefix);
	add_life(args, scripts, record);
	redis_args_number(args, scripts->record_ttl_ms);
	redis_args_text(args, record->home);
	redis_args_number(args, silent_ms);
	redis_args_number(args, (int64_t)record->version);
	put_all(args, scripts, record, shared);
}

/* How many words there are from here to the end: the place in front of them. */
static size_t
begin_counted(struct redis_args *args)
{
	redis_args_number(args, 0);
	return args->count - 1;
}

/* Known only now: that place takes the last word put in. */
static void
end_counted(struct redis_args *args, size_t count)
{
	redis_args_number(args, (int64_t)(args->count - count - 1));
	args->list[count] = args->list[--args->count];
}

void
sandbox_script_tell_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, uint64_t told, const struct shared_clock *shared)
{
	size_t count;

	begin_record(args, scripts, record);
	redis_args_number(args, (int64_t)record->version);
	redis_args_number(args, (int64_t)told);
	redis_args_format(args, "%" PRIx64, sandbox_fields_digest(record));
	count = begin_counted(args);
	sandbox_fields_put_host(args, scripts->replica, scripts->host);
	sandbox_fields_put(args, SANDBOX_FIELDS_HOME, record, shared);
	end_counted(args, count);
	sandbox_fields_put(args, SANDBOX_FIELDS_PATCH, record, shared);
	sandbox_fields_put(args, SANDBOX_FIELDS_SIGNS, record, shared);
}

void
sandbox_script_patch_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, const struct sandbox_patch_fields *patch,
	const struct shared_clock *shared)
{
	size_t count;

	redis_args_init(args);
	key_record(args, scripts, record->id);
	key_changes(args, scripts);
	add_life(args, scripts, record);
	redis_args_number(args, (int64_t)record->version);
	count = begin_counted(args);
	sandbox_fields_put(args, SANDBOX_FIELDS_PATCH, record, shared);
	end_counted(args, count);
	if (patch->labels != NULL) {
		redis_args_text(args, "labels");
		redis_args_text(args, patch->labels);
	}
	if (patch->ttl_ms >= 0) {
		redis_args_text(args, "ttl_ms");
		redis_args_number(args, patch->ttl_ms);
	}
	if (patch->idle_timeout_ms >= 0) {
		redis_args_text(args, "idle_timeout_ms");
		redis_args_number(args, patch->idle_timeout_ms);
	}
}

void
sandbox_script_delete_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, const char *rule, const struct shared_clock *judged)
{
	redis_args_init(args);
	key_record(args, scripts, record->id);
	key_changes(args, scripts);
	key_life_mark(args, scripts, record->uid);
	key_id_mark(args, scripts, record->tenant, record->id);
	add_life(args, scripts, record);
	redis_args_text(args, rule);
	redis_args_number(args, scripts->tombstone_ttl_ms);
	if (judged == NULL)
		return;
	redis_args_number(args, shared_clock_to_redis(judged, record->heartbeat_ms));
	redis_args_number(args, shared_clock_to_redis(judged, record->activity_ms));
}

void
sandbox_script_finish_args(
	struct redis_args *args, const struct sandbox_scripts *scripts, const struct sandbox_record *record)
{
	redis_args_init(args);
	key_record(args, scripts, record->id);
	key_index(args, scripts);
	key_changes(args, scripts);
	key_life_mark(args, scripts, record->uid);
	key_id_mark(args, scripts, record->tenant, record->id);
	add_life(args, scripts, record);
	redis_args_text(args, record->reap_rule);
	redis_args_number(args, scripts->tombstone_ttl_ms);
}

void
sandbox_script_look_args(struct redis_args *args, const struct sandbox_scripts *scripts, const char *tenant,
	const char *id, const char *home)
{
	redis_args_init(args);
	key_record(args, scripts, id);
	key_id_mark(args, scripts, tenant, id);
	redis_args_format(args, "%stold:%s", scripts->prefix, home);
	redis_args_format(args, "%sepoch", scripts->prefix);
	key_index(args, scripts);
	redis_args_text(args, id);
}

void
sandbox_script_orphan_args(struct redis_args *args, const struct sandbox_scripts *scripts, const char *id,
	const char *uid, int64_t silent_ms)
{
	redis_args_init(args);
	key_record(args, scripts, id);
	redis_args_format(args, "%sreplicas", scripts->prefix);
	redis_args_format(args, "%sepoch", scripts->prefix);
	redis_args_text(args, uid);
	redis_args_format(args, "%stold:", scripts->prefix);
	redis_args_number(args, silent_ms);
}

void
sandbox_script_sign_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, const struct shared_clock *shared)
{
	redis_args_init(args);
	key_record(args, scripts, record->id);
	key_changes(args, scripts);
	add_life(args, scripts, record);
	redis_args_number(args, shared_clock_to_redis(shared, record->heartbeat_ms));
	redis_args_number(args, shared_clock_to_redis(shared, record->activity_ms));
}
