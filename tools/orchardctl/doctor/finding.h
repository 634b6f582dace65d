/* finding.h - what the doctor saw, one thing a line: fine, doubtful or wrong, and what mends it. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_DOCTOR_FINDING_H
#define ORCHARDCTL_DOCTOR_FINDING_H

#include <stdbool.h>

struct config;
struct ctl;
struct json_object;

enum finding_level { FINDING_OK, FINDING_WARN, FINDING_FAIL };

struct findings {
	const struct ctl *ctl;
	struct json_object *list; /* owned; for json and yaml, which are printed at the end */
	unsigned warnings, failures;
	char *metrics; /* owned: the text of GET /metrics; NULL: not known */
};

void findings_init(struct findings *findings, const struct ctl *ctl);
/* Prints a table's line at once. cure: a command, or words; NULL: nothing is to be done. */
void finding_add(struct findings *findings, enum finding_level level, const char *what, const char *cure,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Prints what is left; frees. */
void findings_end(struct findings *findings);

/* The parts of the doctor. */
/* False: the server is not reached, so nothing else can be asked of it. */
bool doctor_check_server(struct findings *findings);
void doctor_check_metrics(struct findings *findings);
/* The server's sandboxes are pods; false also while its metrics are not known. */
bool findings_on_cluster(const struct findings *findings);
/* Only then. */
void doctor_check_cluster(struct findings *findings);
void doctor_check_nodes(struct findings *findings, struct json_object *resources);
/* What mends a problem that /ready or a refusal tells of; malloc'ed. */
char *doctor_cluster_cure(const struct findings *findings, const char *problem);
/* Makes a sandbox of the default image, runs a command in it, removes it. */
void doctor_try_sandbox(struct findings *findings);
/* This host, which has to be the server's: its settings, and what they want of the host, of a cluster and of Redis. */
void doctor_check_host(struct findings *findings, const char *conf_path);
/* A key of these settings, a secret; malloc'ed, NULL: they have none. */
char *doctor_host_key(const char *conf_path);
void doctor_check_rights(struct findings *findings, const struct config *config);
/* Nothing when it is not used. */
void doctor_check_redis(struct findings *findings, const struct config *config);
/* The configuration of orchardctl. */
void doctor_check_client(struct findings *findings);

#endif
