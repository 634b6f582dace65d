/*
 * robust.h - the one kind of lock that stands in shared memory.
 *
 * Process-shared, robust, error-checking. It is held for microseconds, never
 * across I/O, and never stands for anything longer than the section it guards.
 * Whoever gets it after its holder died repairs what it guards, then says
 * robust_consistent(), then goes on; dying before that leaves it to the next one.
 * A process stopped (not killed) in a section delays the others until it goes on.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_ROBUST_H
#define ORCHARD_IPC_ROBUST_H

#include "base/cleanup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Also over the remains of an earlier lock that nobody holds any more. */
void robust_init(pthread_mutex_t *mutex);
/* True: the last holder died, the caller must repair and then call robust_consistent(). */
bool robust_lock(pthread_mutex_t *mutex) MUSTCHECK;
void robust_consistent(pthread_mutex_t *mutex);
void robust_unlock(pthread_mutex_t *mutex);

/*
 * Stores before it are done before stores behind it, as seen after a SIGKILL between the two.
 * The kernel publishes all that a dead process has stored, so the order in the machine code is
 * all it takes: a compiler fence, no instruction.
 */
static inline void
robust_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

#endif
