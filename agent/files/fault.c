/* fault.c - one line per errno. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/fault.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct fault faults[] = {
	{ ENOENT, 404, "not_found", "there is no such file or directory" },
	{ EISDIR, 400, "is_directory", "it is a directory" },
	{ ENOTDIR, 400, "not_directory", "it, or a part of its path, is not a directory" },
	{ EACCES, 403, "permission_denied", "permission denied to the sandbox's user" },
	{ EPERM, 403, "permission_denied", "operation not permitted to the sandbox's user" },
	{ EROFS, 403, "read_only", "read-only file system; choose a path below a writable directory" },
	{ ENOSPC, 507, "no_space", "no space left on device; remove files, or make the sandbox with more disk" },
	{ EDQUOT, 507, "quota", "the disk quota is used up; remove files, or make the sandbox with more disk" },
	{ EFBIG, 507, "quota", "the file is larger than the file system or a limit allows" },
	{ EEXIST, 409, "exists", "it exists already" },
	{ ENOTEMPTY, 409, "not_empty", "the directory is not empty" },
	{ ENAMETOOLONG, 400, "name_too_long", "the name is too long; a part has at most 255 bytes" },
	{ ENXIO, 400, "not_regular", "it is a fifo, a socket or a device, not a regular file" },
	{ ENODEV, 400, "not_regular", "it is a device, not a regular file" },
	{ EINVAL, 400, "invalid", "the file system refuses it as invalid" },
	{ EILSEQ, 400, "invalid", "the file system does not take such a name" },
	{ EXDEV, 400, "invalid", "the two lie on different file systems" },
	{ EBUSY, 409, "busy", "it is in use, e.g. a mount point" },
	{ ETXTBSY, 409, "busy", "it is being executed" },
	{ ELOOP, 400, "too_many_links", "too many symbolic links on the way" },
	{ EMLINK, 400, "too_many_links", "the directory or file has as many links as it may" },
	{ EAGAIN, 409, "busy", "it is in use" },
	{ ENOMEM, 503, "no_memory", "the sandbox has no memory left for it" },
};

const struct fault *
fault_of_errno(int errnum)
{
	static struct fault unknown = { 0, 500, "io_error", NULL };

	for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
		if (faults[i].errnum == errnum)
			return &faults[i];
	unknown.errnum = errnum;
	unknown.words = strerror(errnum);
	return &unknown;
}
