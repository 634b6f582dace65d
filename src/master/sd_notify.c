/*
 * sd_notify.c - the few words of the service manager's protocol that we use.
 *
 * Losing one is no fault of the server: problems are logged and forgotten.
 */
/* SPDX-License-Identifier: MIT */
#include "master/sd_notify.h"

#include "base/cleanup.h"
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static struct sockaddr_un manager;
static socklen_t manager_len; /* 0: there is none */

void
sd_notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path != NULL ? strlen(path) : 0;

	manager_len = 0;
	if (len < 2 || len >= sizeof manager.sun_path || (path[0] != '/' && path[0] != '@')) {
		if (len > 0)
			log_warn("NOTIFY_SOCKET is no socket address: %s", path);
	} else {
		memset(&manager, 0, sizeof manager);
		manager.sun_family = AF_UNIX;
		memcpy(manager.sun_path, path, len);
		if (path[0] == '@')
			manager.sun_path[0] = '\0';
		manager_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	}
	unsetenv("NOTIFY_SOCKET");
}

static void
sd_notify_send(const char *text)
{
	AUTO_FD fd = -1;

	if (manager_len == 0)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
		sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&manager,
			manager_len) < 0)
		log_warn("the service manager cannot be told \"%s\": %s", text, strerror(errno));
}

void
sd_notify_ready(const char *status)
{
	char text[512];

	snprintf(text, sizeof text, "READY=1\nSTATUS=%s", status);
	sd_notify_send(text);
}

void
sd_notify_reloading(void)
{
	struct timespec now;
	char text[128];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=Reloading",
		(int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	sd_notify_send(text);
}

void
sd_notify_stopping(int64_t at_most_ms)
{
	char text[128];

	snprintf(text, sizeof text, "STOPPING=1\nSTATUS=Stopping\nEXTEND_TIMEOUT_USEC=%" PRId64, at_most_ms * 1000);
	sd_notify_send(text);
}
