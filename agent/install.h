/* install.h - the agent, or the files of an image, copied into a directory: what an init container of a pod does. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_INSTALL_H
#define ORCHARD_AGENT_INSTALL_H

/*
 * tree NULL: this program, as directory/orchard-agent. Else what is in tree, without other file systems that are mounted
 * in it: directories, files and links, with their permissions, but nobody's ids and no set-id bits. The exit status;
 * a failure is told on stderr.
 */
int install_main(const char *directory, const char *tree);

#endif
