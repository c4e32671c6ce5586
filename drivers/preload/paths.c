/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/paths.h"
#include "preload/preload_channel.h"
#include "preload/served.h"
#include "preload/sysfs_session.h"
#include "verbs/sysfs_tree.h"

/* Not this library's readlink(), which shows other targets. */
static ssize_t
link_target(const char *path, char *target, size_t size)
{
	return syscall(SYS_readlinkat, AT_FDCWD, path, target, size);
}

static bool
explains(void)
{
	return served_by.explains != NULL && served_by.explains();
}

/* Of `rocade-run --explain`: paths by which programs look for RDMA. */
static bool
is_explained(const char *path)
{
	static const char *const tops[] = {"/dev/infiniband", "/sys/bus/pci/",
		"/sys/class/infiniband", "/sys/class/misc/", "/sys/module/"};

	for (unsigned i = 0; i < RTE_DIM(tops); i++) {
		if (strncmp(path, tops[i], strlen(tops[i])) == 0)
			return true;
	}
	return false;
}

static bool
has_word(const char *path)
{
	const char *top = path + strspn(path, "/.");

	return (strncmp(top, "sys/", 4) == 0 || strncmp(top, "dev/", 4) == 0 ||
		       strstr(path, "/../") != NULL) &&
	       (strstr(path, "/infiniband") != NULL || strstr(path, "/rdma_cm") != NULL ||
		       strstr(path, "/pciffff:ff") != NULL);
}

bool
path_may_be_served(const char *path)
{
	return sysfs_depth == 0 && path != NULL && path[0] == '/' &&
	       (has_word(path) || (explains() && is_explained(path)));
}

/* Takes the last component from the path, for ".." behind it: outside the tree, whose others the kernel knows
 * only. Returns false if it stays: in the tree, and behind a link. *left: if this was the top of a tree. */
static bool
component_take(char *path, size_t *len, bool *left)
{
	size_t top;
	char one;

	path[*len] = '\0';
	top = sysfs_root_length(path);
	if (top != 0 && *len > top)
		return false;
	if (top == 0 && *len != 0 &&
		(link_target(path, &one, sizeof(one)) >= 0 || errno != EINVAL))
		return false;
	*left |= top != 0;
	while (*len > 0 && path[--*len] != '/')
		;
	return true;
}

/* Copies the path without the slashes and dots that mean nothing. At the end they mean the directory that a
 * link leads to, and are one slash. Returns false if it is too long. */
static bool
path_tidy(const char *path, char *to, size_t size, bool *left)
{
	size_t len = 0;
	bool slash = false;

	while (*path != '\0') {
		size_t part = strcspn(path + 1, "/") + 1;

		if (len + part + 1 >= size)
			return false;
		slash = part == 1 || (part == 2 && path[1] == '.') ||
			(part == 3 && path[1] == '.' && path[2] == '.' &&
				component_take(to, &len, left));
		if (!slash) {
			memcpy(to + len, path, part);
			len += part;
		}
		path += part;
	}
	if (slash)
		to[len++] = '/';
	to[len] = '\0';
	return true;
}

/* The tree has links to what the kernel has, and to /dev/null for nodes: these have absolute targets.
 * end: of the component of the path that may be one. */
static const char *
target_of(const char *root, const char *path, size_t end, char *target, size_t size)
{
	char link[PATH_MAX];
	ssize_t len;

	if (snprintf(link, sizeof(link), "%s%.*s", root, (int)end, path) >=
		(int)sizeof(link))
		return NULL;
	len = link_target(link, target, size - 1);
	if (len < 0)
		return errno == EINVAL ? "" : NULL; /* no link, or nothing */
	target[len] = '\0';
	return target;
}

/* librdmacm compares the number of the node with that in the kernel's files, if the kernel has RDMA-CM. */
static bool
kernel_has_node(const char *tidy)
{
	return strcmp(tidy, CHANNEL_PATH) == 0 &&
	       faccessat(AT_FDCWD, CHANNEL_PATH, F_OK, 0) == 0;
}

/* Without a tree the node of RDMA-CM is there all the same. */
static const char *
node_serve(const char *path, const char *tidy, struct path_buf *buf)
{
	return strcmp(tidy, CHANNEL_PATH) == 0 && served_by.channel() &&
			       !kernel_has_node(tidy)
		       ? strcpy(buf->text, "/dev/null")
		       : path;
}

static const char *
absolute_serve(const char *path, struct path_buf *buf)
{
	char tidy[PATH_MAX], target_buf[PATH_MAX];
	const char *root, *target;
	size_t top, end;
	bool left = false;

	if (!path_tidy(path, tidy, sizeof(tidy), &left))
		return path;
	top = sysfs_root_length(tidy);
	if (top == 0 && !left)
		return path;
	if (!served_by.device(NULL))
		return node_serve(path, tidy, buf);
	if (top == 0)
		return strcpy(buf->text, tidy);
	root = sysfs_session_root();
	if (root == NULL)
		return node_serve(path, tidy, buf);
	end = top + strspn(tidy + top, "/");
	end += strcspn(tidy + end, "/");
	target = target_of(root, tidy, end, target_buf, sizeof(target_buf));
	if (target == NULL || snprintf(buf->text, sizeof(buf->text), "%s%s", root,
				      tidy) >= (int)sizeof(buf->text))
		return path;
	if (target[0] != '/')
		return buf->text;
	if (strcmp(target, "/dev/null") != 0 || kernel_has_node(tidy))
		return path;
	snprintf(buf->text, sizeof(buf->text), "%s%s", target, tidy + end);
	return buf->text;
}

