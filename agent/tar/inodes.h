/* inodes.h - under which name a file with several links was first met; bounded, what finds no room is not known. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_INODES_H
#define ORCHARD_AGENT_TAR_INODES_H

#include <sys/types.h>

struct inode_names;

struct inode_names *inode_names_create(void);
void inode_names_free(struct inode_names *names);
/* The name it was met under before; NULL: it is met now, under name. */
const char *inode_names_meet(struct inode_names *names, dev_t dev, ino_t ino, const char *name);

#endif
