/*
 * signals.h - signals as events of the loop, for commands that have to tidy up before they leave.
 *
 * From signals_catch() on INT, TERM, HUP and QUIT do nothing by themselves, and writing to a closed pipe is an error
 * (EPIPE) instead of a signal.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_CLIENT_SIGNALS_H
#define ORCHARDCTL_CLIENT_SIGNALS_H

struct signals {
	int fd; /* readable when there is one */
	int first; /* the first that came; 0: none */
	unsigned count; /* how many came */
};

/* Aborts when the kernel gives no descriptor. */
void signals_catch(struct signals *signals);
/* Takes those that came since. */
void signals_take(struct signals *signals);

#endif
