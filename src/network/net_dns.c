/*
 * net_dns.c - the name servers that sandboxes ask.
 *
 * A resolver on the host's loopback is a door to the host, so none of them can be used; what systemd-resolved
 * asks itself stands in a file of its own.
 */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "conf/config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { RESOLV_MAX = 64 * 1024 };

static void
add_server(struct net *net, const char *text, bool *ret_loopback)
{
	const struct ip_range loopback = { 0x7f000000, 8, 0 }, link_local = { 0xa9fe0000, 16, 0 };
	struct ip_range server;
	struct err err;

	if (ip_range_parse(text, &server, &err) != 0 || server.prefix != 32 || server.port != 0)
		return; /* IPv6, most likely */
	if (ip_range_contains(&loopback, &server))
		*ret_loopback = true;
	else if (ip_range_contains(&link_local, &server))
		log_warn("the name server %.40s is link-local, which no sandbox reaches; set network_dns", text);
	else if (net->dns_count < NET_DNS_MAX)
		net->dns[net->dns_count++] = server.address;
}

/* True when it names a server on loopback. */
static bool
read_resolv(struct net *net, const char *path)
{
	AUTO_FREE char *text = NULL;
	bool loopback = false;
	char *line, *rest, *word, *inner;
	struct err err;
	size_t len;

	if (file_read_at(AT_FDCWD, path, RESOLV_MAX, &text, &len, &err) != 0)
		return false;
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		word = strtok_r(line, " \t\r", &inner);
		if (word == NULL || strcmp(word, "nameserver") != 0)
			continue;
		word = strtok_r(NULL, " \t\r", &inner);
		if (word != NULL)
			add_server(net, word, &loopback);
	}
	return loopback;
}

void
net_dns_read(struct net *net)
{
	const struct config_list *wanted = &net->config->network_dns;
	bool loopback = false;

	net->dns_count = 0;
	for (size_t i = 0; i < wanted->count; i++)
		add_server(net, wanted->items[i], &loopback);
	if (wanted->count == 0) {
		loopback = read_resolv(net, "/etc/resolv.conf");
		if (net->dns_count == 0 && loopback)
			(void)read_resolv(net, "/run/systemd/resolve/resolv.conf");
	}
	if (net->dns_count == 0)
		log_warn("sandboxes with a network resolve no names: %s; set network_dns",
			loopback ? "the only name server is one on the host's loopback"
				 : "no name server is known");
}

void
net_resolv_text(const struct net *net, char *buf, size_t size)
{
	char text[IP_RANGE_TEXT_SIZE];
	int len = snprintf(buf, size, "# set by orchard, network_dns\n");

	for (unsigned i = 0; i < net->dns_count && len > 0 && (size_t)len < size; i++) {
		ip_range_text(&(struct ip_range){ net->dns[i], 32, 0 }, text);
		len += snprintf(buf + len, size - (size_t)len, "nameserver %s\n", text);
	}
}
