/*
 * job_script.h - the scripts of a job's record; keys, arguments and answers stand with their texts.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_JOB_SCRIPT_H
#define ORCHARD_CLUSTER_JOB_SCRIPT_H

extern const char job_put_script[];
extern const char job_end_script[];
extern const char job_get_script[];
extern const char job_cancel_script[];
extern const char job_list_script[];
extern const char job_marks_script[];
extern const char job_page_script[];
extern const char job_claim_script[];

#endif
