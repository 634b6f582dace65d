/* test_pod_policy.c - the policies of the namespace and of sandboxes, and which of those that stand are ours. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_policy.h"

#include "base/ip_dest.h"
#include "ipc/spawn_msg.h"
#include "pods.h"

static const struct spawn_create order = { .id = "a1", .uid = "11111111-2222-3333-4444-555555555555" };

static void
test_default_denies_all_but_the_servers(void **state)
{
	struct config *config = PODS_CONFIG();
	AUTO_JSON struct json_object *policy = pod_policy_default(config, "orchard");

	(void)state;
	assert_string_equal(pods_text(policy, "metadata/name"), POD_POLICY_DEFAULT_NAME);
	assert_string_equal(pods_text(policy, "metadata/namespace"), "sandbox-pods");
	assert_string_equal(pods_text(policy, "spec/podSelector"), "{}");
	assert_string_equal(pods_text(policy, "spec/policyTypes"), "[\"Ingress\",\"Egress\"]");
	assert_string_equal(pods_text(policy, "spec/egress"), "");
	assert_string_equal(pods_text(policy, "spec/ingress"),
		"[{\"from\":[{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/"
		"metadata.name\":\"orchard\"}},"
		"\"podSelector\":{\"matchLabels\":{\"app\":\"orchard\"}}}],"
		"\"ports\":[{\"protocol\":\"TCP\",\"port\":9090}]}]");
	config_free(config);
}

static void
test_servers_outside_the_cluster(void **state)
{
	struct config *config = PODS_CONFIG("AGENT_INGRESS_CIDRS", "192.0.2.7, 198.51.100.0/24");
	AUTO_JSON struct json_object *some = pod_policy_default(config, NULL), *none = NULL;

	(void)state;
	assert_string_equal(pods_text(some, "spec/ingress/0/from"),
		"[{\"ipBlock\":{\"cidr\":\"192.0.2.7/32\"}},{\"ipBlock\":{\"cidr\":\"198.51.100.0/24\"}}]");
	config_free(config);
	config = PODS_CONFIG();
	none = pod_policy_default(config, ""); /* nobody, and not everybody */
	assert_string_equal(pods_text(none, "spec/ingress"), "[]");
	config_free(config);
	config = PODS_CONFIG("ORCHESTRATOR_NAMESPACE", "told", "ORCHESTRATOR_POD_LABELS", "");
	json_object_put(none);
	none = pod_policy_default(config, "own");
	assert_string_equal(pods_text(none, "spec/ingress/0/from"),
		"[{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":\"told\"}}}]");
	config_free(config);
}

static void
test_internet_without_what_is_private(void **state)
{
	struct config *config = PODS_CONFIG("EGRESS_EXCEPT_CIDRS", "10.0.0.0/8, 172.16.0.0/12");
	AUTO_JSON struct json_object *policy = pod_policy_allow(config, &order, "pod-1");

	(void)state;
	assert_string_equal(pods_text(policy, "metadata/name"), "sandbox-a1");
	assert_string_equal(pods_text(policy, "metadata/ownerReferences"),
		"[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"sandbox-a1\",\"uid\":\"pod-1\"}]");
	assert_string_equal(pods_text(policy, "spec/podSelector/matchLabels"),
		"{\"sandbox-uid\":\"11111111-2222-3333-4444-555555555555\"}");
	assert_string_equal(pods_text(policy, "spec/policyTypes"), "[\"Egress\"]");
	assert_string_equal(pods_text(policy, "spec/egress/0/to/0/podSelector/matchLabels/k8s-app"), "kube-dns");
	assert_string_equal(pods_text(policy, "spec/egress/0/to/1/ipBlock/cidr"), "169.254.20.10/32");
	assert_string_equal(pods_text(policy, "spec/egress/0/ports"),
		"[{\"protocol\":\"TCP\",\"port\":53},{\"protocol\":\"UDP\",\"port\":53}]");
	assert_string_equal(pods_text(policy, "spec/egress/1"),
		"{\"to\":[{\"ipBlock\":{\"cidr\":\"0.0.0.0/0\","
		"\"except\":[\"169.254.0.0/16\",\"10.0.0.0/8\",\"172.16.0.0/12\"]}}]}");
	config_free(config);
}

