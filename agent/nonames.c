/*
 * nonames.c - the agent resolves no names.
 *
 * libevent refers to the C library's resolver, which in a static program would
 * load the image's name service modules into PID 1. These definitions take its
 * place: every look-up fails, and none of that code is linked.
 */
/* SPDX-License-Identifier: MIT */
#include <netdb.h>
#include <stddef.h>

int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret_info)
{
	(void)node;
	(void)service;
	(void)hints;
	*ret_info = NULL;
	return EAI_FAIL;
}

void
freeaddrinfo(struct addrinfo *info)
{
	(void)info;
}

struct servent *
getservbyname(const char *name, const char *protocol)
{
	(void)name;
	(void)protocol;
	return NULL;
}

struct protoent *
getprotobynumber(int number)
{
	(void)number;
	return NULL;
}
