/* key_script.c - a hash for each key: the claim, its mark, when the key was claimed first, and whether all is over. */
/* SPDX-License-Identifier: MIT */
#include "cluster/key_script.h"

#include "redis/args.h"

/* clang-format off */

#define PRELUDE \
	"local time = redis.call('TIME')\n" \
	"local now = time[1] * 1000 + math.floor(time[2] / 1000)\n" \
	"local was = redis.call('HMGET', KEYS[1], 'claim', 'mark', 'ended', 'claimed_ms')\n" \
	"local function there()\n" \
	"  return { 'there', now, was[1], was[2], tonumber(was[3]) or 0, math.max(now - (tonumber(was[4]) or now), 0) }\n" \
	"end\n"

/* KEYS  the key */
const struct redis_script key_script_get = { .keys = 1, .text =
	PRELUDE
	"if was[1] then return there() end\n"
	"return { 'none', now }\n" };

/* ARGV  1 claim, 2 mark, 3 ms that it is kept */
const struct redis_script key_script_put = { .keys = 1, .text =
	PRELUDE
	"if was[1] and was[2] ~= ARGV[2] then return there() end\n"
	"if not was[1] then\n"
	"  redis.call('DEL', KEYS[1])\n"
	"  redis.call('HSET', KEYS[1], 'claim', ARGV[1], 'mark', ARGV[2], 'claimed_ms', now)\n"
	"  redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
	"end\n"
	"return { 'made', now, ARGV[2] }\n" };

/* ARGV  1 claim, 2 mark, 3 ms that it is kept, 4 mark of the one that is renewed */
const struct redis_script key_script_renew = { .keys = 1, .text =
	PRELUDE
	"if was[2] == ARGV[2] then return { 'made', now, ARGV[2] } end\n"
	"if was[2] ~= ARGV[4] or was[3] == '1' then return { 'stale', now } end\n"
	"redis.call('HSET', KEYS[1], 'claim', ARGV[1], 'mark', ARGV[2])\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
	"return { 'made', now, ARGV[2] }\n" };

/* ARGV  1 mark */
const struct redis_script key_script_give_up = { .keys = 1, .text =
	PRELUDE
	"if was[2] == ARGV[1] then redis.call('DEL', KEYS[1]) end\n"
	"return { 'done', now }\n" };

/* ARGV  1 ms that it is kept */
const struct redis_script key_script_settle = { .keys = 1, .text =
	PRELUDE
	"if not was[1] then return { 'none', now } end\n"
	"redis.call('HSET', KEYS[1], 'ended', 1)\n"
	"local left = redis.call('PTTL', KEYS[1])\n"
	"if left < 0 or left > tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end\n"
	"return { 'done', now }\n" };

/* ARGV  1 claim, 2 mark, 3 ms that it is kept, 4 mark of the one before, 5 ms since the key's first claim, 6 whether it has ended */
const struct redis_script key_script_again = { .keys = 1, .text =
	PRELUDE
	"if was[1] and was[2] ~= ARGV[2] and was[2] ~= ARGV[4] then return there() end\n"
	"if was[2] == ARGV[2] and (was[3] == '1' or ARGV[6] == '0') then return { 'done', now } end\n"
	"redis.call('HSET', KEYS[1], 'claim', ARGV[1], 'mark', ARGV[2])\n"
	"if not was[4] then redis.call('HSET', KEYS[1], 'claimed_ms', now - tonumber(ARGV[5])) end\n"
	"if ARGV[6] == '1' then redis.call('HSET', KEYS[1], 'ended', 1) end\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
	"return { 'done', now }\n" };

/* clang-format on */

static void
begin(struct redis_args *args, const struct key_name *name)
{
	redis_args_init(args);
	redis_args_format(args, "%skey:%s", name->prefix, name->digest);
}

static void
add_text(struct redis_args *args, const struct key_text *text)
{
	redis_args_bytes(args, text->claim, text->len);
	redis_args_text(args, text->mark);
	redis_args_number(args, text->keep_ms);
}

void
key_script_get_args(struct redis_args *args, const struct key_name *name)
{
	begin(args, name);
}

void
key_script_put_args(struct redis_args *args, const struct key_name *name, const struct key_text *text)
{
	begin(args, name);
	add_text(args, text);
}

void
key_script_renew_args(
	struct redis_args *args, const struct key_name *name, const char *mark, const struct key_text *text)
{
	begin(args, name);
	add_text(args, text);
	redis_args_text(args, mark);
}

void
key_script_give_up_args(struct redis_args *args, const struct key_name *name, const char *mark)
{
	begin(args, name);
	redis_args_text(args, mark);
}

void
key_script_settle_args(struct redis_args *args, const struct key_name *name, int64_t keep_ms)
{
	begin(args, name);
	redis_args_number(args, keep_ms);
}

void
key_script_again_args(struct redis_args *args, const struct key_name *name, const struct key_text *text,
	const struct key_past *past)
{
	begin(args, name);
	add_text(args, text);
	redis_args_text(args, past->before);
	redis_args_number(args, past->age_ms);
	redis_args_number(args, past->ended);
}
