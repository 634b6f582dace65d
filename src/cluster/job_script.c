/*
 * job_script.c - a job's record: a hash that its home writes, and that has one end.
 *
 * The home is the replica that drives the job; what it says of a live one stands only while it still is, and nothing
 * stands against an end. When it is gone, whoever claims the job first is its home. Changes of a job go into the stream
 * only when another replica has asked for it: whoever asks leaves a mark in the same step, and looks once more after it
 * is ready to hear.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/job_script.h"

/* clang-format off */
/* Before scripts whose first argument is the id. */
#define TELL_IN(stream, entries) \
	"local function tell(kind, to)\n" \
	"  redis.call('XADD', " stream ", 'MAXLEN', '~', " entries ", '*', 'kind', kind, 'id', ARGV[1], 'to', to)\n" \
	"end\n"
#define TELL TELL_IN("KEYS[3]", "ARGV[4]")

/* The newest of a sandbox's jobs; the fifth argument says when this one was created, the sixth how many are kept. */
#define LIST \
	"local function list()\n" \
	"  redis.call('ZADD', KEYS[4], ARGV[5], ARGV[1])\n" \
	"  redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -1 - ARGV[6])\n" \
	"  if redis.call('PTTL', KEYS[4]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[4], ARGV[3]) end\n" \
	"end\n"

/*
 * KEYS  job, jobs of its home, stream of changes, jobs of its sandbox
 * ARGV  1 id, 2 home, 3 ms that it is kept without another word, 4 entries of the stream, 5 when it was created, 6 jobs
 *       of a sandbox that are listed, 7... names and values
 * ->    2: done, and it is to be cancelled; 1: done; 0: another home has it, or it has ended
 */
const char job_put_script[] = TELL LIST
	"local was = redis.call('HMGET', KEYS[1], 'home', 'state', 'watched', 'cancel')\n"
	"if was[2] == 'ended' or (was[1] and was[1] ~= ARGV[2]) then return 0 end\n"
	"local fields = { 'home', ARGV[2] }\n"
	"for i = 7, #ARGV do fields[#fields + 1] = ARGV[i] end\n"
	"redis.call('HSET', KEYS[1], unpack(fields))\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
	"redis.call('SADD', KEYS[2], ARGV[1])\n"
	"list()\n"
	"if was[3] then tell('job', '') end\n"
	"return was[4] and 2 or 1\n";

/*
 * KEYS  job, jobs of its home, stream of changes, jobs of its sandbox
 * ARGV  1 id, 2 tenant, 3 ms that it is kept, 4 entries of the stream, 5 when it was created, 6 jobs of a sandbox that
 *       are listed, 7 the job as it has ended, 8 the same as it is listed
 * ->    1: done; 0: it had ended before, and that stands
 */
const char job_end_script[] = TELL LIST
	"local was = redis.call('HMGET', KEYS[1], 'state', 'watched')\n"
	"redis.call('SREM', KEYS[2], ARGV[1])\n"
	"if was[1] == 'ended' then return 0 end\n"
	"redis.call('HSET', KEYS[1], 'tenant', ARGV[2], 'state', 'ended', 'result', ARGV[7], 'brief', ARGV[8])\n"
	"redis.call('HDEL', KEYS[1], 'live', 'watched', 'cancel', 'take')\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[3])\n"
	"list()\n"
	"if was[2] then tell('job', '') end\n"
	"return 1\n";

/*
 * KEYS  job
 * ->    nil: there is none; else tenant, state, its JSON (as it ended, or as it stands), sandbox, uid of that, home
 */
const char job_get_script[] =
	"local is = redis.call('HMGET', KEYS[1], 'tenant', 'state', 'live', 'result', 'sandbox', 'uid', 'home')\n"
	"if not is[2] then return false end\n"
	/* A Redis that takes no writes can still say how it stands; who waits looks again by himself then. */
	"if is[2] ~= 'ended' then redis.pcall('HSET', KEYS[1], 'watched', '1') end\n"
	"return { is[1] or '', is[2], is[4] or is[3] or '', is[5] or '', is[6] or '', is[7] or '' }\n";

/*
 * KEYS  job, stream of changes
 * ARGV  1 id, 2 tenant, 3 entries of the stream
 * ->    1: its home is told; 0: there is no such live job
 */
const char job_cancel_script[] = TELL_IN("KEYS[2]", "ARGV[3]")
	"local is = redis.call('HMGET', KEYS[1], 'state', 'tenant', 'home')\n"
	"if not is[1] or is[1] == 'ended' or is[2] ~= ARGV[2] then return 0 end\n"
	"redis.call('HSET', KEYS[1], 'cancel', '1')\n"
	"tell('job', is[3])\n"
	"return 1\n";

