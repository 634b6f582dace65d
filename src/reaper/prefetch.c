/*
 * prefetch.c - tells the driver which images are to be here and to stay.
 *
 * The whole list is told each time: a driver that has forgotten it, or could not fetch one of them, hears of it again.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "backend/driver.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "domain/service.h"

enum { NAME_SIZE = 512 };

void
prefetch_images(struct service *service)
{
	const struct config *config = service_config(service);
	struct driver *driver = service_driver(service);
	char image[NAME_SIZE];
	struct err err;

	if (driver->ops->prefetch == NULL)
		return;
	driver->ops->prefetch(driver, "", true);
	for (size_t i = 0; i < config->image_prefetch.count; i++) {
		if (driver_image_resolve(config, config->image_prefetch.items[i], image, sizeof image, &err) == 0)
			driver->ops->prefetch(driver, image, false);
		else
			log_warn("image_prefetch: %s", err.msg);
	}
}
