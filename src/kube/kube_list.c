/*
 * kube_list.c - pages of a list.
 *
 * All pages are of the moment of the first. When the server has forgotten that moment, what came is void: a list that
 * is half of one moment and half of another would miss what moved between them. Objects may be so large that a page of
 * them is more than an answer may be; then pages get smaller, down to one object.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_list.h"
#include "kube/kube_client_impl.h"
#include "kube/kube_status.h"

#include "base/alloc.h"
#include "base/err.h"

#include <json-c/json.h>
#include <string.h>

enum { PAGE = 250, PAGE_SHRINK = 4, AGAIN_MAX = 3 };

struct kube_list {
	TAILQ_ENTRY(kube_list) entry;
	struct kube_client *client;
	char *path, *selector; /* escaped; selector NULL: none */
	uint32_t page;
	const struct kube_list_ops *ops;
	void *arg;
	struct kube_call *call; /* NULL: none is under way */
	char *next; /* the next page's token, escaped; NULL: the first page */
	uint32_t agains;
	int64_t retry_after_ms;
	bool busy; /* calls back */
	bool cancelled; /* meanwhile */
};

static void list_on_page(const struct kube_answer *answer, void *arg);

static void
list_free(struct kube_list *list)
{
	if (list->call != NULL)
		kube_call_cancel(list->call);
	TAILQ_REMOVE(&list->client->lists, list, entry);
	free(list->path);
	free(list->selector);
	free(list->next);
	free(list);
}

void
kube_list_free_all(struct kube_client *client)
{
	struct kube_list *list;

	while ((list = TAILQ_FIRST(&client->lists)) != NULL)
		list_free(list);
}

void
kube_list_cancel(struct kube_list *list)
{
	if (list->busy)
		list->cancelled = true;
	else
		list_free(list);
}

void
kube_list_once(struct kube_list *list)
{
	kube_call_once(list->call);
}

int64_t
kube_list_retry_after(const struct kube_list *list)
{
	return list->retry_after_ms;
}

static void
list_ask(struct kube_list *list)
{
	AUTO_FREE char *path = alloc_format("%s?limit=%u%s%s%s%s", list->path, list->page,
		list->selector != NULL ? "&labelSelector=" : "", list->selector != NULL ? list->selector : "",
		list->next != NULL ? "&continue=" : "", list->next != NULL ? list->next : "");
	struct kube_request request = { .method = KUBE_GET, .path = path, .retry = KUBE_RETRY_READ };
	struct err err;

	/* The path was good when it was escaped. */
	if (kube_call_start(list->client, &request, list_on_page, list, &list->call, &err) != 0)
		abort();
}

/* Nobody is called after a callback has cancelled the list or freed the client. */
static bool
list_goes_on(const struct kube_list *list)
{
	return !list->cancelled && !list->client->freed;
}

static void
list_finish(struct kube_list *list, const char *resource_version, const struct err *why)
{
	list->busy = true;
	if (list_goes_on(list))
		list->ops->done(list->arg, resource_version, why);
	list_free(list);
}

static void
list_take_items(struct kube_list *list, struct json_object *items)
{
	size_t count = json_object_is_type(items, json_type_array) ? json_object_array_length(items) : 0;

	list->busy = true;
	for (size_t i = 0; i < count && list_goes_on(list); i++)
		list->ops->item(list->arg, json_object_array_get_idx(items, i));
	list->busy = false;
}

static void
list_begin_again(struct kube_list *list, const struct err *why)
{
	free(STEAL_PTR(list->next));
	if (list->agains++ == AGAIN_MAX) {
		list_finish(list, "", why);
		return;
	}
	list->busy = true;
	list->ops->again(list->arg);
	list->busy = false;
	if (list_goes_on(list))
		list_ask(list);
	else if (list->cancelled)
		list_free(list);
}

static void
list_take_page(struct kube_list *list, struct json_object *page, struct json_object *items)
{
	struct json_object *metadata = kube_json_object(page, "metadata");
	AUTO_FREE char *next = kube_escape(kube_json_text(metadata, "continue"));
	struct err err;

	if (next[0] != '\0' && list->next != NULL && strcmp(next, list->next) == 0) {
		err_set(&err, ERR_UNAVAILABLE, "the API server gives the same page of a list again and again");
		list_finish(list, "", &err);
		return;
	}
	list_take_items(list, items);
	if (list->cancelled || list->client->freed) {
		if (list->cancelled)
			list_free(list);
		return;
	}
	free(STEAL_PTR(list->next));
	if (next[0] == '\0') {
		list_finish(list, kube_json_text(metadata, "resourceVersion"), NULL);
		return;
	}
	list->next = STEAL_PTR(next);
	list_ask(list);
}

/* True: the same page is asked for with fewer items. */
static bool
list_asks_for_less(struct kube_list *list, const struct err *why)
{
	if (why->code != ERR_TOO_LARGE || list->page == 1)
		return false;
	list->page = list->page > PAGE_SHRINK ? list->page / PAGE_SHRINK : 1;
	list_ask(list);
	return true;
}

static void
list_on_page(const struct kube_answer *answer, void *arg)
{
	struct kube_list *list = arg;
	struct json_object *items;
	struct err err;

	list->call = NULL;
	list->retry_after_ms = answer->retry_after_ms;
	if (answer->why != NULL && answer->http_status == 410 && list->next != NULL) {
		list_begin_again(list, answer->why);
	} else if (answer->why != NULL) {
		if (!list_asks_for_less(list, answer->why))
			list_finish(list, "", answer->why);
	} else if (answer->body == NULL || !json_object_object_get_ex(answer->body, "items", &items)) {
		/* Taken for a list, it would say that there is nothing. */
		err_set(&err, ERR_UNAVAILABLE, "the API server's answer is no list");
		list_finish(list, "", &err);
	} else {
		list_take_page(list, answer->body, items);
	}
}

struct kube_list *
kube_list_start(
	struct kube_client *client, const struct kube_list_ask *ask, const struct kube_list_ops *ops, void *arg)
{
	struct kube_list *list = alloc_zero(1, sizeof *list);

	list->client = client;
	list->path = alloc_string(ask->path);
	list->selector = ask->selector != NULL ? kube_escape(ask->selector) : NULL;
	list->page = ask->page != 0 ? ask->page : PAGE;
	list->ops = ops;
	list->arg = arg;
	list->retry_after_ms = -1;
	TAILQ_INSERT_TAIL(&client->lists, list, entry);
	list_ask(list);
	return list;
}
