/* dirs.h - state_dir and run_dir with what is below them: who owns each and who may enter. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_DIRS_H
#define ORCHARD_MASTER_DIRS_H

#include "base/cleanup.h"

struct config;
struct err;
struct service_user;

/*
 * The two directories themselves: where the locks lie. One that is there already only
 * gets the right to pass added.
 */
int dirs_make_top(const struct config *config, const struct service_user *user, struct err *err) MUSTCHECK;
/*
 * With the locks held, what is below them:
 *   state_dir   jobs/ keys/ (service user)   images/ sandboxes/ trash/ (root, closed)
 *   run_dir     sandboxes/ (root, everybody may pass)
 */
int dirs_make_below(const struct config *config, const struct service_user *user, struct err *err) MUSTCHECK;

/* What can be said without making anything: absolute, a directory or to be made, owned by root. */
int dirs_check(const struct config *config, struct err *err) MUSTCHECK;

#endif
