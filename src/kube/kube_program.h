/* kube_program.h - a program run for what it prints, without blocking the loop. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_PROGRAM_H
#define ORCHARD_KUBE_KUBE_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct kube_plugin;
struct kube_program;

/* From the loop, once: why NULL and what it printed, or why that is nothing. It is freed afterwards. */
typedef void kube_program_f(const char *text, size_t len, const struct err *why, void *arg);

/* NULL: it could not be started, *err says why. */
struct kube_program *kube_program_start(struct event_base *base, const struct kube_plugin *plugin,
	uint32_t timeout_ms, kube_program_f *done, void *arg, struct err *err);
/* Kills it, with its process group. */
void kube_program_kill(struct kube_program *program);

#endif
