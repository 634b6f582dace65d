/* imager_archive.c - an archive is unpacked, in the cage that layers are unpacked in, and read as what it holds. */
/* SPDX-License-Identifier: MIT */
#include "image/imager_priv.h"

#include "image/docker_archive.h"
#include "image/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int
open_archive(const char *path, int *ret_fd, struct err *err)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return err_set_errno(err, errno, "the archive");
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "the archive is not a plain file");
	*ret_fd = STEAL_FD(fd);
	return 0;
}

static int
make_dir(int parent, const char *name, int *ret_fd, struct err *err)
{
	if (mkdirat(parent, name, 0700) != 0)
		return err_set_errno(err, errno, "make %s", name);
	*ret_fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd >= 0 ? 0 : err_set_errno(err, errno, "open %s", name);
}

/* Its layers are linked into a layout of our own: no link that the archive holds leads anywhere from there. */
static int
find_docker_image(struct imager *im, int archive_fd, struct err *err)
{
	AUTO_FD blobs = -1;
	AUTO_FD sha256 = -1;

	if (make_dir(im->work_fd, "layout", &im->layout_fd, err) != 0 ||
		make_dir(im->layout_fd, "blobs", &blobs, err) != 0 || make_dir(blobs, "sha256", &sha256, err) != 0)
		return -1;
	return docker_archive_find(archive_fd, sha256, im->order->name->tag, &im->image, err);
}

int
imager_open_archive(struct imager *im, struct err *err)
{
	struct unpack_limit limit = { .bytes_max = im->bytes_left };
	AUTO_FD file = -1;
	AUTO_FD dir = -1;
	AUTO_FD index = -1;

	if (open_archive(im->order->name->path, &file, err) != 0 || imager_open_work(im, err) != 0 ||
		make_dir(im->work_fd, "archive", &dir, err) != 0)
		return -1;
	imager_tell(im, "reading the archive");
	if (unpack_layer(file, NULL, dir, &limit, err) != 0)
		return -1;
	if (im->order->name->form == IMAGE_DOCKER_ARCHIVE)
		return find_docker_image(im, dir, err);
	if (oci_file_open(dir, "index.json", &index, err) != 0)
		return err_prefix(err, "this is no OCI archive");
	im->layout_fd = STEAL_FD(dir);
	return oci_image_find(im->layout_fd, im->order->name->tag, &im->image, err);
}
