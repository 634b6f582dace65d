/*
 * pod_policy.c - the two policies, and whether one that stands is one of them.
 *
 * What is excepted is taken out of every range that is allowed, since policies know no rule that denies. A range that
 * lies in an excepted one as a whole is left out. What is excepted of IPv4 is so behind a NAT64 too. ::ffff:0:0/96 is no
 * way around: no packet has such an address, and the API server takes none.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_policy.h"

#include "base/err.h"
#include "base/ip_dest.h"
#include "base/json.h"
#include "conf/config.h"
#include "controller/pod_rules.h"
#include "controller/pod_spec.h"
#include "controller/pod_write.h"
#include "ipc/spawn_msg.h"

#include <json-c/json.h>
#include <string.h>

enum { PORT_DNS = 53 };

/* Where clouds tell machines their secrets: never reached, whatever the settings say. */
static const char *const link_local[] = { "fe80::/10", "fd00:ec2::254", "169.254.0.0/16" };
enum { LINK_LOCAL = sizeof link_local / sizeof link_local[0] };

static int
check_ranges(const char *setting, const struct config_list *list, struct err *err)
{
	struct ip_dest range = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		if (ip_dest_parse(list->items[i], &range, err) != 0)
			return err_prefix(err, "%s", setting);
		if (range.port != 0)
			return err_set(
				err, ERR_INVALID, "%s: \"%.60s\" must not name a port", setting, list->items[i]);
	}
	return 0;
}

int
pod_policy_check(const struct config *config, struct err *err)
{
	if (pod_rules_check_labels("orchestrator_pod_labels", &config->orchestrator_pod_labels, err) != 0)
		return -1;
	if (check_ranges("agent_ingress_cidrs", &config->agent_ingress_cidrs, err) != 0 ||
		check_ranges("pod_dns_cidrs", &config->pod_dns_cidrs, err) != 0)
		return -1;
	return check_ranges("egress_except_cidrs", &config->egress_except_cidrs, err);
}

static struct json_object *
policy_new(const struct config *config, const char *name)
{
	struct json_object *policy = pod_write_object(), *metadata, *labels;

	pod_write_text(policy, "apiVersion", "networking.k8s.io/v1");
	pod_write_text(policy, "kind", "NetworkPolicy");
	metadata = pod_write_in(policy, "metadata", pod_write_object());
	pod_write_text(metadata, "name", name);
	pod_write_text(metadata, "namespace", config->sandbox_namespace);
	labels = pod_write_in(metadata, "labels", pod_write_object());
	pod_write_text(labels, POD_SPEC_LABEL_APP, POD_SPEC_APP);
	return policy;
}

static void
add_port(struct json_object *ports, const char *protocol, int64_t port)
{
	pod_write_int(
		pod_write_text(pod_write_item(ports, pod_write_object()), "protocol", protocol), "port", port);
}

/* {"ports":...} of a rule that is for one port, or for both protocols when tcp_only is not set. */
static void
add_ports(struct json_object *rule, int64_t port, bool tcp_only)
{
	struct json_object *ports = pod_write_in(rule, "ports", pod_write_array());

	add_port(ports, "TCP", port);
	if (!tcp_only)
		add_port(ports, "UDP", port);
}

static struct json_object *
add_match(struct json_object *peer, const char *selector)
{
	return pod_write_in(pod_write_in(peer, selector, pod_write_object()), "matchLabels", pod_write_object());
}

static struct json_object *
add_block(struct json_object *peers, const struct ip_dest *range)
{
	struct json_object *block = pod_write_in(
		pod_write_item(peers, pod_write_object()), "ipBlock", pod_write_object());
	char text[IP_DEST_TEXT_SIZE];

	ip_dest_cidr(range, text);
	return pod_write_text(block, "cidr", text);
}

static void
add_blocks(struct json_object *peers, const struct config_list *list)
{
	struct ip_dest range;
	struct err err;

	for (size_t i = 0; i < list->count; i++)
		if (ip_dest_parse(list->items[i], &range, &err) == 0)
			add_block(peers, &range);
}

/*
 * Of the excepted ranges: link-local, then those of the settings, each twice: as it is, and what a NAT64 makes of it. False:
 * there is none from that number on.
 */
static bool
excepted_from(const struct config *config, size_t *at, struct ip_dest *ret_range)
{
	const struct config_list *list = &config->egress_except_cidrs;
	struct err err;

	for (size_t i = (*at)++; i / 2 < LINK_LOCAL + list->count; i = (*at)++) {
		const char *text = i / 2 < LINK_LOCAL ? link_local[i / 2] : list->items[i / 2 - LINK_LOCAL];

		if (ip_dest_parse(text, ret_range, &err) != 0 || (i % 2 == 1 && !ip_dest_is_v4(ret_range)))
			continue;
		if (i % 2 == 1)
			*ret_range = ip_dest_nat64(ret_range);
		return true;
	}
	return false;
}

static bool
is_excepted(const struct config *config, const struct ip_dest *range)
{
	struct ip_dest excepted;
	size_t at = 0;

	while (excepted_from(config, &at, &excepted))
		if (ip_dest_contains(&excepted, range))
			return true;
	return false;
}