/*
 * KEYS  jobs of a sandbox
 * ARGV  1 what a job's key begins with, 2 tenant, 3 how many, the newest first
 * ->    for each its id and JSON without outputs
 */
const char job_list_script[] =
	"local rows = {}\n"
	"for _, id in ipairs(redis.call('ZREVRANGE', KEYS[1], 0, ARGV[3] - 1)) do\n"
	"  local is = redis.call('HMGET', ARGV[1] .. id, 'tenant', 'state', 'live', 'brief', 'result')\n"
	"  if is[1] == ARGV[2] then\n"
	"    rows[#rows + 1] = id\n"
	"    rows[#rows + 1] = is[2] == 'ended' and (is[4] or is[5]) or is[3] or ''\n"
	"  elseif not is[2] then\n"
	"    redis.pcall('ZREM', KEYS[1], id)\n"
	"  end\n"
	"end\n"
	"return rows\n";

/*
 * ARGV  1 what a job's key begins with, 2... ids
 * ->    for each its home ('' when that is not known), also when it has ended there, and '1' when it is to be cancelled, 'lost'
 *       when nothing is known of it
 */
const char job_marks_script[] =
	"local rows = {}\n"
	"for i = 2, #ARGV do\n"
	"  local is = redis.call('HMGET', ARGV[1] .. ARGV[i], 'home', 'cancel', 'state')\n"
	"  rows[#rows + 1] = is[1] or ''\n"
	"  rows[#rows + 1] = is[2] or (is[3] and '' or 'lost')\n"
	"end\n"
	"return rows\n";

/*
 * KEYS  jobs of a server
 * ARGV  1 what a job's key begins with, 2 that server, 3 where the page before has ended; 0 at first
 * ->    where this page ends, and for each live job its id, tenant, sandbox, uid of that, host of its home
 */
const char job_page_script[] =
	"local page = redis.call('SSCAN', KEYS[1], ARGV[3], 'COUNT', 64)\n"
	"local rows = { page[1] }\n"
	"for _, id in ipairs(page[2]) do\n"
	"  local is = redis.call('HMGET', ARGV[1] .. id, 'state', 'home', 'tenant', 'sandbox', 'uid', 'host')\n"
	"  if is[1] and is[1] ~= 'ended' and is[2] == ARGV[2] then\n"
	"    for _, word in ipairs({ id, is[3] or '', is[4] or '', is[5] or '', is[6] or '' }) do\n"
	"      rows[#rows + 1] = word\n"
	"    end\n"
	"  else\n"
	"    redis.call('SREM', KEYS[1], id)\n"
	"  end\n"
	"end\n"
	"return rows\n";

/*
 * KEYS  job, jobs of its home, stream of changes, jobs of whoever claims it, beats of all servers, and of hosts
 * ARGV  1 id, 2 its home, 3 whoever claims it, 4 entries of the stream, 5 ms of silence after which its home is gone,
 *       6 ms of silence of its home's host; 0: that one is asked, and lives
 * ->    nil: it is no more for the taking; else its cancel mark, and what its next home needs to know
 *
 * A home that beats again keeps its jobs, and so do those of a host where any server has lived since. Its home itself may
 * claim what it has had all along.
 */
const char job_claim_script[] = TELL
	"local is = redis.call('HMGET', KEYS[1], 'state', 'home', 'watched', 'cancel', 'take', 'host', 'live')\n"
	"if not is[1] or is[1] == 'ended' or is[2] ~= ARGV[2] then return false end\n"
	"local time = redis.call('TIME')\n"
	"local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"
	"local function silence(key, who) return now - (redis.call('ZSCORE', key, who) or 0) end\n"
	"if ARGV[2] ~= ARGV[3] and silence(KEYS[5], ARGV[2]) <= tonumber(ARGV[5]) then return false end\n"
	"if silence(KEYS[6], is[6] or '') <= tonumber(ARGV[6]) and ARGV[6] ~= '0' then return false end\n"
	"redis.call('HSET', KEYS[1], 'home', ARGV[3])\n"
	"redis.call('SREM', KEYS[2], ARGV[1])\n"
	"redis.call('SADD', KEYS[4], ARGV[1])\n"
	"tell('claim', ARGV[2])\n"
	"if is[3] then tell('job', '') end\n"
	"return { is[4] or '', is[5] or '', is[7] or '' }\n";
/* clang-format on */
