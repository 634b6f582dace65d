/* resources.h - what the driver says of this host, kept and asked for. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_RESOURCES_H
#define ORCHARD_DOMAIN_RESOURCES_H

struct service;

/* Asks the driver what the host has, so that creates which can never fit are refused at once. */
void service_learn_host(struct service *service);
void host_ask_free_all(struct service *service);

#endif
