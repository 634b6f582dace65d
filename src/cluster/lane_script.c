/*
 * lane_script.c - the one script by which replicas share a lane.
 *
 * A lane is a hash (number, holder, until, turns, claimed) and a list of replicas that wait for it, one entry for each
 * command. Turns are not names of commands: which command of a replica uses one is its own queue's business, so the two
 * queues can't wait for each other. A lane that is passed on goes to the replica of the oldest entry with as many turns
 * as it has entries in a row. Passed on is not taken: who does not take it within the claim time is passed over, with
 * all its entries, so that a dead replica holds nobody up for the whole life of a lease.
 *
 * The number is the newest lease's. It only grows: from the lane's own hash, or where that is lost from Redis' clock in
 * seconds, or from what an agent or a replica has seen.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/lane_script.h"

/*
 * KEYS  lane, queue, stream of changes
 * ARGV  1 verb, 2 replica, 3 newest number it had (0: none), 4 ms of a lease, 5 ms to claim one, 6 a number to exceed, 7 name
 *       of the lane, 8 ms that an unused lane is remembered, 9 entries of the stream
 * ->    granted, number, turns since the last answer, somebody waits, ms left, who has it
 *
 * add: one more command of this replica waits. ensure: at least one does. renew: none need wait. yield: as ensure, but
 * others go first. drop: one that was added will not go. release: no command of this replica waits.
 */
const char lane_script[] =
	"local verb, me, seen = ARGV[1], ARGV[2], tonumber(ARGV[3])\n"
	"local lease, claim, above = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])\n"
	"local time = redis.call('TIME')\n"
	"local now = time[1] * 1000 + math.floor(time[2] / 1000)\n"
	"local was = redis.call('HMGET', KEYS[1], 'number', 'holder', 'until', 'turns', 'claimed')\n"
	"local number, holder = math.max(tonumber(was[1]) or 0, seen), was[2] or ''\n"
	"local till, turns, claimed = tonumber(was[3]) or 0, tonumber(was[4]) or 0, was[5] == '1'\n"

	"local function push()\n"
	"  if redis.call('LLEN', KEYS[2]) < 65536 then redis.call('RPUSH', KEYS[2], me) end\n"
	"end\n"
	"local function tell(whom)\n"
	"  redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[9], '*', 'kind', 'lane', 'id', ARGV[7], 'to', whom)\n"
	"end\n"
	"local function waits() return redis.call('LLEN', KEYS[2]) > 0 end\n"
	"local function take_run(whom)\n"
	"  while redis.call('LINDEX', KEYS[2], 0) == whom do\n"
	"    redis.call('LPOP', KEYS[2])\n"
	"    turns = turns + 1\n"
	"  end\n"
	"end\n"
	"local function grow() number = math.max(number + 1, above + 1, tonumber(time[1])) end\n"

	"if (verb == 'yield' or verb == 'release') and holder == me then holder = '' end\n"
	/* Written by the clock of another machine, which was ahead. Another server's settings are not that far from ours. */
	"if till - now > 10 * math.max(lease, claim) then till = now + lease end\n"
	/* A lease that is over, or was not claimed in time, is still the holder's where nobody else has a claim. */
	"if holder ~= '' and till <= now and not (holder == me and (not claimed or not waits())) then\n"
	"  if not claimed then redis.call('LREM', KEYS[2], 0, holder) end\n"
	"  holder = ''\n"
	"end\n"

	"local told = false\n"
	"if verb == 'release' then redis.call('LREM', KEYS[2], 0, me)\n"
	"elseif verb == 'drop' then\n"
	"  if redis.call('LREM', KEYS[2], -1, me) == 0 and holder == me and turns > 0 then turns = turns - 1 end\n"
	"elseif verb == 'add' then\n"
	"  told = not waits()\n"
	"  push()\n"
	"elseif (verb == 'ensure' or verb == 'yield') and holder ~= me then\n"
	"  told = true\n"
	"  if not redis.call('LPOS', KEYS[2], me) then push() end\n"
	"end\n"

	"if holder == '' and waits() then\n"
	"  holder, turns = redis.call('LINDEX', KEYS[2], 0), 0\n"
	"  take_run(holder)\n"
	"  grow()\n"
	"  claimed = false\n"
	"  till = now + claim\n"
	"  if holder ~= me then tell(holder) end\n"
	"elseif holder ~= '' then\n"
	"  take_run(holder)\n"
	"  if told and holder ~= me and claimed then tell(holder) end\n"
	"end\n"

	"local given = 0\n"
	"if holder == me then\n"
	/* It has lost what it knew of its lease, and how many fences it has made of it; or an agent has seen more. */
	"  if (claimed and seen ~= number) or number <= above then grow() end\n"
	"  till = now + lease\n"
	"  claimed, given, turns = true, turns, 0\n"
	"end\n"
	"redis.call('HSET', KEYS[1], 'number', number, 'holder', holder, 'until', till, 'turns', turns,\n"
	"  'claimed', claimed and '1' or '0')\n"
	"redis.call('PEXPIRE', KEYS[1], ARGV[8])\n"
	"redis.call('PEXPIRE', KEYS[2], ARGV[8])\n"
	"return { holder == me and 1 or 0, number, given, waits() and 1 or 0, math.max(till - now, 0), holder }\n";
