/* syscall_filter.h - what a hijacked worker cannot even ask the kernel for. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_SYSCALL_FILTER_H
#define ORCHARD_MASTER_SYSCALL_FILTER_H

#include "base/cleanup.h"

struct err;

/*
 * Refuses, with EPERM, running programs, changing ids, mounts and namespaces, tracing,
 * kernel modules, keys and the like. Needs no_new_privs. Does nothing in a sanitized
 * build, whose runtime traces itself.
 */
int syscall_filter_install(struct err *err) MUSTCHECK;

#endif
