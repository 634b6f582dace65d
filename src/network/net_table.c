/*
 * net_table.c - the rules of the gateway, and the few on the host, as text.
 *
 * A table is replaced whole in one transaction: there is no moment with half of it.
 * The order of the gateway's rules is the policy: what nobody may reach, name
 * servers, what a sandbox's own list names, private addresses, the rest.
 */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"
#include "conf/config.h"

#include <errno.h>
#include <nftables/libnftables.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Connections of one sandbox at a time, so that none can fill the kernel's table of them. */
enum { CONNECTIONS_MAX = 4096 };

/* This host, this link, multicast, reserved; cloud metadata above all. */
#define NEVER "0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 100.100.100.200, 192.0.0.192, 224.0.0.0/3"
/* Private by RFC 1918, shared by RFC 6598, special purposes, and one cloud's host agent. */
#define PRIVATE                                                                                                    \
	"10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, 192.0.0.0/24, 198.18.0.0/15, 168.63.129.16"

static const char gate_chains[] =
	"	chain spoofed {\n"
	"		type filter hook prerouting priority raw; policy accept;\n"
	"		iifname \"box-*\" fib saddr . iif oif missing drop\n"
	"	}\n"
	"	chain forward {\n"
	"		type filter hook forward priority filter; policy drop;\n"
	"		ct state established,related accept\n"
	"		ct state invalid drop\n"
	"		iifname != \"box-*\" drop\n"
	"		oifname != \"uplink\" reject with icmpx admin-prohibited\n"
	"		ip daddr @never reject with icmp admin-prohibited\n"
	"		ip daddr @host reject with icmp admin-prohibited\n"
	"		add @connections { ip saddr ct count over %d } drop\n"
	"		ip daddr @dns meta l4proto { tcp, udp } th dport 53 accept\n"
	"		ip daddr @blocked reject with icmp admin-prohibited\n"
	"		ip saddr . ip daddr @allow accept\n"
	"		meta l4proto { tcp, udp } ip saddr . ip daddr . th dport @allow_port accept\n"
	"		ip daddr @private reject with icmp admin-prohibited\n"
	"		ip saddr @open accept\n"
	"		reject with icmpx admin-prohibited\n"
	"	}\n"
	"	chain input {\n"
	"		type filter hook input priority filter; policy drop;\n"
	"		iifname \"box-*\" reject with icmpx admin-prohibited\n"
	"	}\n"
	"	chain output {\n"
	"		type filter hook output priority filter; policy drop;\n"
	"		meta l4proto icmp accept\n"
	"	}\n"
	"}\n";

static const char host_chains[] = "	chain postrouting {\n"
				  "		type nat hook postrouting priority srcnat; policy accept;\n"
				  "		ip saddr %s oifname != \"%s\" masquerade\n"
				  "	}\n"
				  "	chain input {\n"
				  "		type filter hook input priority filter; policy accept;\n"
				  "		iifname \"%s\" drop\n"
				  "	}\n"
				  "}\n";

/* One a line, and each chain has a line that says what it is. */
static unsigned
count_rules(const char *chains)
{
	unsigned rules = 0;

	for (const char *at = chains; (at = strstr(at, "\n\t\t")) != NULL; at++)
		rules += strncmp(at + strlen("\n\t\t"), "type ", strlen("type ")) != 0;
	return rules;
}

unsigned
net_table_rules(void)
{
	return count_rules(gate_chains);
}

unsigned
net_table_host_rules(void)
{
	return count_rules(host_chains);
}

/* An empty list of elements is not written at all. */
static void
write_set(FILE *out, const char *name, const char *type, const char *elements)
{
	fprintf(out, "	set %s {\n		type %s;\n", name, type);
	if (elements[0] != '\0')
		fprintf(out, "		elements = { %s }\n", elements);
	fprintf(out, "	}\n");
}

static void
write_addresses(FILE *out, const uint32_t *addresses, size_t count)
{
	char text[IP_RANGE_TEXT_SIZE];

	for (size_t i = 0; i < count; i++) {
		ip_range_text(&(struct ip_range){ addresses[i], 32, 0 }, text);
		fprintf(out, "%s%s", i > 0 ? ", " : "", text);
	}
}

static void
write_address_set(FILE *out, const char *name, const uint32_t *addresses, size_t count)
{
	fprintf(out, "	set %s {\n		type ipv4_addr;\n", name);
	if (count > 0) {
		fprintf(out, "		elements = { ");
		write_addresses(out, addresses, count);
		fprintf(out, " }\n");
	}
	fprintf(out, "	}\n");
}

