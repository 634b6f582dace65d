/* imager.c - the child that looks after one OCI image. */
/* SPDX-License-Identifier: MIT */
#include "spawner/imager.h"

#include <sys/socket.h>

_Noreturn void
imager_main(int images_fd, const struct image_name *name, int fd)
{
	struct imager_word word = { .kind = IMAGER_FAILED };

	(void)images_fd;
	err_set(&word.why, ERR_UNSUPPORTED, "image %.200s: OCI layouts are not supported yet, use dir:/path",
		name->path);
	(void)send(fd, &word, sizeof word, MSG_NOSIGNAL);
	_exit(1);
}
