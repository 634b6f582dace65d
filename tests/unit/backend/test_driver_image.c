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
	static const char *const images[] = { "", "dir:", "oci:", "dir:relative", "oci:relative:v1", "python:3.11",
		"DIR:/x", " dir:/x", "docker://x" };
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_images_below_an_allowed_directory_are_given, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_neighbours_with_the_same_beginning_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links_that_lead_out_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dotdot_is_refused_also_before_a_tag, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_odd_forms_and_tags_are_invalid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_what_the_service_user_cannot_see_is_not_allowed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_missing_is_left_to_the_spawner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_empty_or_relative_allowed_path_allows_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_default_image_may_lie_anywhere, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