static void
write_never(FILE *out, const struct net *net)
{
	fprintf(out, "	set never {\n		type ipv4_addr; flags interval; auto-merge;\n");
	fprintf(out, "		elements = { " NEVER ", %s }\n	}\n", net->config->network_subnet);
}

static void
write_blocked(FILE *out, const struct net *net)
{
	const struct config_list *blocked = &net->config->network_blocked_cidrs;

	fprintf(out, "	set blocked {\n		type ipv4_addr; flags interval; auto-merge;\n");
	for (size_t i = 0; i < blocked->count; i++)
		fprintf(out, "%s%s", i == 0 ? "		elements = { " : ", ", blocked->items[i]);
	fprintf(out, "%s	}\n", blocked->count > 0 ? " }\n" : "");
}

static void
write_grant(FILE *out, const struct net_grant *grant)
{
	const struct egress *egress = &grant->egress;
	char from[IP_RANGE_TEXT_SIZE], to[IP_RANGE_TEXT_SIZE];

	ip_range_text(&(struct ip_range){ grant->address, 32, 0 }, from);
	if (!egress->limited)
		fprintf(out, "add element inet orchard open { %s }\n", from);
	for (uint32_t i = 0; egress->limited && i < egress->count; i++) {
		struct ip_range range;

		if (!net_element_counts(egress, i))
			continue;
		range = ip_dest_v4(&egress->allow[i]);
		range.port = 0;
		ip_range_text(&range, to);
		if (egress->allow[i].port == 0)
			fprintf(out, "add element inet orchard allow { %s . %s }\n", from, to);
		else
			fprintf(out, "add element inet orchard allow_port { %s . %s . %u }\n", from, to,
				egress->allow[i].port);
	}
}

/* Adding before deleting works whether it is there or not. */
static void
write_replacement(FILE *out, const char *family, const char *name)
{
	fprintf(out, "add table %s %s\ndelete table %s %s\ntable %s %s {\n", family, name, family, name, family,
		name);
}

/* The library ends the process when the kernel has no netlink for it: asked first. */
static int
run(const char *text, const char *what, struct err *err)
{
	AUTO_FD probe = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	struct nft_ctx *ctx = probe >= 0 ? nft_ctx_new(NFT_CTX_DEFAULT) : NULL;
	const char *said;
	int rc;

	if (ctx == NULL)
		return err_set(err, ERR_UNSUPPORTED, "%s: the kernel has no nf_tables", what);
	nft_ctx_buffer_error(ctx);
	nft_ctx_buffer_output(ctx);
	rc = nft_run_cmd_from_buffer(ctx, text);
	if (rc != 0) {
		said = nft_ctx_get_error_buffer(ctx);
		err_set(err, ERR_UNSUPPORTED, "%s (the kernel needs nf_tables with fib, ct, reject and masq): %.*s",
			what, (int)strcspn(said, "\n"), said);
	}
	nft_ctx_free(ctx);
	return rc == 0 ? 0 : -1;
}

int
net_table_load(const struct net *net, const struct net_member *members, size_t count, const uint32_t *host,
	size_t host_count, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	FILE *out = must_alloc(open_memstream(&text, &len));
	int rc;

	write_replacement(out, "inet", "orchard");
	write_never(out, net);
	write_blocked(out, net);
	write_set(out, "private", "ipv4_addr; flags interval; auto-merge",
		net->config->network_block_private ? PRIVATE : "");
	write_address_set(out, "host", host, host_count);
	write_address_set(out, "dns", net->dns, net->dns_count);
	write_set(out, "open", "ipv4_addr", "");
	write_set(out, "allow", "ipv4_addr . ipv4_addr; flags interval", "");
	write_set(out, "allow_port", "ipv4_addr . ipv4_addr . inet_service; flags interval", "");
	write_set(out, "connections", "ipv4_addr; flags dynamic; size 65536", "");
	fprintf(out, gate_chains, CONNECTIONS_MAX);
	for (size_t i = 0; i < count; i++)
		write_grant(out, &members[i].grant);
	if (fclose(out) != 0)
		abort();
	if (net_space_enter(net->gate_ns, err) != 0)
		return -1;
	rc = run(text, "rules of the gateway", err);
	net_space_leave(net);
	return rc;
}

int
net_table_load_host(const struct net *net, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	FILE *out = must_alloc(open_memstream(&text, &len));

	write_replacement(out, "ip", net->device);
	fprintf(out, host_chains, net->config->network_subnet, net->device, net->device);
	if (fclose(out) != 0)
		abort();
	return run(text, "our table on the host", err);
}

int
net_table_unload_host(const struct net *net, struct err *err)
{
	char text[128];

	snprintf(text, sizeof text, "add table ip %s\ndelete table ip %s\n", net->device, net->device);
	return run(text, "our table on the host", err);
}