const char *
path_serve(const char *path, struct path_buf *buf)
{
	const char *used = path;
	int err = errno;

	if (!path_may_be_served(path))
		return path;
	sysfs_depth++;
	used = absolute_serve(path, buf);
	if (explains() && is_explained(path) &&
		faccessat(AT_FDCWD, used, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
		served_by.absent(path);
	sysfs_depth--;
	errno = err;
	return used;
}

/* Reads as much of the directory's path as there is room. Returns false if there is none. snprintf() needs too
 * much stack: see WITH_BUFFER. */
static bool
folder_read(int dirfd, char *folder, size_t size)
{
	static const char fds[] = "/proc/self/fd/";
	char link[32] = "", *at = link + sizeof(link) - 1;
	ssize_t len;

	for (unsigned left = (unsigned)dirfd; left != 0 || *at == '\0'; left /= 10)
		*--at = (char)('0' + left % 10);
	at -= strlen(fds);
	memcpy(at, fds, strlen(fds));
	len = link_target(dirfd == AT_FDCWD ? "/proc/self/cwd" : at, folder, size - 1);
	folder[len > 0 ? len : 0] = '\0';
	return len > 0;
}

bool
path_folder_in_tree(int dirfd)
{
	char begin[TREE_PATH_MAX];
	int err = errno;
	bool found = folder_read(dirfd, begin, sizeof(begin)) &&
		     strstr(begin, TREE_NAME) != NULL;

	errno = err;
	return found;
}

bool
path_may_be_opened(int dirfd, const char *path, bool writes)
{
	const char *last;

	if (path == NULL || sysfs_depth != 0)
		return false;
	if (path[0] == '/')
		return path_may_be_served(path) ||
		       (writes && strstr(path, TREE_NAME) != NULL);
	last = strrchr(path, '/');
	last = last != NULL ? last + 1 : path;
	return (writes || sysfs_live_name(last) || strcmp(last, "rdma_cm") == 0) &&
	       path_folder_in_tree(dirfd);
}

/* Returns the whole path, if this is one in the tree of this process, and else NULL. */
static const char *
relative_find(int dirfd, const char *path, struct path_buf *buf)
{
	char folder[PATH_MAX];
	const char *root;

	if (!folder_read(dirfd, folder, sizeof(folder)))
		return NULL;
	/* Another process may have brought this one here. */
	root = strstr(folder, TREE_NAME) != NULL ? sysfs_session_root() : NULL;
	if (root == NULL || strncmp(folder, root, strlen(root)) != 0 ||
		snprintf(buf->text, sizeof(buf->text), "%s/%s", folder, path) >=
			(int)sizeof(buf->text))
		return NULL;
	return buf->text;
}

/* Returns whether this is a name of the node of RDMA-CM. */
static bool
is_channel(const char *path, struct path_buf *buf)
{
	bool left = false;

	return path_may_be_served(path) &&
	       path_tidy(path, buf->text, sizeof(buf->text), &left) &&
	       strcmp(buf->text, CHANNEL_PATH) == 0;
}

const char *
path_serve_read(int dirfd, const char *path, struct path_buf *buf)
{
	int err = errno;
	const char *found;

	if (path == NULL || sysfs_depth != 0)
		return path;
	if (is_channel(path, buf)) {
		errno = err;
		return CHANNEL_PATH;
	}
	if (path[0] == '/') {
		path = path_serve(path, buf);
		found = path;
	} else {
		sysfs_depth++;
		found = relative_find(dirfd, path, buf);
		sysfs_depth--;
		if (found != NULL &&
			strcmp(found + path_hidden(found), CHANNEL_PATH) == 0)
			path = CHANNEL_PATH;
	}
	if (found != NULL && path_is_in_tree(found)) {
		sysfs_depth++;
		sysfs_session_refresh(found);
		sysfs_depth--;
	}
	errno = err;
	return path;
}

/* Returns whether this is a tree, of this process or of the one that has started it in a directory of that. */
static bool
is_tree(const char *root)
{
	struct stat st;

	return lstat(root, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

unsigned
path_hidden(const char *path)
{
	const char *name = strstr(path, TREE_NAME), *rest;
	char root[TREE_PATH_MAX];
	int err = errno;
	bool hidden;

	rest = name != NULL ? strchr(name + 1, '/') : NULL;
	if (rest == NULL || rest - path >= (ptrdiff_t)sizeof(root) ||
		(strncmp(rest, "/sys", 4) != 0 && strncmp(rest, "/dev", 4) != 0))
		return 0;
	memcpy(root, path, (size_t)(rest - path));
	root[rest - path] = '\0';
	hidden = is_tree(root);
	errno = err;
	return hidden ? (unsigned)(rest - path) : 0;
}

bool
path_is_in_tree(const char *path)
{
	return path != NULL && path_hidden(path) != 0;
}
