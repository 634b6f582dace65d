/*
 * patch.h - applies the patch on stdin to the working directory, whole or not at all.
 *
 * It is a command of its own kind: the agent's program runs once more as a child with the user's rights, and tool,
 * time and output are what the journal says of any command. Names count from the working directory; where they do
 * not fit there, from the top of the repository that it lies in. SIGTERM puts everything back.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PATCH_PATCH_H
#define ORCHARD_AGENT_PATCH_PATCH_H

#define PATCH_OPTION "--apply-patch"

/* How long putting back may take when it is timed out or canceled. */
enum { PATCH_GRACE_MS = 10000 };

/* The exit status: the tool's; 127: the image has none; 124: asked to stop. */
int patch_main(void);

#endif