static void
test_ipv6_without_what_is_private(void **state)
{
	struct config *config = PODS_CONFIG("EGRESS_EXCEPT_CIDRS", "2001:db8:1::/48, 10.0.0.0/8, fc00::/7",
		"POD_DNS_CIDRS", "fd00:10::a", "AGENT_INGRESS_CIDRS", "2001:db8::7");
	AUTO_JSON struct json_object *allow = pod_policy_allow(config, &order, "pod-1");
	AUTO_JSON struct json_object *deny = pod_policy_default(config, NULL);

	(void)state;
	assert_string_equal(
		pods_text(deny, "spec/ingress/0/from"), "[{\"ipBlock\":{\"cidr\":\"2001:db8::7/128\"}}]");
	assert_string_equal(pods_text(allow, "spec/egress/0/to/1/ipBlock/cidr"), "fd00:10::a/128");
	assert_string_equal(pods_text(allow, "spec/egress/1/to/0/ipBlock"),
		"{\"cidr\":\"0.0.0.0/0\",\"except\":[\"169.254.0.0/16\",\"10.0.0.0/8\"]}");
	assert_string_equal(pods_text(allow, "spec/egress/2/to/0/ipBlock"),
		"{\"cidr\":\"::/0\",\"except\":[\"fe80::/10\",\"fd00:ec2::254/128\",\"64:ff9b::a9fe:0/112\","
		"\"2001:db8:1::/48\",\"64:ff9b::a00:0/104\",\"fc00::/7\"]}");
	config_free(config);
	config = PODS_CONFIG("EGRESS_EXCEPT_CIDRS", "::/0");
	json_object_put(allow);
	allow = pod_policy_allow(config, &order, "pod-1");
	assert_int_equal(json_object_array_length(pods_at(allow, "spec/egress")), 2); /* none of IPv6 */
	config_free(config);
}

static struct json_object *
policy_limited_to(const struct config *config, const char *const *named, size_t count)
{
	struct spawn_create create = order;
	struct err err;

	create.egress.limited = true;
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ip_dest_parse(named[i], &create.egress.allow[create.egress.count++], &err), 0);
	return pod_policy_allow(config, &create, "pod-1");
}

/* What a sandbox names is allowed without what is excepted; what is excepted as a whole is not, whatever it names. */
static void
test_limited_egress(void **state)
{
	static const char *const named[] = { "192.0.2.1:443", "10.1.2.3", "169.254.169.254", "8.0.0.0/5",
		"0.0.0.0/0" };
	struct config *config = PODS_CONFIG("EGRESS_EXCEPT_CIDRS", "10.0.0.0/8");
	AUTO_JSON struct json_object *policy = NULL;

	(void)state;
	policy = policy_limited_to(config, named, sizeof named / sizeof named[0]);
	assert_int_equal(json_object_array_length(pods_at(policy, "spec/egress")), 4); /* with DNS */
	assert_string_equal(pods_text(policy, "spec/egress/1"),
		"{\"to\":[{\"ipBlock\":{\"cidr\":\"192.0.2.1/32\"}}],"
		"\"ports\":[{\"protocol\":\"TCP\",\"port\":443},{\"protocol\":\"UDP\",\"port\":443}]}");
	assert_string_equal(pods_text(policy, "spec/egress/2/to/0/ipBlock"),
		"{\"cidr\":\"8.0.0.0/5\",\"except\":[\"10.0.0.0/8\"]}");
	assert_string_equal(pods_text(policy, "spec/egress/3/to/0/ipBlock"),
		"{\"cidr\":\"0.0.0.0/0\",\"except\":[\"169.254.0.0/16\",\"10.0.0.0/8\"]}");
	config_free(config);
}

