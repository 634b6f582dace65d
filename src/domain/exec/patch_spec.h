/*
 * patch_spec.h - apply_patch is a command of its own kind: same queue, same journal, run at most once.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_PATCH_SPEC_H
#define ORCHARD_DOMAIN_PATCH_SPEC_H

struct config;
struct exec_spec;
struct json_object;
struct json_reader;

/* exec_spec_fini() releases it. */
void patch_spec_read(const struct config *config, struct json_reader *reader, struct exec_spec *ret_spec);
/* The answer to apply_patch, made from its ended job; the caller's. */
struct json_object *patch_answer(struct json_object *job);

#endif
