/* blank_root.c - a directory, an overlay in it, and which layers lie below. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/blank_root.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "image/image.h"
#include "spawner/make/box_dir.h"
#include "spawner/disk/disk.h"
#include "spawner/make/make.h"
#include "spawner/make/rootfs.h"
#include "spawner/site.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* As long as its mount stands, no other directory can get these. */
struct layer_id {
	dev_t dev;
	ino_t ino;
};

static bool
identify(int layer, struct layer_id *ret_id)
{
	struct stat st;

	if (fstat(layer, &st) != 0)
		return false;
	*ret_id = (struct layer_id){ st.st_dev, st.st_ino };
	return true;
}

static int
note_layers(struct blank_root *root, const struct image *image, struct err *err)
{
	root->layers = alloc_zero(image->layer_count, sizeof *root->layers);
	root->layer_count = image->layer_count;
	for (size_t i = 0; i < image->layer_count; i++) {
		if (!identify(image->layers[i], &root->layers[i]))
			return err_set_errno(err, errno, "look at a layer");
	}
	return 0;
}

static int
make_steps(const struct site *site, const struct blank_order *order, const struct image *image, int userns,
	struct blank_root *root, int *ret_mount, struct err *err)
{
	struct rootfs_plan plan = { .scratch_fd = site->pieces_fd,
		.userns_fd = userns,
		.layers = image->layers,
		.layer_count = image->layer_count };
	AUTO_FD box = -1;

	if (note_layers(root, image, err) != 0 || box_dir_make(site, order->name, &box, err) != 0)
		return -1;
	root->made = true;
	if (box_dir_fill(box, site_first_id(site->config->idmap_base, order->slot), err) != 0 ||
		disk_join(&site->disk, box, order->slot, err) != 0)
		return -1;
	plan.box_fd = box;
	return rootfs_build(&plan, ret_mount, err);
}

int
blank_root_make(const struct site *site, const struct blank_order *order, int userns, struct blank_root *ret_root,
	int *ret_mount, struct err *err)
{
	struct image_name name;
	struct image image;
	int rc;

	*ret_root = (struct blank_root){ .made = false };
	if (image_name_parse(order->image, &name, err) != 0 ||
		image_open(site->images_fd, &name, order->digest, &image, err) != 0)
		return -1;
	rc = make_steps(site, order, &image, userns, ret_root, ret_mount, err);
	image_close(&image);
	if (rc != 0)
		blank_root_discard(site, order->name, ret_root);
	return rc;
}

bool
blank_root_fits(const struct blank_root *root, const struct image *image)
{
	struct layer_id id;

	if (!root->made || root->layer_count != image->layer_count)
		return false;
	for (size_t i = 0; i < image->layer_count; i++) {
		if (!identify(image->layers[i], &id) || id.dev != root->layers[i].dev ||
			id.ino != root->layers[i].ino)
			return false;
	}
	return true;
}

void
blank_root_discard(const struct site *site, const char *name, struct blank_root *root)
{
	struct err err;

	if (root->made && box_dir_discard(site, name, name + 1, &err) != 0)
		log_warn("of a sandbox made ahead: %s", err.msg);
	blank_root_free(root);
}

void
blank_root_free(struct blank_root *root)
{
	free(root->layers);
	*root = (struct blank_root){ .made = false };
}
