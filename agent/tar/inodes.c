/* inodes.c - a hash table that does not grow. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/inodes.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INODES_SLOTS = 1 << 14, INODES_MAX_BYTES = 8 << 20 };

struct inode_name {
	struct inode_name *next;
	dev_t dev;
	ino_t ino;
	char name[];
};

struct inode_names {
	struct inode_name *slots[INODES_SLOTS];
	size_t bytes;
};

struct inode_names *
inode_names_create(void)
{
	return alloc_zero(1, sizeof(struct inode_names));
}

void
inode_names_free(struct inode_names *names)
{
	for (size_t i = 0; i < INODES_SLOTS; i++)
		for (struct inode_name *one = names->slots[i], *next; one != NULL; one = next) {
			next = one->next;
			free(one);
		}
	free(names);
}

const char *
inode_names_meet(struct inode_names *names, dev_t dev, ino_t ino, const char *name)
{
	uint64_t hash = ((uint64_t)ino ^ (uint64_t)dev << 32) * 0x9e3779b97f4a7c15ULL;
	struct inode_name **slot = &names->slots[hash >> 50], *one;
	size_t size = sizeof *one + strlen(name) + 1;

	for (one = *slot; one != NULL; one = one->next)
		if (one->dev == dev && one->ino == ino)
			return one->name;
	if (names->bytes + size > INODES_MAX_BYTES)
		return NULL;
	one = alloc_bytes(size);
	*one = (struct inode_name){ .next = *slot, .dev = dev, .ino = ino };
	strcpy(one->name, name);
	*slot = one;
	names->bytes += size;
	return NULL;
}
