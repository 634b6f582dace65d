/* bed.c - what the tests of the spawner share. */
/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/text.h"
#include "conf/config.h"
#include "master/role.h"
#include "spawner/cgroup/cgroup_find.h"
#include "spawner/spawner.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { SKIP = 77, ANSWER_TIMEOUT_S = 60 };

int
run_shell(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	return system(command);
}

static bool
namespaces_work(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) == 0 ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void
bed_require_root(void)
{
	if (geteuid() == 0 && namespaces_work() && access("/bin/busybox", X_OK) == 0)
		return;
	fprintf(stderr, "SKIPPED: making sandboxes needs root, namespaces and /bin/busybox\n");
	exit(SKIP);
}

static void
set_path(const char *name, const char *dir, const char *sub)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s", dir, sub);
	setenv(name, path, 1);
}

void
bed_open(struct bed *bed)
{
	const char *agent = getenv("ORCHARD_TEST_AGENT");
	struct err err;
	char agent_path[512];

	memset(bed, 0, sizeof *bed);
	bed->fd = -1;
	strcpy(bed->dir, "/tmp/spawner-test-XXXXXX");
	assert_non_null(mkdtemp(bed->dir));
	assert_int_equal(chmod(bed->dir, 0755), 0);
	set_path("STATE_DIR", bed->dir, "state");
	set_path("RUN_DIR", bed->dir, "run");
	setenv("SERVICE_USER", "root", 1);
	setenv("AUTH_ENABLED", "off", 1);
	unsetenv("IDMAP_BASE");
	unsetenv("SANDBOX_BLANKS");
	if (agent == NULL) {
		assert_non_null(getcwd(agent_path, sizeof agent_path - 32));
		strcat(agent_path, "/agent/orchard-agent");
		agent = agent_path;
	}
	setenv("AGENT_PATH", agent, 1);
	if (config_load(NULL, &bed->config, &err) != 0)
		fail_msg("%s", err.msg);
	snprintf(bed->image, sizeof bed->image, "dir:%s/image", bed->dir);
	assert_int_equal(
		run_shell("cd %s && mkdir -p image/bin image/etc image/root run && cp /bin/busybox image/bin "
			  "&& for i in sh ls cat id echo touch mount umount hostname ps ip head sleep dd "
			  "stat chmod mkdir mknod unshare grep wc sort mv rm ln df ulimit kill; do "
			  "ln -s busybox image/bin/$i; done && "
			  "printf 'root:x:0:0:root:/root:/bin/sh\\nuser:x:1000:1000::/tmp:/bin/sh\\n' "
			  "> image/etc/passwd && echo untouched > image/etc/motd",
			bed->dir),
		0);
}

void
bed_set(struct bed *bed, const char *name, const char *value)
{
	struct config *config;
	struct err err;

	setenv(name, value, 1);
	if (config_load(NULL, &config, &err) != 0)
		fail_msg("%s", err.msg);
	config_free(bed->config);
	bed->config = config;
}

static int
listen_socket(const struct bed *bed)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s/run/spawner.sock", bed->dir);
	(void)unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0)
		fail_msg("%s: %s", address.sun_path, strerror(errno));
	return fd;
}

int
bed_connect(struct bed *bed)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval timeout = { .tv_sec = ANSWER_TIMEOUT_S };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s/run/spawner.sock", bed->dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
	return fd;
}

void
bed_start_spawner(struct bed *bed)
{
	int listen_fd = listen_socket(bed), ready[2];
	char text[600];
	ssize_t n;

	assert_int_equal(pipe(ready), 0);
	fflush(NULL);
	bed->spawner = fork();
	if (bed->spawner == 0) {
		struct role_env env = { .config = bed->config,
			.listen_fd = -1,
			.spawner_fd = listen_fd,
			.ready_fd = ready[1],
			.alive_fd = -1 };

		close(ready[0]);
		log_init("spawner", LOG_LEVEL_ERROR);
		_exit(spawner_main(&env));
	}
	close(ready[1]);
	close(listen_fd);
	n = read(ready[0], text, sizeof text - 1);
	close(ready[0]);
	if (n < 1 || text[0] != 'R')
		fail_msg("the spawner is not ready: %.*s", n > 0 ? (int)n : 0, text);
	bed->fd = bed_connect(bed);
}

