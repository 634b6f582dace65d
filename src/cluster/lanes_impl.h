/* lanes_impl.h - questions about lanes and who waits for the answers, for the files lane*.c only. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_LANES_IMPL_H
#define ORCHARD_CLUSTER_LANES_IMPL_H

#include "cluster/lane_lease.h"
#include "cluster/lanes.h"

LIST_HEAD(lane_ask_list, lane_ask);
LIST_HEAD(lane_pass_list, lane_pass);

struct lanes {
	struct lanes_options options;
	struct lane_forgetting forgetting;
	struct event *renewal;
	struct lane_ask_list asks;
	struct lane_pass_list passes;
	bool refused; /* Redis answers questions of lanes with errors */
	struct lane_ref refused_ref; /* the last one */
};

/* One script on its way to Redis. */
struct lane_ask {
	LIST_ENTRY(lane_ask) link;
	struct lanes *lanes;
	struct lane_pass *pass; /* who waits for the answer, or NULL */
	struct lane_ref ref;
	int64_t sent_ms;
};

/* Verbs of the script. pass may be NULL. False: nobody is there to be asked. */
bool lanes_ask(struct lanes *lanes, const char *verb, const struct lane_ref *ref, struct lane_pass *pass);
/* Its answer was read, or there will be none. */
void lane_pass_answered(struct lane_pass *pass, bool has);

/* What is known of that lane; false: nothing. */
bool lanes_read(struct lanes *lanes, struct lane_ref *ref, struct lane_record *ret_record);
/* Finds or makes what is known of it. ERR_BUSY. */
int lanes_enter(struct lanes *lanes, struct lane_ref *ref, struct err *err) MUSTCHECK;
/* For a lane in use: makes anew what was forgotten. ERR_BUSY. */
int lanes_change(struct lanes *lanes, struct lane_ref *ref, lane_change_f *change, void *arg, struct err *err);
/* Nobody can say who has a lane. */
bool lanes_is_away(const struct lanes *lanes);
/* Nobody of this server wants it: the others may have it. */
void lanes_let_go(struct lanes *lanes, struct lane_ref *ref);

#endif
