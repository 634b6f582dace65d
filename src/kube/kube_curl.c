/* kube_curl.c - each function by its name, once. */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_curl.h"

#include "base/err.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KUBE_CURL_LIBRARY "libcurl.so.4"

struct kube_curl kube_curl;

static int
find(void *library, const char *name, void *ret_function, struct err *err)
{
	void *found = dlsym(library, name);

	if (found == NULL)
		return err_set(err, ERR_INTERNAL, KUBE_CURL_LIBRARY " has no %s", name);
	memcpy(ret_function, &found, sizeof found);
	return 0;
}

int
kube_curl_load(struct err *err)
{
	struct kube_curl curl;
	void *library;

	if (kube_curl.global_init != NULL)
		return 0;
	library = dlopen(KUBE_CURL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return err_set(err, ERR_INTERNAL,
			"libcurl, which speaks with the API server, cannot be loaded (install the package "
			"libcurl4): %s",
			dlerror());
#define KUBE_CURL_FIND(name)                                                                                       \
	if (find(library, "curl_" #name, &curl.name, err) != 0)                                                    \
		return -1;
	KUBE_CURL_FUNCTIONS(KUBE_CURL_FIND)
#undef KUBE_CURL_FIND
	if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, "libcurl cannot be used");
	kube_curl = curl;
	return 0;
}

int
kube_curl_check(struct err *err)
{
	struct err ignored;
	int status = -1;
	pid_t pid = fork();

	if (pid < 0)
		return err_set_errno(err, errno, "fork");
	if (pid == 0)
		_exit(kube_curl_load(&ignored) == 0 ? 0 : 1);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status == 0)
		return 0;
	return err_set(err, ERR_INTERNAL,
		"libcurl (" KUBE_CURL_LIBRARY "), which speaks with the API server, cannot be loaded: install the "
		"package libcurl4");
}
