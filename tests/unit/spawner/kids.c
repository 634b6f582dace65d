/* kids.c - children, groups and directories of a bed's spawner. */
/* SPDX-License-Identifier: MIT */
#include "kids.h"

#include "base/clock.h"
#include "base/text.h"
#include "spawner/cgroup/cgroup_find.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 30000 };

void
kids_pause(int64_t until)
{
	assert_true(clock_boot_ms() < until);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

/* Children of the spawner that are called so (""; by any name); at most KIDS_MAX. */
int
kids_find(const struct bed *bed, const char *name, pid_t kids[KIDS_MAX])
{
	char path[64], comm[32];
	AUTO_FILE *file;
	int count = 0, pid;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)bed->spawner, (int)bed->spawner);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fscanf(file, "%d", &pid) == 1 && count < KIDS_MAX) {
		AUTO_FILE *kid = NULL;

		snprintf(path, sizeof path, "/proc/%d/comm", pid);
		kid = fopen(path, "re");
		if (kid != NULL && fscanf(kid, "%31s", comm) == 1 && strstr(comm, name) != NULL)
			kids[count++] = pid;
	}
	return count;
}

void
kids_await_blanks(const struct bed *bed, int count)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;
	pid_t kids[KIDS_MAX];

	while (kids_find(bed, "orchard-blank", kids) != count)
		kids_pause(until);
}

/* Where the spawner of that bed keeps its groups; false: this hierarchy is not there. */
bool
kids_find_groups(const struct bed *bed, const char *controller, char *ret_path, size_t size)
{
	char own[512], hex[TEXT_SHA256_HEX_SIZE], state_dir[128];

	if (!cgroup_find_dir(controller, "", own, sizeof own))
		return false;
	snprintf(state_dir, sizeof state_dir, "%s/state", bed->dir);
	text_sha256_hex(state_dir, strlen(state_dir), hex);
	return (size_t)snprintf(ret_path, size, "%s/orchard-%.12s", own, hex) < size;
}

/* Those of blanks, and of sandboxes that were blanks. */
int
kids_count_groups(const struct bed *bed)
{
	static const char *const controllers[] = { NULL, "cpu", "memory", "pids" };
	char path[1200];
	int most = 0;

	for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
		AUTO_DIR *list = NULL;
		struct dirent *entry;
		int count = 0;

		if (kids_find_groups(bed, controllers[i], path, sizeof path))
			list = opendir(path);
		while (list != NULL && (entry = readdir(list)) != NULL)
			count += entry->d_name[0] == '-';
		most = count > most ? count : most;
	}
	return most;
}

/* Waits until so many blanks stand on a root with that file. */
void
kids_await_roots(const struct bed *bed, const char *file, int count)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;
	int found;

	for (;;) {
		pid_t kids[KIDS_MAX];
		int blanks = kids_find(bed, "orchard-blank", kids);

		found = 0;
		for (int i = 0; i < blanks; i++) {
			char path[64];

			snprintf(path, sizeof path, "/proc/%d/root/%s", (int)kids[i], file);
			found += access(path, F_OK) == 0;
		}
		if (found == count)
			return;
		kids_pause(until);
	}
}

/* Of what was made ahead. */
void
kids_await_directories(const struct bed *bed, int count)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;
	char path[512];
	int found;

	snprintf(path, sizeof path, "%s/state/sandboxes", bed->dir);
	for (;;) {
		AUTO_DIR *list = opendir(path);
		const struct dirent *entry;

		found = 0;
		assert_non_null(list);
		while ((entry = readdir(list)) != NULL)
			found += entry->d_name[0] == '-';
		if (found == count)
			return;
		kids_pause(until);
	}
}

/* Whoever asks what there is has tried again what could not be removed. */
void
kids_await_groups(struct bed *bed, int count)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (kids_count_groups(bed) != count) {
		(void)bed_count(bed);
		kids_pause(until);
	}
}

bool
kids_has(pid_t pid, const pid_t *kids, int count)
{
	for (int i = 0; i < count; i++) {
		if (kids[i] == pid)
			return true;
	}
	return false;
}
