/* test_driver_image.c - clients get images below the allowed directories, and no way around. */
/* SPDX-License-Identifier: MIT */
#include "backend/driver.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "conf/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { NOBODY = 65534 };

static char top[64], allowed[80], link_to_allowed[80];
static char hub[] = "docker.io", star[] = "*", local_driver[] = "local";
static char *any_registry[] = { star };
static struct config config;
static struct err err;

static void
path_in(char *path, size_t size, const char *base, const char *name)
{
	assert_true((size_t)snprintf(path, size, "%s/%s", base, name) < size);
}

static void
make_dir(const char *base, const char *name)
{
	char path[256];

	path_in(path, sizeof path, base, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void
make_link(const char *target, const char *base, const char *name)
{
	char path[256];

	path_in(path, sizeof path, base, name);
	assert_int_equal(symlink(target, path), 0);
}

static int
set_up(void **state)
{
	static char *items[4];

	(void)state;
	strcpy(top, "/tmp/driver-image-XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(chmod(top, 0755), 0);
	path_in(allowed, sizeof allowed, top, "allowed");
	path_in(link_to_allowed, sizeof link_to_allowed, top, "link");
	make_dir(top, "allowed");
	make_dir(top, "allowed-not");
	make_dir(allowed, "image");
	make_dir(allowed, "a:b");
	make_link("allowed", top, "link");
	make_link("/etc", allowed, "out");
	make_link("image", allowed, "in");
	memset(&config, 0, sizeof config);
	items[0] = allowed;
	items[1] = link_to_allowed;
	config.local_image_paths.items = items;
	config.local_image_paths.count = 2;
	config.default_image = strdup("");
	config.driver = local_driver;
	config.image_registry_default = hub;
	config.image_registries = (struct config_list){ .count = 1, .items = any_registry };
	return 0;
}

static int
tear_down(void **state)
{
	char command[96];

	(void)state;
	free(config.default_image);
	snprintf(command, sizeof command, "rm -rf %s", top);
	return system(command);
}

static enum err_code __attribute__((format(printf, 1, 2))) resolve(const char *format, ...)
{
	char image[2048], found[512] = "";
	va_list args;

	va_start(args, format);
	vsnprintf(image, sizeof image, format, args);
	va_end(args);
	if (driver_image_resolve(&config, image, found, sizeof found, &err) != 0)
		return err.code;
	assert_string_equal(found, image);
	return ERR_NONE;
}

static void
test_images_below_an_allowed_directory_are_given(void **state)
{
	(void)state;
	assert_int_equal(resolve("dir:%s/image", allowed), ERR_NONE);
	assert_int_equal(resolve("dir:%s/image/", allowed), ERR_NONE);
	assert_int_equal(resolve("dir:%s//image", allowed), ERR_NONE);
	assert_int_equal(resolve("dir:%s", allowed), ERR_NONE);
	assert_int_equal(resolve("dir:%s/in", allowed), ERR_NONE);
	assert_int_equal(resolve("dir:%s/image", link_to_allowed), ERR_NONE);
	assert_int_equal(resolve("oci:%s/image:v1.0_x-y", allowed), ERR_NONE);
	assert_int_equal(resolve("oci:%s/image", allowed), ERR_NONE);
	assert_int_equal(resolve("dir:%s/a:b", allowed), ERR_NONE);
	assert_int_equal(resolve("oci:%s/a:b:v1", allowed), ERR_NONE);
}

static void
test_neighbours_with_the_same_beginning_are_refused(void **state)
{
	(void)state;
	assert_int_equal(resolve("dir:%s-not", allowed), ERR_DENIED);
	assert_int_equal(resolve("oci:%s-not", allowed), ERR_DENIED);
	assert_int_equal(resolve("dir:/etc"), ERR_DENIED);
	assert_int_equal(resolve("dir:/"), ERR_DENIED);
	assert_int_equal(resolve("dir://etc"), ERR_DENIED);
}

static void
test_links_that_lead_out_are_refused(void **state)
{
	(void)state;
	assert_int_equal(resolve("dir:%s/out", allowed), ERR_DENIED);
	assert_int_equal(resolve("dir:%s/out/", allowed), ERR_DENIED);
	assert_int_equal(resolve("dir:%s/out/ssl", link_to_allowed), ERR_DENIED);
	assert_int_equal(resolve("oci:%s/out:latest", allowed), ERR_DENIED);
}

static void
test_dotdot_is_refused_also_before_a_tag(void **state)
{
	(void)state;
	assert_int_equal(resolve("dir:%s/../allowed/image", allowed), ERR_INVALID);
	assert_int_equal(resolve("dir:%s/..", allowed), ERR_INVALID);
	assert_int_equal(resolve("oci:%s/..:v1", allowed), ERR_INVALID);
	assert_int_equal(resolve("oci:%s/none/../..:v1", allowed), ERR_INVALID);
	assert_int_equal(resolve("dir:%s/..image", allowed), ERR_NONE);
}

static void
test_odd_forms_and_tags_are_invalid(void **state)
{
	static const char *const images[] = { "", "dir:", "oci:", "dir:relative", "oci:relative:v1", "DIR:/x",
		" dir:/x", "oci-archive:x", "docker-archive:", "docker-archive:/a/../b", "docker://",
		"docker:///x" };
	static const char *const tags[] = { "oci:%s/image:", "oci:%s/image:a b", "oci:%s/image:v1\n",
		"oci:%s/image:@x" };
	char *many;

	(void)state;
	for (size_t i = 0; i < sizeof images / sizeof *images; i++)
		assert_int_equal(resolve("%s", images[i]), ERR_INVALID);
	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
		assert_int_equal(resolve("oci:%s/image:%s", allowed, tags[i]), ERR_INVALID);
	many = alloc_bytes(1025);
	memset(many, 'x', 1024);
	many[1024] = '\0';
	memcpy(many, "dir:/", 5);
	assert_int_not_equal(resolve("%s", many), ERR_NONE);
	free(many);
}

static void
test_archives_are_files_with_a_name_behind_the_first_colon(void **state)
{
	(void)state;
	assert_int_equal(resolve("oci-archive:%s/x.tar", allowed), ERR_NONE);
	assert_int_equal(resolve("oci-archive:%s/x.tar:v1", allowed), ERR_NONE);
	assert_int_equal(resolve("docker-archive:%s/x.tar.gz:team/app:v1", allowed), ERR_NONE);
	assert_int_equal(resolve("docker-archive:%s/x.tar:", allowed), ERR_INVALID);
	assert_int_equal(resolve("docker-archive:%s/x.tar:a b", allowed), ERR_INVALID);
	assert_int_equal(resolve("docker-archive:%s/../x.tar:a", allowed), ERR_INVALID);
	assert_int_equal(resolve("docker-archive:/etc/x.tar:%s/x", allowed), ERR_DENIED);
	assert_int_equal(resolve("oci-archive:%s/out/passwd", allowed), ERR_DENIED);
}

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
test_names_of_registries_are_made_whole(void **state)
{
	static const char *const names[][2] = {
		{ "python", "docker://docker.io/library/python:latest" },
		{ "python:3.11-slim", "docker://docker.io/library/python:3.11-slim" },
		{ "docker://python:3.11", "docker://docker.io/library/python:3.11" },
		{ "docker.io/python", "docker://docker.io/library/python:latest" },
		{ "index.docker.io/team/app", "docker://docker.io/team/app:latest" },
		{ "team/app:v1", "docker://docker.io/team/app:v1" },
		{ "localhost/app", "docker://localhost/app:latest" },
		{ "10.0.0.1:5000/a/b_c/d--e.f:V1.x_y", "docker://10.0.0.1:5000/a/b_c/d--e.f:V1.x_y" },
		{ "[::1]:5000/app:v1", "docker://[::1]:5000/app:v1" },
		{ "ghcr.io/team/app@" DIGEST, "docker://ghcr.io/team/app@" DIGEST },
		{ "python:3.11@" DIGEST, "docker://docker.io/library/python@" DIGEST },
	};
	char found[512];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_int_equal(driver_image_resolve(&config, names[i][0], found, sizeof found, &err), 0);
		assert_string_equal(found, names[i][1]);
		assert_int_equal(driver_image_resolve(&config, found, found, sizeof found, &err), 0);
		assert_string_equal(found, names[i][1]);
	}
}

static void
test_what_is_no_name_of_an_image_is_invalid(void **state)
{
	static const char *const names[] = { "Python", "a//b", "/a", "a/", "a:b:c", "a:", "a:-x", "a:.x", "a@",
		"a@sha256:12", "a@sha512:0", "a.b:99999999/x", "-x/y", "--flag", "a.b/--flag", "a__b___c", "a._b",
		"a b", "a\nb", "[::1/x", "[/x", "a.b:/x", "a.b:x/y", ("a@" DIGEST "0"), "a/\xc3\xa4",
		"sha256:", "@" DIGEST, ":v1" };
	char name[600];

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (resolve("%s", names[i]) != ERR_INVALID)
			fail_msg("\"%s\" is taken", names[i]);
	}
	memset(name, 'a', sizeof name);
	name[sizeof name - 1] = '\0';
	assert_int_equal(resolve("%s", name), ERR_INVALID);
	name[440] = '\0'; /* fits alone, but not with registry and tag */
	assert_int_equal(driver_image_resolve(&config, name, (char[64]){ 0 }, 64, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
}

static void
test_only_listed_registries_are_allowed(void **state)
{
	char one[] = "docker.io", team[] = "ghcr.io/team/", port[] = "127.0.0.1:5000", empty[] = "";
	char *items[] = { one, team, port, empty };

	(void)state;
	config.image_registries = (struct config_list){ .count = 4, .items = items };
	assert_int_equal(resolve("docker://docker.io/library/python:3"), ERR_NONE);
	assert_int_equal(resolve("docker://ghcr.io/team/app:v1"), ERR_NONE);
	assert_int_equal(resolve("docker://ghcr.io/team:v1"), ERR_NONE);
	assert_int_equal(resolve("docker://127.0.0.1:5000/app:v1"), ERR_NONE);
	assert_int_equal(resolve("ghcr.io/teams/app:v1"), ERR_DENIED);
	assert_int_equal(resolve("127.0.0.1:50001/app:v1"), ERR_DENIED);
	assert_int_equal(resolve("docker.io.example/app:v1"), ERR_DENIED);
	config.image_registries.count = 0;
	assert_int_equal(resolve("python"), ERR_DENIED);
	free(config.default_image);
	config.default_image = strdup("docker://docker.io/library/python:3");
	assert_int_equal(resolve("docker://docker.io/library/python:3"), ERR_NONE);
}

static void
test_what_the_service_user_cannot_see_is_not_allowed(void **state)
{
	char path[256];
	enum err_code code;

	(void)state;
	if (geteuid() != 0)
		skip();
	make_dir(allowed, "closed");
	path_in(path, sizeof path, allowed, "closed");
	make_link("/root", path, "hidden");
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	code = resolve("dir:%s/closed/hidden", allowed);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(code, ERR_DENIED);
	assert_non_null(strstr(err.msg, "searchable"));
}

static void
test_what_is_missing_is_left_to_the_spawner(void **state)
{
	(void)state;
	assert_int_equal(resolve("dir:%s/missing", allowed), ERR_NONE);
	assert_int_equal(resolve("dir:%s-missing", allowed), ERR_DENIED);
}

static void
test_an_empty_or_relative_allowed_path_allows_nothing(void **state)
{
	char empty[] = "", relative[] = "etc";
	char *items[] = { empty, relative };

	(void)state;
	config.local_image_paths.items = items;
	assert_int_equal(resolve("dir:/etc"), ERR_DENIED);
	config.local_image_paths.count = 0;
	assert_int_equal(resolve("dir:%s/image", allowed), ERR_DENIED);
}

static void
test_the_default_image_may_lie_anywhere(void **state)
{
	char found[512] = "";

	(void)state;
	assert_int_equal(driver_image_resolve(&config, "default", found, sizeof found, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	free(config.default_image);
	config.default_image = strdup("dir:/etc");
	assert_int_equal(driver_image_resolve(&config, "default", found, sizeof found, &err), 0);
	assert_string_equal(found, "dir:/etc");
	assert_int_equal(resolve("dir:/etc"), ERR_NONE);
	assert_int_equal(resolve("dir:/etc/ssl"), ERR_DENIED);
	assert_int_equal(driver_image_resolve(&config, "default", found, 4, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
}

/* Nodes of a cluster have neither our files nor our idea of a default registry. */
static void
test_a_cluster_gets_names_of_registries_as_they_were_written(void **state)
{
	static const char *const good[] = { "python", "python:3.11", "localhost:5000/a/b:c", "team/image",
		"a.b/c@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" };
	char driver[] = "kubernetes", found[512] = "", listed[] = "docker.io/library";
	char *items[] = { listed };

	(void)state;
	config.driver = driver;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(resolve("%s", good[i]), ERR_NONE);
	assert_int_equal(resolve("dir:%s/image", allowed), ERR_INVALID);
	assert_int_equal(resolve("oci:%s/image", allowed), ERR_INVALID);
	assert_int_equal(resolve("docker://python"), ERR_INVALID);
	assert_int_equal(resolve("Upper/Case"), ERR_INVALID);
	assert_null(strstr(err.msg, "dir:"));
	config.image_registries.items = items;
	assert_int_equal(resolve("python:3.11"), ERR_NONE);
	assert_int_equal(resolve("team/image"), ERR_DENIED);
	free(config.default_image);
	config.default_image = strdup("team/image");
	assert_int_equal(driver_image_resolve(&config, "default", found, sizeof found, &err), 0);
	assert_string_equal(found, "team/image");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_cluster_gets_names_of_registries_as_they_were_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_images_below_an_allowed_directory_are_given, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_neighbours_with_the_same_beginning_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links_that_lead_out_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dotdot_is_refused_also_before_a_tag, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_odd_forms_and_tags_are_invalid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_archives_are_files_with_a_name_behind_the_first_colon, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_names_of_registries_are_made_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_name_of_an_image_is_invalid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_only_listed_registries_are_allowed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_the_service_user_cannot_see_is_not_allowed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_missing_is_left_to_the_spawner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_empty_or_relative_allowed_path_allows_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_default_image_may_lie_anywhere, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
