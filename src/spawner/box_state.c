/* box_state.c - state.json of a sandbox. */
/* SPDX-License-Identifier: MIT */
#include "spawner/box_state.h"

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	STATE_MAX = 16 * 1024,
	STATE_ROOM = 64, /* what a record may grow by when the sandbox lives: numbers */
	STATE_PAGE = 4096
};

static void
add_net(struct json_object *object, const struct net_grant *net)
{
	struct json_object *allow;
	char text[IP_DEST_TEXT_SIZE];

	if (net->address == 0)
		return;
	ip_range_text(&(struct ip_range){ net->address, 32, 0 }, text);
	json_object_object_add(object, "address", json_object_new_string(text));
	if (!net->egress.limited)
		return;
	allow = json_object_new_array();
	for (uint32_t i = 0; i < net->egress.count; i++) {
		ip_dest_text(&net->egress.allow[i], text);
		json_object_array_add(allow, json_object_new_string(text));
	}
	json_object_object_add(object, "allow", allow);
}

/* What is damaged grants nothing. */
static bool
read_net(struct json_object *object, struct net_grant *net)
{
	struct json_object *value;
	struct ip_range address;
	struct err err;

	if (!json_object_object_get_ex(object, "address", &value))
		return true;
	if (ip_range_parse(json_object_get_string(value), &address, &err) != 0)
		return false;
	net->address = address.address;
	if (!json_object_object_get_ex(object, "allow", &value))
		return true;
	net->egress.limited = true;
	if (!json_object_is_type(value, json_type_array) || json_object_array_length(value) > EGRESS_MAX)
		return false;
	for (size_t i = 0; i < json_object_array_length(value); i++) {
		const char *text = json_object_get_string(json_object_array_get_idx(value, i));

		if (text == NULL || ip_dest_parse(text, &net->egress.allow[net->egress.count++], &err) != 0)
			return false;
	}
	return true;
}

/* Blanks up to the end of the file, which JSON does not mind. */
static int
put_text(int fd, const char *text, size_t len, size_t size, struct err *err)
{
	char page[STATE_PAGE];

	memcpy(page, text, len);
	memset(page + len, ' ', size - len);
	if (pwrite(fd, page, size, 0) != (ssize_t)size)
		return err_set_errno(err, errno, "write state.json");
	return 0;
}

/*
 * A second file and a rename cost more than all else of it. What fits into a page is written by one call that no
 * signal cuts in two; and a directory whose first record is cut short is one without a record.
 */
static int
put_record(int box_fd, const char *text, size_t len, struct err *err)
{
	const int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
	AUTO_FD fd = -1;
	struct stat st;

	if (len + STATE_ROOM > STATE_PAGE)
		return file_write_atomic_at(box_fd, "state.json", 0600, text, len, false, err);
	fd = openat(box_fd, "state.json", flags | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		return put_text(fd, text, len, len + STATE_ROOM, err);
	fd = openat(box_fd, "state.json", flags);
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_set_errno(err, errno, "open state.json");
	if (st.st_size < (off_t)len || st.st_size > STATE_PAGE)
		return file_write_atomic_at(box_fd, "state.json", 0600, text, len, false, err);
	return put_text(fd, text, len, (size_t)st.st_size, err);
}

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
	if (strcmp(state->group, state->id) != 0)
		json_object_object_add(object, "group", json_object_new_string(state->group));
	json_object_object_add(object, "boot_id", json_object_new_string(state->boot_id));
	json_object_object_add(object, "state", json_object_new_string(state->live ? "live" : "making"));
	json_object_object_add(object, "first_id", json_object_new_int64(state->first_id));
	json_object_object_add(object, "image", json_object_new_string(state->image));
	json_object_object_add(object, "pid", json_object_new_int64(state->pid));
	json_object_object_add(object, "pid_start", json_object_new_uint64(state->pid_start));
	json_object_object_add(object, "watched_disk", json_object_new_int64(state->watched_disk));
	add_net(object, &state->net);
	text = json_text(object, &len);
	return put_record(box_fd, text, len, err);
}

static bool
is_group(const char *name, const char *id)
{
	return strcmp(name, id) == 0 || (name[0] == '-' && id_is_uuid(name + 1));
}

int
box_state_read(int box_fd, struct box_state *ret_state, struct err *err)
{
	AUTO_FREE char *text = NULL;
	AUTO_JSON struct json_object *object = NULL;
	const char *id = "", *uid = "", *group = NULL, *boot = "", *state = "", *image = IMAGE_UNKNOWN;
	int64_t slot = -1, first_id = 0, pid = 0, pid_start = 0, watched_disk = 0;
	struct json_reader reader;
	struct stat st;
	size_t len;

	/* a fifo would hold up whoever reads it, and with that everything */
	if (fstatat(box_fd, "state.json", &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "state.json is not a plain file");
	if (file_read_at(box_fd, "state.json", STATE_MAX, &text, &len, err) != 0)
		return -1;
	object = json_parse(text, len, err);
	if (object == NULL || !json_object_is_type(object, json_type_object))
		return err_set(err, ERR_INVALID, "state.json is damaged");
	json_reader_init(&reader, object);
	json_reader_string(&reader, "id", sizeof ret_state->id - 1, &id);
	json_reader_string(&reader, "uid", sizeof ret_state->uid - 1, &uid);
	json_reader_string(&reader, "group", sizeof ret_state->group - 1, &group);
	json_reader_string(&reader, "boot_id", sizeof ret_state->boot_id - 1, &boot);
	json_reader_string(&reader, "state", 16, &state);
	json_reader_string(&reader, "image", sizeof ret_state->image - 1, &image);
	json_reader_int(&reader, "slot", 0, UINT32_MAX, &slot);
	json_reader_int(&reader, "first_id", 1, UINT32_MAX, &first_id);
	json_reader_int(&reader, "pid", 0, INT32_MAX, &pid);
	json_reader_int(&reader, "pid_start", 0, INT64_MAX, &pid_start);
	json_reader_int(&reader, "watched_disk", 0, INT64_MAX, &watched_disk);
	json_reader_fini(&reader);
	memset(ret_state, 0, sizeof *ret_state);
	if (!read_net(object, &ret_state->net) || !id_is_sandbox_id(id) || !id_is_uuid(uid) ||
		(slot < 0 && first_id == 0) || !text_copy(ret_state->id, sizeof ret_state->id, id) ||
		!text_copy(ret_state->uid, sizeof ret_state->uid, uid) ||
		!text_copy(ret_state->group, sizeof ret_state->group, group != NULL ? group : id) ||
		!is_group(ret_state->group, id) || !text_copy(ret_state->image, sizeof ret_state->image, image) ||
		!text_copy(ret_state->boot_id, sizeof ret_state->boot_id, boot))
		return err_set(err, ERR_INVALID, "state.json is damaged");
	ret_state->live = strcmp(state, "live") == 0;
	ret_state->first_id = (uint32_t)first_id;
	ret_state->slot = first_id == 0 ? (uint32_t)slot : 0;
	ret_state->watched_disk = watched_disk;
	ret_state->pid = (pid_t)pid;
	ret_state->pid_start = (uint64_t)pid_start;
	return 0;
}
