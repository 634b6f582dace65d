/*
 * check_rights.c - the cluster of the server's settings: who we are there, and what of k8s/base/rbac.yaml we may not do.
 *
 * Asked by the server's own client with its credentials: in a pod of the server as its service account, elsewhere by the
 * kubeconfig that it is told of. Reviews of oneself are open to everybody.
 */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "conf/config.h"
#include "orchardctl/doctor/finding.h"
#include "orchardctl/output/print.h"
#include "kube/kube_client.h"
#include "kube/kube_config.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>

enum { CONNECT_MS = 5000, ATTEMPT_MS = 10000, RESOURCES = 6, VERBS_MAX = 5, VERBS_TEXT = 64 };

static const struct {
	const char *group, *name;
	bool everywhere; /* not of one namespace */
	bool named; /* only the namespace of the sandboxes itself */
	bool spare; /* the server does without, and warns */
	const char *only; /* the one of this name; NULL: all */
	const char *verbs[VERBS_MAX];
} resources[RESOURCES] = {
	{ "", "pods", false, false, false, NULL, { "get", "list", "watch", "create", "delete" } },
	{ "networking.k8s.io", "networkpolicies", false, false, false, NULL,
		{ "get", "list", "create", "update", "delete" } },
	{ "", "events", false, false, false, NULL, { "list" } },
	{ "", "nodes", true, false, false, NULL, { "get", "list" } },
	{ "", "namespaces", true, true, false, NULL, { "get" } },
	{ "coordination.k8s.io", "leases", false, false, true, "orchard", { "get", "create", "update" } },
};

struct survey {
	struct event_base *base;
	struct kube_client *client;
	const char *space;
	unsigned waiting;
	char user[256]; /* "": not known */
	bool refused[RESOURCES][VERBS_MAX];
	struct err err; /* the first that failed; ERR_NONE */
};

/* What a review is asked for; for its answer. */
struct question {
	struct survey *survey;
	size_t resource, verb;
};

static void
on_review(const struct kube_answer *answer, void *arg)
{
	struct question *question = arg;
	struct survey *survey = question->survey;

	if (answer->why != NULL) {
		if (survey->err.code == ERR_NONE)
			survey->err = *answer->why;
	} else if (!json_object_get_boolean(print_member(answer->body, "status.allowed"))) {
		survey->refused[question->resource][question->verb] = true;
	}
	free(question);
	survey->waiting--;
}

static void
on_user(const struct kube_answer *answer, void *arg)
{
	struct survey *survey = arg;

	/* An API server before 1.28 does not know this question. */
	if (answer->why == NULL)
		snprintf(survey->user, sizeof survey->user, "%s",
			print_string(answer->body, "status.userInfo.username"));
	survey->waiting--;
}

static void
put(struct json_object *object, const char *name, const char *value)
{
	json_object_object_add(object, name, must_alloc(json_object_new_string(value)));
}

static void
ask(struct survey *survey, const char *group, const char *kind, const char *resource, struct json_object *spec,
	kube_done_f *done, void *arg)
{
	AUTO_FREE char *path = alloc_format("/apis/%s/v1/%s", group, resource);
	AUTO_FREE char *version = alloc_format("%s/v1", group);
	struct json_object *body = must_alloc(json_object_new_object());
	const struct kube_request request = { .method = KUBE_POST, .path = path, .body = body };
	struct err err;

	put(body, "apiVersion", version);
	put(body, "kind", kind);
	if (spec != NULL)
		json_object_object_add(body, "spec", spec);
	survey->waiting++;
	if (kube_call_start(survey->client, &request, done, arg, NULL, &err) != 0)
		done(&(struct kube_answer){ .why = &err }, arg);
	json_object_put(body);
}

static void
ask_right(struct survey *survey, size_t i, size_t verb)
{
	struct json_object *spec = must_alloc(json_object_new_object()),
			   *what = must_alloc(json_object_new_object());
	struct question *question = alloc_zero(1, sizeof *question);

	*question = (struct question){ survey, i, verb };
	put(what, "group", resources[i].group);
	put(what, "resource", resources[i].name);
	put(what, "verb", resources[i].verbs[verb]);
	if (resources[i].named || resources[i].only != NULL)
		put(what, "name", resources[i].named ? survey->space : resources[i].only);
	if (!resources[i].everywhere || resources[i].named)
		put(what, "namespace", survey->space);
	json_object_object_add(spec, "resourceAttributes", what);
	ask(survey, "authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", spec, on_review,
		question);
}

static void
survey_run(struct survey *survey)
{
	ask(survey, "authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", NULL, on_user, survey);
	for (size_t i = 0; i < RESOURCES; i++)
		for (size_t j = 0; j < VERBS_MAX && resources[i].verbs[j] != NULL; j++)
			ask_right(survey, i, j);
	while (survey->waiting > 0 && event_base_loop(survey->base, EVLOOP_ONCE) == 0)
		;
}

