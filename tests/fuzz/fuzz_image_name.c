/*
 * fuzz_image_name.c - what a client calls an image.
 *
 * A reference that is resolved is a name that the imager reads, and stands for itself when it is resolved again.
 */
/* SPDX-License-Identifier: MIT */
#include "fuzz_config.h"

#include "backend/image_reference.h"
#include "base/err.h"
#include "image/image_name.h"

static void
check_name(const char *text)
{
	struct image_name name;
	struct err err;

	(void)image_name_short(text);
	if (image_name_parse(text, &name, &err) != 0)
		return;
	FUZZ_CHECK(memchr(name.path, '\0', sizeof name.path) != NULL);
	FUZZ_CHECK(memchr(name.tag, '\0', sizeof name.tag) != NULL);
	FUZZ_CHECK(name.form == IMAGE_REGISTRY || name.path[0] == '/');
}

static void
check_reference(const char *text)
{
	static const char scheme[] = "docker://";
	char image[IMAGE_REFERENCE_SIZE], again[IMAGE_REFERENCE_SIZE];
	struct image_name name;
	struct err err;

	if (image_reference_resolve(fuzz_config(), text, true, image, sizeof image, &err) != 0)
		return;
	FUZZ_CHECK(strncmp(image, scheme, sizeof scheme - 1) == 0);
	FUZZ_CHECK(image_name_parse(image, &name, &err) == 0 && name.form == IMAGE_REGISTRY);
	FUZZ_CHECK(image_reference_resolve(
			   fuzz_config(), image + sizeof scheme - 1, true, again, sizeof again, &err) == 0);
	FUZZ_CHECK(strcmp(image, again) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_FREE char *text = fuzz_string(data, len);

	check_name(text);
	check_reference(text);
	return 0;
}