void
bed_stop_spawner(struct bed *bed, int signal)
{
	int status;

	if (bed->spawner <= 0)
		return;
	close(bed->fd);
	kill(bed->spawner, signal);
	waitpid(bed->spawner, &status, 0);
	bed->spawner = 0;
}

void
bed_close(struct bed *bed)
{
	bed_stop_spawner(bed, SIGTERM);
	config_free(bed->config);
	assert_int_equal(run_shell("rm -rf %s", bed->dir), 0);
}

void
bed_fill_create(struct bed *bed, struct spawn_create *create, struct bed_box *box)
{
	memset(create, 0, sizeof *create);
	memset(box, 0, sizeof *box);
	id_sandbox(box->id);
	id_uuid4(box->uid);
	id_token(box->token);
	create->head = (struct spawn_header){ SPAWN_VERSION, SPAWN_CREATE, ++bed->seq };
	strcpy(create->id, box->id);
	strcpy(create->uid, box->uid);
	strcpy(create->token, box->token);
	strcpy(create->image, bed->image);
	create->block_network = true;
	create->cpu_milli = 1000;
	create->memory_bytes = 64 << 20;
	create->pids_max = 64;
}

void
bed_send(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), len);
}

void
bed_receive(int fd, uint32_t op, uint64_t seq, void *packet, size_t len)
{
	char buf[4096];

	for (;;) {
		struct spawn_header head;
		ssize_t n = recv(fd, buf, sizeof buf, 0);

		if (n < (ssize_t)sizeof head)
			fail_msg("no answer from the spawner: %zd %s", n, strerror(errno));
		memcpy(&head, buf, sizeof head);
		if (head.op != op || head.seq != seq)
			continue;
		assert_int_equal(n, len);
		memcpy(packet, buf, len);
		return;
	}
}

int
bed_create(struct bed *bed, struct spawn_create *create, struct spawn_reply *ret_reply)
{
	struct spawn_reply reply;

	bed_send(bed->fd, create, sizeof *create);
	bed_receive(bed->fd, SPAWN_DONE, create->head.seq, &reply, sizeof reply);
	if (ret_reply != NULL)
		*ret_reply = reply;
	return reply.code;
}

int
bed_make(struct bed *bed, struct bed_box *box)
{
	struct spawn_create create;

	bed_fill_create(bed, &create, box);
	if (bed_create(bed, &create, &box->made) != ERR_NONE)
		fprintf(stderr, "create: %s\n", box->made.message);
	return box->made.code;
}

int
bed_destroy(struct bed *bed, const struct bed_box *box)
{
	struct spawn_target target = { .head = { SPAWN_VERSION, SPAWN_DESTROY, ++bed->seq } };
	struct spawn_reply reply;

	strcpy(target.id, box->id);
	strcpy(target.uid, box->uid);
	bed_send(bed->fd, &target, sizeof target);
	bed_receive(bed->fd, SPAWN_DONE, target.head.seq, &reply, sizeof reply);
	if (reply.code != ERR_NONE)
		fprintf(stderr, "destroy: %s\n", reply.message);
	return reply.code;
}

/* The item of that uid, if it is there, and how many there are. */
static bool
read_list(struct bed *bed, const char *uid, struct spawn_item *ret_item, unsigned *ret_count)
{
	struct spawn_header list = { SPAWN_VERSION, SPAWN_LIST, ++bed->seq };
	bool found = false;

	*ret_count = 0;
	bed_send(bed->fd, &list, sizeof list);
	for (;;) {
		union {
			struct spawn_header head;
			struct spawn_item item;
			struct spawn_reply reply;
		} packet;

		assert_true(recv(bed->fd, &packet, sizeof packet, 0) > 0);
		if (packet.head.seq != list.seq)
			continue;
		if (packet.head.op == SPAWN_DONE)
			return found;
		++*ret_count;
		if (strcmp(packet.item.uid, uid) == 0) {
			found = true;
			*ret_item = packet.item;
		}
	}
}

bool
bed_find(struct bed *bed, const char *uid, struct spawn_item *ret_item)
{
	unsigned count;

	return read_list(bed, uid, ret_item, &count);
}

unsigned
bed_count(struct bed *bed)
{
	struct spawn_item item;
	unsigned count;

	(void)read_list(bed, "", &item, &count);
	return count;
}

