/* box_state.c - state.json of a sandbox. */
/* SPDX-License-Identifier: MIT */
#include "spawner/box_state.h"

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <json-c/json.h>
#include <limits.h>
#include <string.h>

enum { STATE_MAX = 16 * 1024 };

/* Not synced: it only matters to the boot it names. */
int
box_state_write(int box_fd, const struct box_state *state, struct err *err)
{
	AUTO_JSON struct json_object *object = json_object_new_object();
	const char *text;
	size_t len;

	if (object == NULL)
		abort();
	json_object_object_add(object, "id", json_object_new_string(state->id));
	json_object_object_add(object, "uid", json_object_new_string(state->uid));
	json_object_object_add(object, "boot_id", json_object_new_string(state->boot_id));
	json_object_object_add(object, "state", json_object_new_string(state->live ? "live" : "making"));
	json_object_object_add(object, "slot", json_object_new_int64(state->slot));
	json_object_object_add(object, "pid", json_object_new_int64(state->pid));
	json_object_object_add(object, "pid_start", json_object_new_uint64(state->pid_start));
	text = json_text(object, &len);
	return file_write_atomic_at(box_fd, "state.json", 0600, text, len, false, err);
}

int
box_state_read(int box_fd, struct box_state *ret_state, struct err *err)
{
	AUTO_FREE char *text = NULL;
	AUTO_JSON struct json_object *object = NULL;
	const char *id = "", *uid = "", *boot = "", *state = "";
	int64_t slot = -1, pid = 0, pid_start = 0;
	struct json_reader reader;
	size_t len;

	if (file_read_at(box_fd, "state.json", STATE_MAX, &text, &len, err) != 0)
		return -1;
	object = json_parse(text, len, err);
	if (object == NULL || !json_object_is_type(object, json_type_object))
		return err_set(err, ERR_INVALID, "state.json is damaged");
	json_reader_init(&reader, object);
	json_reader_string(&reader, "id", sizeof ret_state->id - 1, &id);
	json_reader_string(&reader, "uid", sizeof ret_state->uid - 1, &uid);
	json_reader_string(&reader, "boot_id", sizeof ret_state->boot_id - 1, &boot);
	json_reader_string(&reader, "state", 16, &state);
	json_reader_int(&reader, "slot", 0, UINT32_MAX, &slot);
	json_reader_int(&reader, "pid", 0, INT32_MAX, &pid);
	json_reader_int(&reader, "pid_start", 0, INT64_MAX, &pid_start);
	json_reader_fini(&reader);
	memset(ret_state, 0, sizeof *ret_state);
	if (!id_is_sandbox_id(id) || !id_is_uuid(uid) || slot < 0 ||
		!text_copy(ret_state->id, sizeof ret_state->id, id) ||
		!text_copy(ret_state->uid, sizeof ret_state->uid, uid) ||
		!text_copy(ret_state->boot_id, sizeof ret_state->boot_id, boot))
		return err_set(err, ERR_INVALID, "state.json is damaged");
	ret_state->live = strcmp(state, "live") == 0;
	ret_state->slot = (uint32_t)slot;
	ret_state->pid = (pid_t)pid;
	ret_state->pid_start = (uint64_t)pid_start;
	return 0;
}
