/* image_cache.c - remembers what names stand for; starts one imager per image and listens to it. */
/* SPDX-License-Identifier: MIT */
#include "spawner/images/image_cache.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/config.h"
#include "image/image_notes.h"
#include "spawner/images/image_run.h"
#include "spawner/images/image_sweeper.h"
#include "spawner/site.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

enum { IMAGERS_MAX = 4, RETRY_STALE_S = 30 };

struct entry {
	LIST_ENTRY(entry) link;
	struct image_cache *cache;
	char image[IMAGE_NAME_SIZE];
	struct image_name name;
	char digest[IMAGE_DIGEST_SIZE]; /* "" : not known */
	struct stat file; /* as it was when the imager started */
	int64_t stale_ms; /* of a registry: when to ask again, on the boot clock */
	char news[sizeof((struct err *)NULL)->msg]; /* the last progress */
	unsigned pinned_in; /* the last list of pins that names it; 0: none does */
	bool joined; /* somebody came later and has not heard them */
	bool wanted; /* waits for an imager to be free */
	bool done; /* waits for a sweep to leave it alone, or to have taken it */
	bool hungry; /* the disk was full: waits for a sweep to make room */
	struct err why; /* if it makes none */
	bool fed; /* room was made for this imager already */
	int64_t started_ms;
	struct image_run *run; /* its imager, or NULL */
};

struct image_cache {
	struct event_base *base;
	struct image_cache_options options;
	LIST_HEAD(, entry) entries;
	unsigned running;
	struct event *start;
	struct image_sweeper *sweeper;
	unsigned pin_list; /* number of the list that is being told, or was last */
	int64_t bytes, layers; /* after the last sweep */
	bool is_over; /* its budget; what was in use then may go now */
};

static void
count(const struct image_cache *cache, enum metric metric, int64_t n)
{
	if (cache->options.board != NULL)
		scoreboard_add(cache->options.board, cache->options.self, metric, n);
}

static int64_t
budget(const struct image_cache *cache)
{
	int64_t bytes = cache->options.site->config->image_cache_max_bytes;

	return bytes > 0 ? bytes : INT64_MAX;
}

static bool
is_fresh(const struct entry *entry)
{
	struct stat now;

	if (entry->digest[0] == '\0' || !image_is_here(entry->cache->options.site->images_fd, entry->digest))
		return false;
	if (entry->name.form == IMAGE_REGISTRY)
		return entry->name.fixed || clock_boot_ms() < entry->stale_ms;
	return image_name_stat(&entry->name, &now) && image_same_file(&now, &entry->file);
}

/* What an earlier spawner has found out. */
static void
recall(struct entry *entry)
{
	const struct site *site = entry->cache->options.site;
	int64_t age_s, refresh_s = site->config->image_refresh_seconds;

	if (entry->name.form != IMAGE_REGISTRY ||
		!image_note_read(site->images_fd, entry->image, entry->digest, &age_s))
		return;
	entry->stale_ms = age_s < refresh_s ? clock_boot_ms() + (refresh_s - age_s) * 1000 : 0;
}

static struct entry *
find(struct image_cache *cache, const char *image)
{
	struct entry *entry;

	LIST_FOREACH(entry, &cache->entries, link)
	{
		if (strcmp(entry->image, image) == 0)
			return entry;
	}
	return NULL;
}

static struct entry *
add(struct image_cache *cache, const char *image)
{
	struct entry *entry = calloc(1, sizeof *entry);
	struct err err;

	if (entry == NULL || !text_copy(entry->image, sizeof entry->image, image) ||
		image_name_parse(image, &entry->name, &err) != 0)
		abort(); /* whoever asks has parsed it */
	entry->cache = cache;
	recall(entry);
	LIST_INSERT_HEAD(&cache->entries, entry, link);
	return entry;
}

/* By the list before, too: of the new one some may not have been told yet. */
static bool
is_pinned(const struct entry *entry)
{
	return entry->pinned_in != 0 && entry->pinned_in + 1 >= entry->cache->pin_list;
}

/* Names that mean nothing must not pile up. */
static void
forget(struct entry *entry)
{
	if (entry->digest[0] != '\0' || entry->run != NULL || entry->wanted || entry->hungry || is_pinned(entry))
		return;
	LIST_REMOVE(entry, link);
	free(entry);
}

bool
image_cache_find(struct image_cache *cache, const char *image, char ret_digest[IMAGE_DIGEST_SIZE])
{
	struct entry *entry = find(cache, image);

	if (entry == NULL)
		entry = add(cache, image);
	if (!is_fresh(entry) || image_sweeper_decides(cache->sweeper)) {
		forget(entry);
		return false;
	}
	memcpy(ret_digest, entry->digest, IMAGE_DIGEST_SIZE);
	return true;
}

static void
end_imager(struct entry *entry)
{
	struct image_cache *cache = entry->cache;

	image_run_end(STEAL_PTR(entry->run));
	cache->running--;
	event_active(cache->start, EV_TIMEOUT, 0);
}

