/* cleanup.h - scope-bound release for locals, and how to hand them on. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_CLEANUP_H
#define ORCHARD_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void
cleanup_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void
cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void
cleanup_file(FILE **f)
{
	if (*f != NULL)
		fclose(*f);
}

static inline void
cleanup_dir(DIR **d)
{
	if (*d != NULL)
		closedir(*d);
}

#define AUTO_FD __attribute__((cleanup(cleanup_fd))) int
/* For text that holds secrets: they must not stay in freed memory. */
static inline void
cleanup_secret(char **text)
{
	if (*text != NULL)
		explicit_bzero(*text, strlen(*text));
	free(*text);
}

#define AUTO_FREE   __attribute__((cleanup(cleanup_free)))
#define AUTO_FILE   __attribute__((cleanup(cleanup_file))) FILE
#define AUTO_DIR    __attribute__((cleanup(cleanup_dir))) DIR
#define AUTO_SECRET __attribute__((cleanup(cleanup_secret)))
#define STEAL_PTR(p)                                                                                               \
	({                                                                                                         \
		__typeof__(p) p_ = (p);                                                                            \
		(p) = NULL;                                                                                        \
		p_;                                                                                                \
	})
#define STEAL_FD(fd)                                                                                               \
	({                                                                                                         \
		int fd_ = (fd);                                                                                    \
		(fd) = -1;                                                                                         \
		fd_;                                                                                               \
	})

/* For small allocations: NULL ends the process. */
static inline void *
must_alloc(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

#define MUSTCHECK __attribute__((warn_unused_result))

#endif
