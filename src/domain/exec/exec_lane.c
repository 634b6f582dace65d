/*
 * exec_lane.c - a command's way through a lane that other servers share.
 *
 * The exec lock orders the commands of this server; its head then enters the lane, which may have to wait for other
 * servers. Once inside, a command keeps its fence over pauses and a busy agent: should another server have got the
 * lane meanwhile, the agent says so, and the command enters again, with its place in this server's queue. While it
 * waits for other servers it is parked there: it counts as none that runs, so that servers do not stop each other.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/service_priv.h"
#include "ipc/shm.h"

/* Perhaps it is its turn. Where it has no place to run it takes one first, and then looks again. */
static void
exec_on_turn(void *arg)
{
	struct exec *exec = arg;
	struct service *service = exec->service;

	/* One that has ended meanwhile keeps its pass until that is written down. */
	if (exec->step != EXEC_QUEUED)
		return;
	if (exec->granted) {
		exec_start(exec);
	} else if (exec->parked && lane_pass_may_enter(&exec->pass)) {
		exec->parked = false;
		exec_lock_unpark(shm_exec_lock(service->shm), service->notify, &service->limits, exec->ticket);
	}
}

static struct lane_name
exec_lane_name(const struct exec *exec)
{
	return (struct lane_name){
		.sandbox_uid = exec->record.sandbox_uid,
		.sandbox_slot = exec->record.sandbox_slot,
		.lane = exec_lane_number(exec->record.lane),
	};
}

int
exec_lane_join(struct exec *exec, struct err *err)
{
	const struct lane_name name = exec_lane_name(exec);
	struct lanes *lanes = exec->service->lanes;

	exec->record.lane_fence = 0;
	if (lanes == NULL)
		return 0;
	if (exec->step == EXEC_STORING)
		return lane_pass_join(lanes, &exec->pass, &name, exec_on_turn, exec, err);
	lane_pass_rejoin(lanes, &exec->pass, &name, false, exec_on_turn, exec);
	return 0;
}

void
exec_lane_adopt(struct exec *exec)
{
	const struct lane_name name = exec_lane_name(exec);

	if (exec->service->lanes != NULL && exec->has_ticket)
		lane_pass_rejoin(
			exec->service->lanes, &exec->pass, &name, exec->record.lane_fence != 0, exec_on_turn, exec);
}

/* Seen from outside it is queued. */
static bool
exec_lane_wait(struct exec *exec)
{
	exec->step = EXEC_QUEUED;
	if (exec->record.state == JOB_QUEUED)
		return true;
	exec->record.state = JOB_QUEUED;
	exec->record.started_at = 0;
	exec->record.started_ms = 0;
	return exec_write_record(exec);
}

/* Others of this server may run while it waits for other servers. */
static void
exec_lane_park(struct exec *exec)
{
	struct service *service = exec->service;

	if (!exec->granted || !exec->has_ticket)
		return;
	exec->granted = false;
	exec->parked = true;
	exec_lock_park(shm_exec_lock(service->shm), service->notify, &service->limits, exec->ticket);
}

bool
exec_lane_enter(struct exec *exec)
{
	if (exec->service->lanes == NULL || exec->record.lane_fence != 0)
		return true;
	if (lane_pass_enter(&exec->pass, &exec->record.lane_fence))
		return true;
	if (exec_lane_wait(exec))
		exec_lane_park(exec);
	return false;
}

uint64_t
exec_lane_fence(const struct exec *exec)
{
	return exec->record.lane_fence != 0 ? exec->record.lane_fence : exec->ticket.number;
}

bool
exec_lane_overtaken(struct exec *exec, uint64_t newest)
{
	if (exec->service->lanes == NULL || exec->pass.lanes == NULL || !exec->has_ticket)
		return false;
	exec->record.lane_fence = 0;
	lane_pass_overtaken(&exec->pass, newest);
	return true;
}