/* The same of IPv6, each family without what is excepted of it. */
static void
test_limited_egress_of_ipv6(void **state)
{
	static const char *const named[] = { "[2001:db8::1]:443", "fd12::/16", "fd00:ec2::/32", "fe80::1",
		"64:ff9b::a9fe:a9fe", "64:ff9b::/96", "::/0", "2001:db8:1:2::/64", "8.0.0.0/8" };
	struct config *config = PODS_CONFIG("EGRESS_EXCEPT_CIDRS", "10.0.0.0/8, fd12::/16, 2001:db8:1::/48");
	AUTO_JSON struct json_object *policy = NULL;

	(void)state;
	policy = policy_limited_to(config, named, sizeof named / sizeof named[0]);
	assert_int_equal(json_object_array_length(pods_at(policy, "spec/egress")), 6); /* with DNS */
	assert_string_equal(pods_text(policy, "spec/egress/1"),
		"{\"to\":[{\"ipBlock\":{\"cidr\":\"2001:db8::1/128\"}}],"
		"\"ports\":[{\"protocol\":\"TCP\",\"port\":443},{\"protocol\":\"UDP\",\"port\":443}]}");
	assert_string_equal(pods_text(policy, "spec/egress/2/to/0/ipBlock"),
		"{\"cidr\":\"fd00:ec2::/32\",\"except\":[\"fd00:ec2::254/128\"]}");
	assert_string_equal(pods_text(policy, "spec/egress/3/to/0/ipBlock"),
		"{\"cidr\":\"64:ff9b::/96\",\"except\":[\"64:ff9b::a9fe:0/112\",\"64:ff9b::a00:0/104\"]}");
	assert_string_equal(pods_text(policy, "spec/egress/4/to/0/ipBlock"),
		"{\"cidr\":\"::/0\",\"except\":[\"fe80::/10\",\"fd00:ec2::254/128\",\"64:ff9b::a9fe:0/112\","
		"\"64:ff9b::a00:0/104\",\"fd12::/16\",\"2001:db8:1::/48\"]}");
	assert_string_equal(pods_text(policy, "spec/egress/5/to/0/ipBlock"), "{\"cidr\":\"8.0.0.0/8\"}");
	config_free(config);
}

