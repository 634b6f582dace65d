/* fault.h - what a failed system call is to the caller of a file call: a status, a word, and what to do. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_FILES_FAULT_H
#define ORCHARD_AGENT_FILES_FAULT_H

struct fault {
	int errnum;
	int status;
	const char *code;
	const char *words;
};

/* Never NULL: what has no line of its own is 500 io_error, with the kernel's words. */
const struct fault *fault_of_errno(int errnum);

#endif
