/* host.c - the name of the place where sandboxes are. */
/* SPDX-License-Identifier: MIT */
#include "cluster/host.h"
#include "base/proc.h"
#include "conf/config.h"

#include <stdio.h>

void
cluster_host(const struct config *config, char ret_host[ID_UUID_SIZE])
{
	if (config_is_kubernetes(config))
		snprintf(ret_host, ID_UUID_SIZE, "kubernetes");
	else
		proc_boot_id(ret_host);
}
