/*
 * explore.h - visits every state that a small system can reach, breadth first.
 *
 * The system lives in fixed memory and is deterministic, so a state is stored as the way to it: its
 * parent and one action. Two states with the same hash count as one.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_IPC_EXPLORE_H
#define ORCHARD_TESTS_IPC_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct explore_system {
	void *memory; /* all that an action changes */
	size_t size;
	uint32_t actions;
	void (*start)(void); /* makes the first state */
	/*
	 * Does the action, and dies at the nth point in it (0: lives). False: not possible here, or it came to its end
	 * before that point.
	 */
	bool (*act)(uint32_t action, uint32_t nth);
	void (*check)(void); /* of a new state; complains by explore_fault(), and may change everything */
	uint64_t (*hash)(void); /* equal for states that behave alike */
	void (*name)(uint32_t action, char *buf, size_t size);
};

struct explore_result {
	uint32_t states, depth;
	uint64_t transitions;
	bool complete; /* everything that can be reached was */
};

/* Until everything is visited or so many states are. A fault prints the shortest way to it and fails the test. */
void explore(const struct explore_system *system, uint32_t max_states, struct explore_result *ret_result);
_Noreturn void explore_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What ipc_crash_point() calls. */
void explore_point(void);
/* Runs f(arg); true when it died at the nth point that it passed. */
bool explore_die_in(uint32_t nth, void (*f)(void *arg), void *arg);

#endif
