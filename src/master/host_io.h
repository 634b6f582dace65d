/* host_io.h - whether a weight of io would mean anything to this host's disks. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_MASTER_HOST_IO_H
#define ORCHARD_MASTER_HOST_IO_H

struct config;

/* Warns if sandbox_io_weight is set where no disk shares by weight; with what to do. */
void host_io_warn(const struct config *config);

#endif
