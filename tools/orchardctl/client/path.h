/* path.h - paths of requests, encoded. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_CLIENT_PATH_H
#define ORCHARDCTL_CLIENT_PATH_H

/*
 * "%s" in the format stands for a string, percent-encoded to the last byte that could mean something; there is
 * nothing else. malloc'ed: path_format("/sandboxes/%s/files/raw?path=%s", id, path)
 */
char *path_format(const char *format, ...);
/* Adds "?NAME=VALUE" or "&NAME=VALUE" to a path that path_format() made; value NULL: does nothing. */
void path_add(char **path, const char *name, const char *value);

#endif
