/* walls.h - what commands in a sandbox may ask of the kernel, by the settings: capabilities and system calls. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONF_WALLS_H
#define ORCHARD_CONF_WALLS_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct config_list;
struct err;

/* A system call that is answered with an errno. */
struct walls_call {
	const char *name;
	int answer;
};

extern const struct walls_call walls_calls[];
extern const size_t walls_call_count;

/* Capabilities are sets with bit n for CAP number n. The agent needs all of these, whatever commands get. */
uint64_t walls_default_capabilities(void);
/* "NET_ADMIN" and so on; NULL: no such number is known. */
const char *walls_capability_name(int number);
/* What commands get: the default less sandbox_capabilities_drop, and sandbox_capabilities_add. */
int walls_capabilities(const struct config *config, uint64_t *ret_set, struct err *err) MUSTCHECK;
/* The same of its two lists alone; ERR_INVALID says which word is wrong. */
int walls_add(const struct config_list *list, uint64_t *set, struct err *err) MUSTCHECK;
int walls_drop(const struct config_list *list, uint64_t *set, struct err *err) MUSTCHECK;

/* ERR_INVALID names the first word that is on no list of denied calls. */
int walls_check_calls(const struct config_list *list, struct err *err) MUSTCHECK;
/* Whether sandbox_seccomp_allow names this call. */
bool walls_allows_call(const struct config *config, const char *name);

/* Every setting that can make sandboxes weaker than the default, and in how many ways it does: 0, none. */
struct walls_weakness {
	const char *setting;
	size_t count;
};
enum { WALLS_WEAKNESSES = 5 };
void walls_weaknesses(const struct config *config, struct walls_weakness ret_list[WALLS_WEAKNESSES]);
/* One warning in the log for every setting that makes sandboxes weaker than the default. */
void walls_warn(const struct config *config);

#endif
