/* SPDX-License-Identifier: BSD-3-Clause */
/* The libc functions that return a path: programs see the kernel's name of what is in the tree. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/next.h"
#include "preload/paths.h"
#include "verbs/export.h"

/* Called in place of the functions without "chk" if _FORTIFY_SOURCE is set. */
char *__realpath_chk(const char *path, char *resolved, size_t size);
char *__getcwd_chk(char *buf, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(
	int dirfd, const char *path, char *buf, size_t size, size_t room);

/* Children of fork() and vfork() may call these functions before exec(), where the dynamic loader must not
 * be called. So the constructor below looks them up. */
#define FIND(name)                                                                       \
	static __typeof__(&name) next_##name(void)                                       \
	{                                                                                \
		return NEXT_FUNCTION(name);                                              \
	}
FIND(getcwd)
FIND(readlinkat)
#undef FIND

static __attribute__((constructor)) void
next_results_find(void)
{
	(void)next_getcwd();
	(void)next_readlinkat();
}

/* Takes what leads to the tree from the beginning. */
static char *
shown(char *path)
{
	size_t hidden = path != NULL ? path_hidden(path) : 0;

	if (hidden != 0)
		memmove(path, path + hidden, strlen(path + hidden) + 1);
	return path;
}

EXPORT char *
realpath(const char *path, char *resolved)
{
	struct path_buf buf;

	return shown(NEXT_FUNCTION(realpath)(path_serve(path, &buf), resolved));
}

EXPORT char *
__realpath_chk(const char *path, char *resolved, size_t size)
{
	struct path_buf buf;

	return shown(
		NEXT_FUNCTION(__realpath_chk)(path_serve(path, &buf), resolved, size));
}

EXPORT char *
canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

EXPORT char *
getcwd(char *buf, size_t size)
{
	char *path = next_getcwd()(buf, size);
	char full[PATH_MAX];

	/* The name that is shown has room where the real one has none. */
	if (path == NULL && errno == ERANGE && buf != NULL &&
		next_getcwd()(full, sizeof(full)) != NULL) {
		(void)shown(full);
		errno = ERANGE;
		if (strlen(full) < size)
			path = strcpy(buf, full);
	}
	return shown(path);
}

EXPORT char *
__getcwd_chk(char *buf, size_t size, size_t room)
{
	return getcwd(buf, size < room ? size : room);
}

EXPORT char *
get_current_dir_name(void)
{
	return shown(NEXT_FUNCTION(get_current_dir_name)());
}

/* Reads the link into a buffer of its own, as the target that is shown may have room where the real one has
 * none. */
static ssize_t
link_read(int dirfd, const char *path, char *buf, size_t size)
{
	struct path_buf served;
	char target[PATH_MAX];
	size_t hidden;
	ssize_t len;

	path = path_serve(path, &served);
	len = next_readlinkat()(dirfd, path, target, sizeof(target) - 1);
	if (len < 0)
		return len;
	if (size == 0) {
		errno = EINVAL;
		return -1;
	}
	target[len] = '\0';
	hidden = path_hidden(target);
	len -= (ssize_t)hidden;
	if ((size_t)len > size)
		len = (ssize_t)size;
	memcpy(buf, target + hidden, (size_t)len);
	return len;
}

EXPORT ssize_t
readlink(const char *path, char *buf, size_t size)
{
	return link_read(AT_FDCWD, path, buf, size);
}

EXPORT ssize_t
readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	return link_read(dirfd, path, buf, size);
}

EXPORT ssize_t
__readlink_chk(const char *path, char *buf, size_t size, size_t room)
{
	return link_read(AT_FDCWD, path, buf, size < room ? size : room);
}

EXPORT ssize_t
__readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t room)
{
	return link_read(dirfd, path, buf, size < room ? size : room);
}
