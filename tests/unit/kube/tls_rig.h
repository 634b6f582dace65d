/* tls_rig.h - for tests: certificates, and programs beside the tests that listen with them on loopback. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_TLS_RIG_H
#define ORCHARD_TESTS_TLS_RIG_H

#include <stdint.h>
#include <sys/types.h>

/* For cmocka_run_group_tests(). */
int tls_make_certificates(void **state);
int tls_remove_certificates(void **state);
/* One of the files that certificates.sh makes; malloc'ed. */
char *tls_path(const char *name);

struct door {
	pid_t pid;
	int hold; /* its standard input */
	uint16_t port;
};

enum { DOOR_WORDS_MAX = 64 };

/* Starts SCRIPT CERTIFICATE KEY WORDS..., which prints its port; words end with NULL. */
void door_open(struct door *door, const char *script, const char *certificate, const char *const *words);
void door_close(struct door *door);

#endif
