/*
 * crash_point.h - places where a test may kill the process.
 *
 * Nothing in the server: only tests that compile a file a second time with
 * ORCHARD_CRASH_POINTS get a call there, and decide in it who dies.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_CRASH_POINT_H
#define ORCHARD_IPC_CRASH_POINT_H

#ifdef ORCHARD_CRASH_POINTS
void ipc_crash_point(void);
#define CRASH_POINT() ipc_crash_point()
#else
#define CRASH_POINT() ((void)0)
#endif

#endif
