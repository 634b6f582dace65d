/* reaper.h - the role that removes what is over and takes over what was left. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REAPER_REAPER_H
#define ORCHARD_REAPER_REAPER_H

struct role_env;

int reaper_main(struct role_env *env);

#endif
