/* here.h - whether a server is this host, as its URL says it. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_CLIENT_HERE_H
#define ORCHARDCTL_CLIENT_HERE_H

#include <stdbool.h>

/* localhost, a name below it, or an address of the loopback; read as libcurl reads it, which connects. */
bool url_is_here(const char *url);

#endif
