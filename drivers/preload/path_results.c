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
#include "preload/sysfs_session.h"
#include "verbs/export.h"

/* Called in place of the functions without "chk" if _FORTIFY_SOURCE is set. */
char *__realpath_chk(const char *path, char *resolved, size_t size);
char *__getcwd_chk(char *buf, size_t size, size_t room);
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
ssize_t __readlinkat_chk(
	int dirfd, const char *path, char *buf, size_t size, size_t room);

NEXT_FIND(getcwd)
NEXT_FIND(readlinkat)

/* Takes what leads to the tree from the beginning. */
static char *
shown(char *path)
{
	size_t hidden = path != NULL ? path_hidden(path) : 0;

	if (hidden != 0)
		memmove(path, path + hidden, strlen(path + hidden) + 1);
	return path;
}

static WITH_BUFFER char *
realpath_served(const char *path, char *resolved)
{
	struct path_buf buf;

	return shown(NEXT_FUNCTION(realpath)(path_serve(path, &buf), resolved));
}

EXPORT char *
realpath(const char *path, char *resolved)
{
	return path_may_be_served(path) ? realpath_served(path, resolved)
					: shown(NEXT_FUNCTION(realpath)(path, resolved));
}

EXPORT char *
__realpath_chk(const char *path, char *resolved, size_t size)
{
	/* The next one ends the program. */
	if (size < PATH_MAX)
		return NEXT_FUNCTION(__realpath_chk)(path, resolved, size);
	return realpath(path, resolved);
}

EXPORT char *
canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

/* The name that is shown has room where the real one has none. */
static WITH_BUFFER char *
cwd_in_tree(char *buf, size_t size)
{
	char full[PATH_MAX];

	if (next_getcwd()(full, sizeof(full)) == NULL)
		return NULL;
	(void)shown(full);
	if (strlen(full) < size)
		return strcpy(buf, full);
	errno = ERANGE;
	return NULL;
}

EXPORT char *
getcwd(char *buf, size_t size)
{
	char *path = next_getcwd()(buf, size);

	if (path == NULL && errno == ERANGE && buf != NULL &&
		path_folder_in_tree(AT_FDCWD))
		return cwd_in_tree(buf, size);
	return shown(path);
}

EXPORT char *
__getcwd_chk(char *buf, size_t size, size_t room)
{
	return size > room ? NEXT_FUNCTION(__getcwd_chk)(buf, size, room)
			   : getcwd(buf, size);
}

EXPORT char *
get_current_dir_name(void)
{
	return shown(NEXT_FUNCTION(get_current_dir_name)());
}

/* Reads the link into a buffer of its own, as the target that is shown may have room where the real one has
 * none. */
static WITH_BUFFER ssize_t
link_read_served(int dirfd, const char *path, char *buf, size_t size)
{
	struct path_buf served;
	char target[PATH_MAX];
	size_t hidden;
	ssize_t len;

	path = path_serve(path, &served);
	/* Of a wrong buffer the kernel says so. */
	len = next_readlinkat()(dirfd, path, buf, size);
	if (len < 0)
		return len;
	len = next_readlinkat()(dirfd, path, target, sizeof(target) - 1);
	if (len < 0)
		return len;
	target[len] = '\0';
	hidden = path_hidden(target);
	len -= (ssize_t)hidden;
	if ((size_t)len > size)
		len = (ssize_t)size;
	memcpy(buf, target + hidden, (size_t)len);
	return len;
}

/* Returns whether the target leads to a tree. buf: with len octets of it, all or the beginning. */
static bool
target_in_tree(int dirfd, const char *path, const char *buf, size_t len, size_t size)
{
	char begin[TREE_PATH_MAX];
	int err = errno;
	ssize_t again;

	if (len == size && size < sizeof(begin)) {
		again = next_readlinkat()(dirfd, path, begin, sizeof(begin));
		errno = err;
		buf = begin;
		len = again > 0 ? (size_t)again : 0;
	}
	return memmem(buf, len, TREE_NAME, strlen(TREE_NAME)) != NULL;
}

static ssize_t
link_read(int dirfd, const char *path, char *buf, size_t size)
{
	ssize_t len;

	if (path_may_be_served(path))
		return link_read_served(dirfd, path, buf, size);
	len = next_readlinkat()(dirfd, path, buf, size);
	if (len <= 0 || !target_in_tree(dirfd, path, buf, (size_t)len, size))
		return len;
	return link_read_served(dirfd, path, buf, size);
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
	return size > room ? NEXT_FUNCTION(__readlink_chk)(path, buf, size, room)
			   : link_read(AT_FDCWD, path, buf, size);
}

EXPORT ssize_t
__readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t room)
{
	return size > room ? NEXT_FUNCTION(__readlinkat_chk)(dirfd, path, buf, size, room)
			   : link_read(dirfd, path, buf, size);
}