/* --- the agent --- */

static int
connect_agent(const struct bed_box *box)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval timeout = { .tv_sec = ANSWER_TIMEOUT_S };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%.100s", box->made.endpoint + strlen("unix:"));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
		fprintf(stderr, "connect %s: %s\n", address.sun_path, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

static size_t
append_decoded(struct json_object *job, const char *field, char *out, size_t at, size_t size)
{
	const char *text = json_object_get_string(json_object_object_get(job, field));
	AUTO_FREE uint8_t *data = NULL;
	size_t len;

	if (text == NULL || text_base64_decode(text, strlen(text), &data, &len) != 0)
		return at;
	if (len > size - 1 - at)
		len = size - 1 - at;
	memcpy(out + at, data, len);
	return at + len;
}

int
bed_exec(const struct bed_box *box, const char *command, char *out, size_t size)
{
	static uint64_t fence;
	AUTO_JSON struct json_object *request = json_object_new_object();
	AUTO_JSON struct json_object *job = NULL;
	AUTO_FD fd = connect_agent(box);
	static char answer[1 << 20];
	char job_id[ID_UUID_SIZE], *body;
	size_t len = 0, body_len;
	const char *text;
	struct err err;
	ssize_t n;

	out[0] = '\0';
	if (fd < 0)
		return -1;
	id_uuid4(job_id);
	json_object_object_add(request, "job_id", json_object_new_string(job_id));
	json_object_object_add(request, "fence", json_object_new_int64((int64_t)++fence));
	json_object_object_add(request, "command", json_object_new_string(command));
	json_object_object_add(request, "timeout_ms", json_object_new_int64(30000));
	text = json_text(request, &body_len);
	dprintf(fd,
		"POST /exec HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Orchard-Token: %s\r\nX-Orchard-Sandbox: "
		"%s\r\n"
		"Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		box->token, box->uid, body_len, text);
	while (len < sizeof answer - 1 && (n = read(fd, answer + len, sizeof answer - 1 - len)) > 0)
		len += (size_t)n;
	answer[len] = '\0';
	body = strstr(answer, "\r\n\r\n");
	job = body != NULL ? json_parse(body + 4, strlen(body + 4), &err) : NULL;
	if (job == NULL || strstr(answer, " 200 ") == NULL) {
		fprintf(stderr, "agent: %.400s\n", answer);
		return -1;
	}
	out[append_decoded(job, "stderr_base64", out, append_decoded(job, "stdout_base64", out, 0, size), size)] =
		'\0';
	return json_object_get_int(json_object_object_get(job, "exit_code"));
}

void
bed_expect(const struct bed_box *box, const char *command, const char *output)
{
	char out[4096];

	(void)bed_exec(box, command, out, sizeof out);
	if (strcmp(out, output) != 0)
		fail_msg("%s: \"%s\" instead of \"%s\"", command, out, output);
}

/* --- leftovers --- */

static void
assert_no_group(const char *controller, const struct bed *bed, const char *id)
{
	char own[512], path[1200], hex[TEXT_SHA256_HEX_SIZE], state_dir[128];

	if (!cgroup_find_dir(controller, "", own, sizeof own))
		return;
	snprintf(state_dir, sizeof state_dir, "%s/state", bed->dir);
	text_sha256_hex(state_dir, strlen(state_dir), hex);
	snprintf(path, sizeof path, "%s/orchard-%.12s/%s", own, hex, id);
	if (access(path, F_OK) == 0)
		fail_msg("cgroup left: %s", path);
}

void
bed_assert_gone(const struct bed *bed, const struct bed_box *box, pid_t pid)
{
	char path[256];

	if (pid > 0 && proc_is_alive(pid, proc_start_time(pid))) /* a zombie may still wait for its SIGCHLD */
		fail_msg("process %d is left", (int)pid);
	snprintf(path, sizeof path, "%s/state/sandboxes/%s", bed->dir, box->id);
	assert_int_not_equal(access(path, F_OK), 0);
	snprintf(path, sizeof path, "%s/run/sandboxes/%s", bed->dir, box->id);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_no_group(NULL, bed, box->id);
	assert_no_group("cpu", bed, box->id);
	assert_no_group("memory", bed, box->id);
	assert_no_group("pids", bed, box->id);
}
