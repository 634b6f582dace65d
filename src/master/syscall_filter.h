/* syscall_filter.h - what a hijacked worker cannot even ask the kernel for. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_SYSCALL_FILTER_H
#define ORCHARD_MASTER_SYSCALL_FILTER_H

#include "base/cleanup.h"

#include <stdbool.h>

struct err;

/*
 * Refuses, with EPERM, running programs, changing ids, mounts and namespaces, tracing,
 * kernel modules, keys and the like; may_exec: but for running programs. Needs no_new_privs. Does nothing in a sanitized
 * build, whose runtime traces itself.
 */
int syscall_filter_install(bool may_exec, struct err *err) MUSTCHECK;

#endif
