/* listener.h - the two sockets that outlive every process: the REST port and the spawner's. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_LISTENER_H
#define ORCHARD_MASTER_LISTENER_H

#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct err;

enum { LISTENER_BACKLOG = 4096 };

/*
 * Non-blocking, close-on-exec. host: an address, or a name of this machine; "::" takes
 * IPv4 as well. The message of a taken port names it and the cure.
 */
int listener_open_tcp(const char *host, int64_t port, int *ret_fd, struct err *err) MUSTCHECK;
/* Checks that host is something one can listen on, without listening; whether a port is free there is not asked. */
int listener_check(const char *host, struct err *err) MUSTCHECK;
/* SOCK_SEQPACKET at path, mode 0600, owned by uid; a socket file that is in the way is replaced. */
int listener_open_seqpacket(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct err *err) MUSTCHECK;

#endif
