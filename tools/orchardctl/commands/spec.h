/*
 * spec.h - bodies of requests out of the options that several commands share.
 *
 * Each function takes one option into the body: 1 when it was one of its own, 0 when it was not, -1 after it has
 * said what is wrong with the value.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMMANDS_SPEC_H
#define ORCHARDCTL_COMMANDS_SPEC_H

#include "base/cleanup.h"

#include <stdbool.h>

struct args;
struct json_object;

int spec_take_sandbox(struct args *args, int code, struct json_object *body) MUSTCHECK;
int spec_take_exec(struct args *args, int code, struct json_object *body) MUSTCHECK;
/* "NAME=VALUE" into the object that is body's member; without "=" the value is that of our own environment. */
int spec_add_pair(struct args *args, const char *what, struct json_object *body, const char *member) MUSTCHECK;
/* Whether a command's words can be sent as JSON; false after it has said which can't. */
bool spec_check_words(struct args *args, char *const *words, int count) MUSTCHECK;
void spec_set_string(struct json_object *body, const char *member, const char *value);
/* The words as "command": as argv, or joined by spaces for the sandbox's shell. */
void spec_set_command(struct json_object *body, char *const *words, int count, int by_shell);

#define SPEC_SANDBOX_OPTIONS                                                                                       \
	{ "id", OPT_ID, "NAME", "its name; else one is made up", NULL },                                           \
		{ "cpu", OPT_CPU, "CORES", "such as 2, 500m or 0.5", NULL },                                       \
		{ "memory", 'm', "SIZE", "such as 512Mi or 2G", NULL },                                            \
		{ "disk", OPT_DISK, "SIZE", "what it may write to its files; 0: no limit", NULL },                 \
		{ "network", OPT_NETWORK, NULL, "it may reach the internet", NULL },                               \
		{ "egress", OPT_EGRESS, "ADDRESS",                                                                 \
			"it may reach these: 10.1.2.0/24, 1.2.3.4:443, [2001:db8::/32]:443; may be repeated",      \
			NULL },                                                                                    \
		{ "label", 'l', "NAME=VALUE", "a label; may be repeated", NULL },                                  \
		{ "ttl", OPT_TTL, "TIME", "it is removed after this time, whatever happens", NULL },               \
		{ "idle-timeout", OPT_IDLE, "TIME", "it is removed after this time without use", NULL },           \
	{                                                                                                          \
		"ready-timeout", OPT_READY_TIMEOUT, "TIME", "how long it may take to become ready", NULL           \
	}

#define SPEC_EXEC_OPTIONS                                                                                          \
	{ "env", 'e', "NAME[=VALUE]", "a variable, or ours of that name; may be repeated", NULL },                 \
		{ "cwd", 'w', "DIR", "the directory it runs in", NULL },                                           \
		{ "user", 'u', "USER", "name or number; else the image's", NULL },                                 \
		{ "timeout", OPT_TIMEOUT, "TIME", "then it is killed; else as the server is set", NULL },          \
		{ "lane", OPT_LANE, "NAME", "run beside the commands of other lanes", NULL },                      \
		{ "login-shell", OPT_LOGIN_SHELL, NULL, "run it by a login shell", NULL },                         \
		{ "shell", 'c', NULL, "the words are a line for the sandbox's shell", NULL },                      \
		{ "interactive", 'i', NULL, "our stdin is its stdin", NULL },                                      \
		{ "tty", 't', NULL, "at a terminal, shown in ours; see shell", NULL },                             \
	{                                                                                                          \
		"detach", 'd', NULL, "don't wait: print the job's id", NULL                                        \
	}

#endif