static void
answer(struct entry *entry, const struct err *why)
{
	struct image_cache *cache = entry->cache;

	entry->fed = false;
	if (why != NULL) /* what is known of it stays on disk, but who asks now wants an answer of now */
		entry->digest[0] = '\0';
	if (why != NULL && is_pinned(entry))
		log_warn("image %s can't be prefetched: %s", entry->image, why->msg);
	cache->options.on_ready(entry->image, entry->digest, why, cache->options.arg);
	forget(entry);
}

/* What its imager has found may have gone before we heard of it. */
static void
settle(struct entry *entry)
{
	entry->done = image_sweeper_decides(entry->cache->sweeper);
	if (entry->done)
		return;
	if (image_is_here(entry->cache->options.site->images_fd, entry->digest)) {
		answer(entry, NULL);
		return;
	}
	entry->wanted = true;
	event_active(entry->cache->start, EV_TIMEOUT, 0);
}

static void
tell(struct entry *entry)
{
	entry->joined = false;
	if (entry->news[0] != '\0')
		entry->cache->options.on_progress(entry->image, entry->news, entry->cache->options.arg);
}

static void
on_done(struct entry *entry, const struct imager_word *word)
{
	struct image_cache *cache = entry->cache;

	memcpy(entry->digest, word->digest, sizeof entry->digest);
	entry->stale_ms = clock_boot_ms() +
		(word->stale ? RETRY_STALE_S : cache->options.site->config->image_refresh_seconds) * 1000;
	end_imager(entry);
	if (word->is_new)
		image_sweeper_ask(cache->sweeper, budget(cache));
	settle(entry);
}

/* A full disk is tried again once all that is not in use has gone. */
static void
on_failed(struct entry *entry, const struct err *why)
{
	struct image_cache *cache = entry->cache;

	end_imager(entry);
	entry->hungry = why->code == ERR_NO_SPACE && !entry->fed;
	image_sweeper_ask(cache->sweeper, entry->hungry ? 0 : budget(cache));
	if (entry->hungry)
		entry->why = *why;
	else
		answer(entry, why);
}

static void
count_pull(const struct entry *entry, const struct imager_word *word)
{
	if (!word->pulled)
		return;
	count(entry->cache, METRIC_IMAGE_PULLS, 1);
	count(entry->cache, METRIC_IMAGE_PULL_FAILURES, word->kind == IMAGER_FAILED);
	count(entry->cache, METRIC_IMAGE_PULL_MS, clock_boot_ms() - entry->started_ms);
}

static void
on_word(const struct imager_word *word, void *arg)
{
	struct entry *entry = arg;
	struct err err;

	if (word == NULL) {
		err_set(&err, ERR_UNAVAILABLE, "the process that unpacked image %.200s has died; try again",
			image_name_short(entry->image));
		on_failed(entry, &err);
	} else if (word->kind == IMAGER_PROGRESS) {
		memcpy(entry->news, word->why.msg, sizeof entry->news);
		tell(entry);
	} else if (word->kind == IMAGER_FAILED) {
		count_pull(entry, word);
		on_failed(entry, &word->why);
	} else {
		count_pull(entry, word);
		on_done(entry, word);
	}
}

static int
make_places(int images_fd, struct err *err)
{
	static const char *const dirs[] = { "layers", "manifests", "names", "sizes", "tmp" };

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		if (mkdirat(images_fd, dirs[i], 0700) != 0 && errno != EEXIST)
			return err_set_errno(err, errno, "make images/%s", dirs[i]);
	return 0;
}

static int
start_imager(struct entry *entry, struct err *err)
{
	const struct image_cache *cache = entry->cache;
	struct imager_order order = { .config = cache->options.site->config,
		.images_fd = cache->options.site->images_fd,
		.text = entry->image,
		.name = &entry->name,
		.known = entry->digest };

	site_keep_dirs(cache->options.site);
	if (make_places(order.images_fd, err) != 0)
		return -1;
	memset(&entry->file, 0, sizeof entry->file);
	if (entry->name.form != IMAGE_REGISTRY)
		(void)image_name_stat(&entry->name, &entry->file);
	entry->started_ms = clock_boot_ms();
	return image_run_start(cache->base, cache->options.site, &order, on_word, entry, &entry->run, err);
}

/* Not from image_cache_fetch itself, so that nobody is called back before it returns. */
static void
on_start(evutil_socket_t fd, short what, void *arg)
{
	struct image_cache *cache = arg;
	struct entry *entry, *next;
	struct err err;

	(void)fd;
	(void)what;
	for (entry = LIST_FIRST(&cache->entries); entry != NULL; entry = next) {
		next = LIST_NEXT(entry, link);
		if (entry->wanted && cache->running >= IMAGERS_MAX)
			snprintf(entry->news, sizeof entry->news, "waiting for other images");
		if (entry->joined)
			tell(entry);
		if (!entry->wanted || cache->running >= IMAGERS_MAX || image_sweeper_decides(cache->sweeper))
			continue;
		entry->wanted = false;
		if (is_fresh(entry)) {
			answer(entry, NULL);
			continue;
		}
		cache->running++;
		if (start_imager(entry, &err) != 0)
			on_failed(entry, &err);
	}
}