static void
test_policies_are_compared_by_meaning(void **state)
{
	static const struct {
		const char *standing, *wanted;
		bool equal;
	} pairs[] = {
		{ "{'spec':{'podSelector':{}}}",
			"{'spec':{'podSelector':{},'policyTypes':['Ingress'],'ingress':[]}}", true },
		{ "{'metadata':{'resourceVersion':'7','labels':{'x':'y'}},'spec':{'podSelector':{'matchLabels':{}}}"
		  "}",
			"{'spec':{'podSelector':{}}}", true },
		{ "{'spec':{'podSelector':{},'policyTypes':['Egress','Ingress']}}",
			"{'spec':{'policyTypes':['Ingress','Egress'],'podSelector':{}}}", true },
		{ "{'spec':{'podSelector':{},'ingress':[{'ports':[{'port':9090}]}]}}",
			"{'spec':{'podSelector':{},'ingress':[{'ports':[{'protocol':'TCP','port':9090}]}]}}",
			true },
		{ "{'spec':{'podSelector':{},'egress':[{'to':[{'ipBlock':{'cidr':'0.0.0.0/"
		  "0','except':['a','b']}}]}]}}",
			"{'spec':{'podSelector':{},'egress':[{'to':[{'ipBlock':{'except':['b','a'],'cidr':'0.0.0.0/"
			"0'}}]}]}}",
			true },
		{ "{'spec':{'podSelector':{},'policyTypes':['Ingress']}}",
			"{'spec':{'podSelector':{},'policyTypes':['Ingress','Egress']}}", false },
		{ "{'spec':{'podSelector':{'matchLabels':{'a':'b'}}}}", "{'spec':{'podSelector':{}}}", false },
		/* a rule without peers lets everybody in; no rule, nobody */
		{ "{'spec':{'podSelector':{},'ingress':[{}]}}", "{'spec':{'podSelector':{},'ingress':[]}}", false },
		/* every namespace is not this namespace */
		{ "{'spec':{'podSelector':{},'ingress':[{'from':[{'namespaceSelector':{},'podSelector':{}}]}]}}",
			"{'spec':{'podSelector':{},'ingress':[{'from':[{'podSelector':{}}]}]}}", false },
		{ "{'spec':{'podSelector':{},'ingress':[{'ports':[{'port':9090,'endPort':9999}]}]}}",
			"{'spec':{'podSelector':{},'ingress':[{'ports':[{'port':9090}]}]}}", false },
		{ "{'spec':{'podSelector':{},'egress':[{'ports':[{'port':53,'protocol':'UDP'}]}]}}",
			"{'spec':{'podSelector':{},'egress':[{'ports':[{'port':53}]}]}}", false },
		{ "{'metadata':{'ownerReferences':[{'uid':'a'}]},'spec':{'podSelector':{}}}",
			"{'metadata':{'ownerReferences':[{'uid':'b'}]},'spec':{'podSelector':{}}}", false },
		{ "{'metadata':{'ownerReferences':[]},'spec':{'podSelector':{}}}", "{'spec':{'podSelector':{}}}",
			true },
		{ "{}", "{'spec':{'podSelector':{}}}", false },
		{ "{'spec':[]}", "{'spec':{'podSelector':{}}}", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		AUTO_JSON struct json_object *a = pods_json(pairs[i].standing), *b = pods_json(pairs[i].wanted);

		if (pod_policy_equal(a, b) != pairs[i].equal || pod_policy_equal(b, a) != pairs[i].equal)
			fail_msg("%s and %s: not %s", pairs[i].standing, pairs[i].wanted,
				pairs[i].equal ? "equal" : "different");
	}
}

static void
test_settings_are_checked(void **state)
{
	static const struct {
		const char *name, *value, *words;
	} cases[] = {
		{ "EGRESS_EXCEPT_CIDRS", "10.0.0.1/8", "egress_except_cidrs" },
		{ "EGRESS_EXCEPT_CIDRS", "10.0.0.0/8:80", "port" },
		{ "POD_DNS_CIDRS", "fe80::1/10",
			"pod_dns_cidrs: \"fe80::1/10\" is not where a range of that size begins; "
			"write fe80::/10" },
		{ "POD_DNS_CIDRS", "fe80::/129", "from 0 to 128" },
		{ "EGRESS_EXCEPT_CIDRS", "fe80::g", "no IPv6 address" },
		{ "EGRESS_EXCEPT_CIDRS", "[fd00::1]:80", "must not name a port" },
		{ "EGRESS_EXCEPT_CIDRS", "::ffff:10.0.0.0/104", "IPv4 written as IPv6; write 10.0.0.0/8" },
		{ "AGENT_INGRESS_CIDRS", "fe80::1%eth0", "no IPv6 address" },
		{ "AGENT_INGRESS_CIDRS", "everywhere", "agent_ingress_cidrs" },
		{ "ORCHESTRATOR_POD_LABELS", "app", "name=value" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct config *config = PODS_CONFIG(cases[i].name, cases[i].value);
		struct err err;

		assert_int_equal(pod_policy_check(config, &err), -1);
		if (strstr(err.msg, cases[i].words) == NULL)
			fail_msg("%s=%s: %s", cases[i].name, cases[i].value, err.msg);
		config_free(config);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default_denies_all_but_the_servers),
		cmocka_unit_test(test_servers_outside_the_cluster),
		cmocka_unit_test(test_internet_without_what_is_private),
		cmocka_unit_test(test_ipv6_without_what_is_private),
		cmocka_unit_test(test_limited_egress),
		cmocka_unit_test(test_limited_egress_of_ipv6),
		cmocka_unit_test(test_policies_are_compared_by_meaning),
		cmocka_unit_test(test_settings_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
