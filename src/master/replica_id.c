/*
 * replica_id.c - state_dir/replica-id.
 *
 * It stands there, and not in the shared memory, because the results below state_dir outlive a boot, and others ask for
 * them by this name. A copied state_dir is another server with the same name: that one must be removed there.
 */
/* SPDX-License-Identifier: MIT */
#include "master/replica_id.h"

#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { REPLICA_ID_FILE_MAX = 128 };

static int
replica_id_path(const struct config *config, char *path, size_t size, struct err *err)
{
	if (snprintf(path, size, "%s/replica-id", config->state_dir) >= (int)size)
		return err_set(err, ERR_INVALID, "state_dir is too long");
	return 0;
}

int
replica_id_read(const struct config *config, char ret_id[ID_UUID_SIZE], struct err *err)
{
	AUTO_FREE char *text = NULL;
	char path[PATH_MAX];
	size_t len;

	if (replica_id_path(config, path, sizeof path, err) < 0 ||
		file_read_at(AT_FDCWD, path, REPLICA_ID_FILE_MAX, &text, &len, err) < 0)
		return -1;
	text[strcspn(text, "\n")] = '\0';
	if (!id_is_uuid(text))
		return err_set(err, ERR_INVALID,
			"%s holds no id of a server: remove it, and this server gets a new one", path);
	memcpy(ret_id, text, ID_UUID_SIZE);
	return 0;
}

int
replica_id_make(const struct config *config, struct err *err)
{
	char path[PATH_MAX], text[ID_UUID_SIZE + 1], id[ID_UUID_SIZE];

	if (replica_id_path(config, path, sizeof path, err) < 0)
		return -1;
	if (access(path, F_OK) == 0)
		return replica_id_read(config, id, err);
	id_uuid4(id);
	snprintf(text, sizeof text, "%s\n", id);
	return file_write_atomic_at(AT_FDCWD, path, 0644, text, strlen(text), true, err);
}