/* A rule to one range without what is excepted; none when nothing is left of it. */
static void
add_way_out(struct json_object *rules, const struct config *config, const struct ip_dest *range)
{
	struct json_object *rule, *block, *excepts = NULL;
	struct ip_dest excepted;
	char text[IP_DEST_TEXT_SIZE];
	size_t at = 0;

	if (is_excepted(config, range))
		return;
	rule = pod_write_item(rules, pod_write_object());
	block = add_block(pod_write_in(rule, "to", pod_write_array()), range);
	while (excepted_from(config, &at, &excepted)) {
		if (!ip_dest_contains(range, &excepted))
			continue;
		if (excepts == NULL)
			excepts = pod_write_in(block, "except", pod_write_array());
		ip_dest_cidr(&excepted, text);
		pod_write_item_text(excepts, text);
	}
	if (range->port != 0)
		add_ports(rule, range->port, false);
}

static void
add_internet(struct json_object *rules, const struct config *config)
{
	static const char *const all[] = { "0.0.0.0/0", "::/0" };
	struct ip_dest range;
	struct err err;

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (ip_dest_parse(all[i], &range, &err) == 0)
			add_way_out(rules, config, &range);
}

/* The cluster's own name servers, and those of the settings, which may be link-local. */
static void
add_dns(struct json_object *rules, const struct config *config)
{
	struct json_object *rule = pod_write_item(rules, pod_write_object());
	struct json_object *peers = pod_write_in(rule, "to", pod_write_array());
	struct json_object *peer = pod_write_item(peers, pod_write_object());

	pod_write_text(add_match(peer, "namespaceSelector"), "kubernetes.io/metadata.name", "kube-system");
	pod_write_text(add_match(peer, "podSelector"), "k8s-app", "kube-dns");
	add_blocks(peers, &config->pod_dns_cidrs);
	add_ports(rule, PORT_DNS, false);
}

static void
add_servers(struct json_object *peers, const struct config *config, const char *namespace)
{
	const struct config_list *labels = &config->orchestrator_pod_labels;
	struct json_object *peer = pod_write_item(peers, pod_write_object());

	pod_write_text(add_match(peer, "namespaceSelector"), "kubernetes.io/metadata.name", namespace);
	if (labels->count > 0)
		pod_write_in(pod_write_in(peer, "podSelector", pod_write_object()), "matchLabels",
			pod_rules_labels(labels));
}

struct json_object *
pod_policy_default(const struct config *config, const char *server_namespace)
{
	struct json_object *policy = policy_new(config, POD_POLICY_DEFAULT_NAME);
	struct json_object *spec = pod_write_in(policy, "spec", pod_write_object());
	struct json_object *types, *rules, *peers = pod_write_array();

	if (config->orchestrator_namespace[0] != '\0')
		server_namespace = config->orchestrator_namespace;
	pod_write_in(spec, "podSelector", pod_write_object());
	types = pod_write_in(spec, "policyTypes", pod_write_array());
	pod_write_item_text(types, "Ingress");
	pod_write_item_text(types, "Egress");
	if (server_namespace != NULL && server_namespace[0] != '\0')
		add_servers(peers, config, server_namespace);
	add_blocks(peers, &config->agent_ingress_cidrs);
	rules = pod_write_in(spec, "ingress", pod_write_array());
	if (json_object_array_length(peers) == 0) { /* a rule without peers would let everybody in */
		json_object_put(peers);
		return policy;
	}
	pod_write_in(pod_write_item(rules, pod_write_object()), "from", peers);
	add_ports(json_object_array_get_idx(rules, 0), POD_SPEC_PORT, true);
	return policy;
}

static void
add_owner(struct json_object *metadata, const char *pod_name, const char *pod_uid)
{
	struct json_object *owners = pod_write_in(metadata, "ownerReferences", pod_write_array());
	struct json_object *owner = pod_write_item(owners, pod_write_object());

	pod_write_text(owner, "apiVersion", "v1");
	pod_write_text(owner, "kind", "Pod");
	pod_write_text(owner, "name", pod_name);
	pod_write_text(owner, "uid", pod_uid);
}

struct json_object *
pod_policy_allow(const struct config *config, const struct spawn_create *create, const char *pod_uid)
{
	char name[POD_SPEC_NAME_SIZE];
	struct json_object *policy, *metadata, *labels, *spec, *rules;

	pod_spec_name(create->id, name);
	policy = policy_new(config, name);
	metadata = json_object_object_get(policy, "metadata");
	labels = json_object_object_get(metadata, "labels");
	pod_write_text(labels, POD_SPEC_LABEL_ID, create->id);
	pod_write_text(labels, POD_SPEC_LABEL_UID, create->uid);
	add_owner(metadata, name, pod_uid);
	spec = pod_write_in(policy, "spec", pod_write_object());
	pod_write_text(add_match(spec, "podSelector"), POD_SPEC_LABEL_UID, create->uid);
	pod_write_item_text(pod_write_in(spec, "policyTypes", pod_write_array()), "Egress");
	rules = pod_write_in(spec, "egress", pod_write_array());
	add_dns(rules, config);
	if (!create->egress.limited)
		add_internet(rules, config);
	for (uint32_t i = 0; create->egress.limited && i < create->egress.count && i < EGRESS_MAX; i++)
		add_way_out(rules, config, &create->egress.allow[i]);
	return policy;
}
