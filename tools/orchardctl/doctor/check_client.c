/* check_client.c - the configuration of orchardctl: who may read it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "orchardctl/command.h"
#include "orchardctl/contexts.h"
#include "orchardctl/doctor/finding.h"

#include <sys/stat.h>

void
doctor_check_client(struct findings *findings)
{
	AUTO_CONTEXTS contexts = { 0 };
	AUTO_FREE char *cure = NULL;
	struct stat stat_;
	struct err err;

	if (contexts_load(&contexts, &err) != 0) {
		finding_add(
			findings, FINDING_FAIL, "configuration", "correct that file, or remove it", "%s", err.msg);
		return;
	}
	if (contexts.path == NULL || stat(contexts.path, &stat_) != 0) {
		finding_add(findings, FINDING_OK, "configuration", NULL,
			"no configuration file; the environment and options count");
		return;
	}
	if ((stat_.st_mode & 077) != 0) {
		cure = alloc_format("chmod 600 '%s'", contexts.path);
		finding_add(findings, FINDING_WARN, "configuration", cure,
			"%s holds keys, and others may read it (mode %04o)", contexts.path,
			(unsigned)stat_.st_mode & 07777);
		return;
	}
	finding_add(findings, FINDING_OK, "configuration", NULL, "%s, context %s", contexts.path,
		contexts_current(&contexts) != NULL ? contexts_current(&contexts) : "(none)");
}
