/*
 * lane_script.h - the script by which replicas share a lane; its keys, arguments and answer stand with its text.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_LANE_SCRIPT_H
#define ORCHARD_CLUSTER_LANE_SCRIPT_H

#include "cluster/changes.h"

/* How many entries the stream of changes keeps, about. */
enum { LANE_STREAM_ENTRIES = CHANGES_KEPT };

extern const char lane_script[];

#endif
