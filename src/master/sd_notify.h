/* sd_notify.h - what a service manager is told, over the datagram socket that NOTIFY_SOCKET names. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_SD_NOTIFY_H
#define ORCHARD_MASTER_SD_NOTIFY_H

#include <stdint.h>

/*
 * Keeps NOTIFY_SOCKET to itself and takes it out of the environment, so that no
 * child speaks for the server. Without the variable every call below does nothing.
 */
void sd_notify_init(void);
void sd_notify_ready(const char *status);
void sd_notify_reloading(void);
/* The manager waits for us at least so long. */
void sd_notify_stopping(int64_t at_most_ms);

#endif
