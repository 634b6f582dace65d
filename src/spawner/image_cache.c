/* image_cache.c - remembers what names stand for; starts one imager per image and listens to it. */
/* SPDX-License-Identifier: MIT */
#include "spawner/image_cache.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "spawner/child.h"
#include "spawner/imager.h"
#include "spawner/site.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { IMAGERS_MAX = 2 };

struct entry {
	LIST_ENTRY(entry) link;
	struct image_cache *cache;
	char image[IMAGE_PATH_SIZE + IMAGE_TAG_SIZE];
	struct image_name name;
	char digest[IMAGE_DIGEST_SIZE]; /* "" : not known */
	struct stat index; /* of index.json when the imager started */
	bool wanted; /* waits for an imager to be free */
	pid_t pid; /* its imager; 0: none */
	int fd;
	struct event *readable;
};

struct image_cache {
	struct event_base *base;
	struct image_cache_options options;
	LIST_HEAD(, entry) entries;
	unsigned running;
	struct event *start;
};

static bool
stat_index(const struct image_name *name, struct stat *ret_st)
{
	char path[IMAGE_PATH_SIZE + 16];

	snprintf(path, sizeof path, "%s/index.json", name->path);
	return stat(path, ret_st) == 0;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
		a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
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

bool
image_cache_find(struct image_cache *cache, const char *image, char ret_digest[IMAGE_DIGEST_SIZE])
{
	const struct entry *entry = find(cache, image);
	struct stat now;

	if (entry == NULL || entry->digest[0] == '\0' || !stat_index(&entry->name, &now) ||
		!same_file(&now, &entry->index))
		return false;
	memcpy(ret_digest, entry->digest, IMAGE_DIGEST_SIZE);
	return true;
}

static void
stop_listening(struct entry *entry)
{
	if (entry->readable != NULL)
		event_free(entry->readable);
	entry->readable = NULL;
	cleanup_fd(&entry->fd);
	entry->fd = -1;
}

static void
finish(struct entry *entry, const struct err *why)
{
	struct image_cache *cache = entry->cache;

	stop_listening(entry);
	if (entry->pid > 0)
		(void)kill(entry->pid, SIGKILL);
	entry->pid = 0;
	cache->running--;
	event_active(cache->start, EV_TIMEOUT, 0);
	cache->options.on_ready(entry->image, entry->digest, why, cache->options.arg);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct entry *entry = arg;
	struct image_cache *cache = entry->cache;
	struct imager_word word;
	struct err err;
	ssize_t n = recv(fd, &word, sizeof word, MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof word) {
		err_set(&err, ERR_UNAVAILABLE, "the process that unpacked image %.200s has died; try again",
			entry->image);
		finish(entry, &err);
	} else if (word.kind == IMAGER_PROGRESS) {
		cache->options.on_progress(entry->image, word.why.msg, cache->options.arg);
	} else if (word.kind == IMAGER_FAILED) {
		finish(entry, &word.why);
	} else {
		memcpy(entry->digest, word.digest, sizeof entry->digest);
		finish(entry, NULL);
	}
}

static int
start_imager(struct entry *entry, struct err *err)
{
	struct image_cache *cache = entry->cache;
	int ends[2];
	pid_t pid;

	memset(&entry->index, 0, sizeof entry->index);
	entry->digest[0] = '\0';
	(void)stat_index(&entry->name, &entry->index);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair of an imager");
	pid = child_fork(cache->options.site, ends[1], err);
	if (pid == 0) {
		log_init("imager", LOG_LEVEL_INFO);
		imager_main(cache->options.site->images_fd, &entry->name, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	entry->pid = pid;
	entry->fd = ends[0];
	entry->readable = event_new(cache->base, ends[0], EV_READ | EV_PERSIST, on_readable, entry);
	if (entry->readable == NULL || event_add(entry->readable, NULL) != 0)
		abort();
	return 0;
}

/* Not from image_cache_fetch itself, so that nobody is called back before it returns. */
static void
on_start(evutil_socket_t fd, short what, void *arg)
{
	struct image_cache *cache = arg;
	struct entry *entry;
	struct err err;

	(void)fd;
	(void)what;
	LIST_FOREACH(entry, &cache->entries, link)
	{
		if (!entry->wanted || cache->running >= IMAGERS_MAX)
			continue;
		entry->wanted = false;
		cache->running++;
		if (start_imager(entry, &err) != 0)
			finish(entry, &err);
	}
}

void
image_cache_fetch(struct image_cache *cache, const char *image)
{
	struct entry *entry = find(cache, image);
	struct err err;

	if (entry == NULL) {
		entry = calloc(1, sizeof *entry);
		if (entry == NULL || !text_copy(entry->image, sizeof entry->image, image) ||
			image_name_parse(image, &entry->name, &err) != 0)
			abort(); /* whoever asks has parsed it */
		entry->cache = cache;
		entry->fd = -1;
		LIST_INSERT_HEAD(&cache->entries, entry, link);
	}
	if (entry->pid != 0 || entry->wanted)
		return;
	entry->wanted = true;
	event_active(cache->start, EV_TIMEOUT, 0);
}

bool
image_cache_reaped(struct image_cache *cache, pid_t pid)
{
	struct entry *entry;

	LIST_FOREACH(entry, &cache->entries, link)
	{
		if (entry->pid == pid) {
			entry->pid = -1; /* its last words, if any, still wait on the socket */
			return true;
		}
	}
	return false;
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
	static const char *const dirs[] = { "layers", "manifests", "tmp" };
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
	*ret_cache = cache;
	if (images_fd < 0)
		return 0;
	remove_leftovers(images_fd);
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		if (mkdirat(images_fd, dirs[i], 0700) != 0 && errno != EEXIST)
			return err_set_errno(err, errno, "make images/%s", dirs[i]);
	}
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
		stop_listening(entry);
		free(entry);
	}
	event_free(cache->start);
	free(cache);
}