void
image_cache_fetch(struct image_cache *cache, const char *image)
{
	struct entry *entry = find(cache, image);

	if (entry == NULL)
		entry = add(cache, image);
	entry->joined = true;
	event_active(cache->start, EV_TIMEOUT, 0);
	if (entry->run != NULL || entry->wanted || entry->done || entry->hungry)
		return;
	entry->wanted = true;
	entry->news[0] = '\0';
}

void
image_cache_pin(struct image_cache *cache, const char *image)
{
	struct entry *entry = find(cache, image);

	if (entry == NULL)
		entry = add(cache, image);
	entry->pinned_in = cache->pin_list;
	if (!is_fresh(entry))
		image_cache_fetch(cache, image);
}

void
image_cache_begin_pins(struct image_cache *cache)
{
	struct entry *entry, *next;

	cache->pin_list++;
	for (entry = LIST_FIRST(&cache->entries); entry != NULL; entry = next) {
		next = LIST_NEXT(entry, link);
		forget(entry);
	}
}

bool
image_cache_reaped(struct image_cache *cache, pid_t pid)
{
	struct entry *entry;

	LIST_FOREACH(entry, &cache->entries, link)
	{
		if (image_run_reaped(entry->run, pid))
			return true;
	}
	return false;
}

/* --- making room --- */

static void
on_list_used(struct image_sweep_order *order, void *arg)
{
	struct image_cache *cache = arg;
	const struct entry *entry;

	LIST_FOREACH(entry, &cache->entries, link)
	{
		if (is_pinned(entry))
			image_sweep_use(order, entry->digest);
	}
	if (cache->options.list_used != NULL)
		cache->options.list_used(order, cache->options.arg);
}

static void
on_decided(void *arg)
{
	struct image_cache *cache = arg;
	struct entry *entry, *next;

	for (entry = LIST_FIRST(&cache->entries); entry != NULL; entry = next) {
		next = LIST_NEXT(entry, link);
		if (entry->done)
			settle(entry);
	}
	event_active(cache->start, EV_TIMEOUT, 0);
}

static void
on_swept(const struct image_sweep_result *result, void *arg)
{
	struct image_cache *cache = arg;
	struct entry *entry, *next;

	if (result != NULL) {
		count(cache, METRIC_IMAGE_BYTES, result->bytes - cache->bytes);
		count(cache, METRIC_IMAGE_LAYERS, result->layers - cache->layers);
		cache->bytes = result->bytes;
		cache->layers = result->layers;
		cache->is_over = result->bytes > budget(cache);
	}
	for (entry = LIST_FIRST(&cache->entries); entry != NULL; entry = next) {
		next = LIST_NEXT(entry, link);
		if (!entry->hungry || image_sweeper_is_asked(cache->sweeper))
			continue;
		entry->hungry = false;
		entry->fed = entry->wanted = result != NULL && result->freed > 0;
		if (!entry->wanted)
			answer(entry, &entry->why);
	}
	event_active(cache->start, EV_TIMEOUT, 0);
}

void
image_cache_trim(struct image_cache *cache)
{
	if (cache->is_over)
		image_sweeper_ask(cache->sweeper, budget(cache));
}

/* Whole layers are renamed into place; anything else in there is half of one. */
static void
remove_leftovers(int images_fd)
{
	struct err err;

	if (file_remove_tree_at(images_fd, "tmp", &err) != 0)
		log_warn("leftovers of unpacking stay: %s", err.msg);
}

int
image_cache_create(struct event_base *base, const struct image_cache_options *options,
	struct image_cache **ret_cache, struct err *err)
{
	struct image_cache *cache = calloc(1, sizeof *cache);
	int images_fd = options->site->images_fd;

	if (cache == NULL)
		abort();
	cache->base = base;
	cache->options = *options;
	LIST_INIT(&cache->entries);
	cache->start = event_new(base, -1, 0, on_start, cache);
	if (cache->start == NULL)
		abort();
	cache->sweeper = image_sweeper_create(base,
		&(struct image_sweeper_options){ .site = options->site,
			.list_used = on_list_used,
			.decided = on_decided,
			.done = on_swept,
			.arg = cache });
	*ret_cache = cache;
	if (images_fd < 0)
		return 0;
	remove_leftovers(images_fd);
	if (make_places(images_fd, err) != 0)
		return -1;
	/* Only looks: what is to stay is not told yet. */
	image_sweeper_ask(cache->sweeper, INT64_MAX);
	return 0;
}

void
image_cache_free(struct image_cache *cache)
{
	struct entry *entry;

	if (cache == NULL)
		return;
	while ((entry = LIST_FIRST(&cache->entries)) != NULL) {
		LIST_REMOVE(entry, link);
		image_run_end(entry->run);
		free(entry);
	}
	image_sweeper_free(cache->sweeper);
	event_free(cache->start);
	free(cache);
}
