/* kids.h - what a bed's spawner has around: children, and groups and directories of what it made ahead. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_SPAWNER_KIDS_H
#define ORCHARD_TESTS_SPAWNER_KIDS_H

#include "bed.h"

#include <stddef.h>
#include <stdint.h>

enum { KIDS_MAX = 64 };

/* Of a loop that waits; fails after until, a time of clock_boot_ms(). */
void kids_pause(int64_t until);
/* Children of the spawner whose name holds that ("": all); at most KIDS_MAX. */
int kids_find(const struct bed *bed, const char *name, pid_t kids[KIDS_MAX]);
bool kids_has(pid_t pid, const pid_t *kids, int count);
/* Where the spawner keeps its groups; false: this hierarchy is not there. */
bool kids_find_groups(const struct bed *bed, const char *controller, char *ret_path, size_t size);
/* Those of blanks, and of sandboxes that were blanks. */
int kids_count_groups(const struct bed *bed);

/* Each waits until there are so many: blanks; blanks whose root has that file; groups as above; directories of blanks. */
void kids_await_blanks(const struct bed *bed, int count);
void kids_await_roots(const struct bed *bed, const char *file, int count);
void kids_await_groups(struct bed *bed, int count);
void kids_await_directories(const struct bed *bed, int count);

#endif
