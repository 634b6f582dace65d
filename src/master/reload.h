/* reload.h - the configuration of the next generation. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_RELOAD_H
#define ORCHARD_MASTER_RELOAD_H

#include "base/cleanup.h"

struct config;
struct err;

/*
 * Reads path again. Settings that only a restart changes keep the value of `running`
 * (the listener, the memory and the directories are what they are); their names are
 * logged. On failure *err says what is wrong with the file.
 */
int reload_config(
	const char *path, const struct config *running, struct config **ret_config, struct err *err) MUSTCHECK;

#endif
