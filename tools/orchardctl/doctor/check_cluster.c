/* check_cluster.c - a server whose sandboxes are pods: its namespace, what the API server says to it, its nodes. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "orchardctl/doctor/finding.h"
#include "orchardctl/doctor/metrics.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>
#include <string.h>

#define SERVER_LOG "the server's log: kubectl -n orchard logs statefulset/orchard"

bool
findings_on_cluster(const struct findings *findings)
{
	double usable;

	return findings->metrics != NULL && metrics_value(findings->metrics, "orchard_kubernetes_usable", &usable);
}

static char *
space_of(const struct findings *findings)
{
	char *space = metrics_label(findings->metrics, "orchard_kubernetes_info", "namespace");

	return space != NULL ? space : alloc_string("sandbox-pods");
}

char *
doctor_cluster_cure(const struct findings *findings, const char *problem)
{
	static const struct {
		const char *said, *cure; /* %s: the namespace */
	} cures[] = {
		{ "nodes of the cluster",
			"kubectl apply -k k8s/base gives the rights: kubectl auth can-i list nodes "
			"--as system:serviceaccount:orchard:orchard (namespace %s)" },
		{ "holds the namespace",
			"kubectl -n %s get lease orchard names who; use_redis = on for both, another "
			"sandbox_namespace for one, or stop one" },
		{ "does not exist and cannot be made",
			"kubectl create namespace %s, or name another in sandbox_namespace" },
		{ "(403)",
			"kubectl auth can-i --list -n %s --as system:serviceaccount:orchard:orchard; "
			"orchardctl doctor --host in a pod of the server names what is missing" },
		{ "(401)",
			"kubectl -n orchard get serviceaccount orchard; outside of the cluster: the user of the "
			"kubeconfig (namespace %s)" },
		{ "does not answer", SERVER_LOG " (namespace %s)" },
		{ "did not answer", SERVER_LOG " (namespace %s)" },
	};
	AUTO_FREE char *space = space_of(findings);

	for (size_t i = 0; i < sizeof cures / sizeof *cures; i++) {
		const char *hole = strstr(cures[i].cure, "%s");

		if (strstr(problem, cures[i].said) != NULL)
			return alloc_format(
				"%.*s%s%s", (int)(hole - cures[i].cure), cures[i].cure, space, hole + 2);
	}
	return alloc_string("docs/kubernetes.md, \"What the words mean\"; does the API server answer there: "
			    "kubectl get --raw /readyz");
}

static void
check_requests(struct findings *findings)
{
	AUTO_FREE char *space = space_of(findings);
	double usable = 0, requests = 0, pods = 0, throttled = 0, lost = 0;
	const char *text = findings->metrics;

	(void)metrics_value(text, "orchard_kubernetes_usable", &usable);
	(void)metrics_value(text, "orchard_kubernetes_requests_total", &requests);
	(void)metrics_value(text, "orchard_pods", &pods);
	(void)metrics_value(text, "orchard_kubernetes_requests_failed_total{why=\"throttled\"}", &throttled);
	(void)metrics_value(text, "orchard_kubernetes_requests_failed_total{why=\"lost\"}", &lost);
	if (usable <= 0)
		finding_add(findings, FINDING_FAIL, "cluster", "the check \"ready\" has the reason",
			"no pods can be made in the namespace %s", space);
	else
		finding_add(findings, FINDING_OK, "cluster", NULL,
			"the API server answers and lets us make pods in the namespace %s; %.0f are known", space,
			pods);
	if (throttled > requests / 100)
		finding_add(findings, FINDING_WARN, "api-server",
			"lower k8s_api_concurrency or max_concurrent_creates",
			"it found %.0f of %.0f requests too many at once", throttled, requests);
	if (lost > requests / 100)
		finding_add(findings, FINDING_WARN, "api-server", SERVER_LOG, "%.0f of %.0f requests got no answer",
			lost, requests);
}

static void
check_creates(struct findings *findings)
{
	double creates = 0, waiting = 0;

	(void)metrics_value(findings->metrics, "orchard_pod_creates", &creates);
	if (metrics_value(findings->metrics, "orchard_creates_waiting", &waiting) && waiting > 0)
		finding_add(findings, FINDING_WARN, "creates",
			"if that lasts and the API server bears more: raise max_concurrent_creates",
			"%.0f of %.0f pods that are being made wait for their turn", waiting, creates);
}

void
doctor_check_cluster(struct findings *findings)
{
	check_requests(findings);
	check_creates(findings);
}

void
doctor_check_nodes(struct findings *findings, struct json_object *resources)
{
	struct json_object *nodes = print_member(resources, "nodes");
	size_t count = json_object_is_type(nodes, json_type_array) ? json_object_array_length(nodes) : 0,
	       closed = 0;

	for (size_t i = 0; i < count; i++)
		closed += json_object_get_double(
				  print_member(json_object_array_get_idx(nodes, i), "allocatable.cpu")) <= 0;
	if (count == 0)
		finding_add(findings, FINDING_FAIL, "nodes",
			"kubectl label node NAME workload=sandbox, or empty pod_node_selector",
			"no node has the labels of pod_node_selector");
	else if (closed > 0)
		finding_add(findings, closed < count ? FINDING_WARN : FINDING_FAIL, "nodes", "kubectl get nodes",
			"%zu of %zu are not ready, or take no new pods", closed, count);
	else
		finding_add(findings, FINDING_OK, "nodes", NULL, "%zu, all of them ready", count);
}