/* "--serviceaccount=orchard:orchard", or "--user='...'"; malloc'ed. */
static char *
subject_of(const struct survey *survey)
{
	static const char account[] = "system:serviceaccount:";

	if (strncmp(survey->user, account, sizeof account - 1) == 0)
		return alloc_format("--serviceaccount=%s", survey->user + sizeof account - 1);
	return alloc_format("--user='%s'", survey->user[0] != '\0' ? survey->user : "NAME");
}

/* "create,delete"; "": nothing. */
static void
missing_of(const struct survey *survey, size_t i, char ret_verbs[VERBS_TEXT])
{
	size_t len = 0;

	ret_verbs[0] = '\0';
	for (size_t j = 0; j < VERBS_MAX; j++)
		if (survey->refused[i][j])
			len += (size_t)snprintf(ret_verbs + len, VERBS_TEXT - len, "%s%s", len > 0 ? "," : "",
				resources[i].verbs[j]);
}

/* The commands that give what is missing, to whoever may give it; malloc'ed. */
static char *
grant_of(const struct survey *survey, size_t i, const char *verbs)
{
	const char *kind = resources[i].everywhere ? "clusterrole" : "role";
	AUTO_FREE char *subject = subject_of(survey);
	AUTO_FREE char *space = resources[i].everywhere ? alloc_string("") : alloc_format(" -n %s", survey->space);
	AUTO_FREE char *only = resources[i].named ? alloc_format(" --resource-name=%s", survey->space)
						  : alloc_string("");
	AUTO_FREE char *name = alloc_format("orchard-%s", resources[i].name);

	return alloc_format(
		"kubectl%s create %s %s --verb=%s --resource=%s%s%s%s && kubectl%s create %sbinding %s --%s=%s %s",
		space, kind, name, verbs, resources[i].name, resources[i].group[0] != '\0' ? "." : "",
		resources[i].group, only, space, kind, name, kind, name, subject);
}

static void
add_rights(struct findings *findings, const struct survey *survey)
{
	const char *user = survey->user[0] != '\0' ? survey->user : "the server";
	bool all = true;

	for (size_t i = 0; i < RESOURCES; i++) {
		AUTO_FREE char *cure = NULL;
		char verbs[VERBS_TEXT];

		missing_of(survey, i, verbs);
		if (verbs[0] == '\0')
			continue;
		all = false;
		cure = grant_of(survey, i, verbs);
		finding_add(findings, resources[i].spare ? FINDING_WARN : FINDING_FAIL, "rights", cure,
			"%s may not %s %s%s%s%s", user, verbs, resources[i].name,
			resources[i].everywhere ? "" : " in ", resources[i].everywhere ? "" : survey->space,
			resources[i].spare ? ", so nothing keeps a second server from removing its pods" : "");
	}
	if (all)
		finding_add(findings, FINDING_OK, "rights", NULL, "%s may do in %s what the server does", user,
			survey->space);
}

static void
add_failure(struct findings *findings, const struct config *config, const struct err *err)
{
	AUTO_FREE char *look = config->in_cluster
		? alloc_string("the policies of the namespace: docs/kubernetes.md, \"Network\"")
		: alloc_format("kubectl --kubeconfig '%s' get --raw /readyz", config->kubeconfig);
	const char *cure = look;

	if (err->code == ERR_DENIED)
		cure = config->in_cluster ? "kubectl -n orchard get serviceaccount orchard; then kubectl -n "
					    "orchard delete pod POD, for a new token"
					  : "take new credentials into the kubeconfig, as its maker says";
	finding_add(findings, FINDING_FAIL, "rights", cure, "the API server does not tell: %s", err->msg);
}

static void
survey_make(struct findings *findings, const struct config *config, struct kube_config *cluster)
{
	const struct kube_options options = { .connect_ms = CONNECT_MS, .attempt_ms = ATTEMPT_MS };
	struct survey survey = { .space = config->sandbox_namespace };
	struct err err;

	survey.base = must_alloc(event_base_new());
	if (kube_client_create(survey.base, cluster, &options, &survey.client, &err) != 0) {
		finding_add(findings, FINDING_FAIL, "rights", "apt-get install libcurl4", "%s", err.msg);
	} else {
		survey_run(&survey);
		if (survey.err.code != ERR_NONE)
			add_failure(findings, config, &survey.err);
		else
			add_rights(findings, &survey);
		kube_client_free(survey.client);
	}
	event_base_free(survey.base);
}

void
doctor_check_rights(struct findings *findings, const struct config *config)
{
	AUTO_FREE char *whence = config->in_cluster ? alloc_string("the service account of this pod")
						    : alloc_string(config->kubeconfig);
	struct kube_config *cluster;
	struct err err;

	if (kube_config_load(config, &cluster, &err) != 0) {
		finding_add(findings, FINDING_FAIL, "kubernetes",
			config->in_cluster
				? "look from a pod of the server: kubectl -n orchard exec statefulset/orchard -- "
				  "orchardctl doctor --host"
				: "correct kubeconfig or kube_context; kubectl config view shows a good one",
			"%s", err.msg);
		return;
	}
	finding_add(findings, FINDING_OK, "kubernetes", NULL, "%s by %s", kube_config_server(cluster), whence);
	survey_make(findings, config, cluster);
	kube_config_free(cluster);
}
