/* alloc.c - the one place where small allocations fail. */
/* SPDX-License-Identifier: MIT */
#include "domain/service_priv.h"

#include <stdlib.h>

void *
service_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (p == NULL)
		abort();
	return p;
}
