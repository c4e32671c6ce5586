/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths through which programs learn about an RDMA device. The kernel does not provide
 * them for Rocade's device: a directory has them (sysfs_session.h), to which the library redirects
 * the calls that name one of them. */
#ifndef ROCADE_PRELOAD_PATHS_H
#define ROCADE_PRELOAD_PATHS_H

#include <limits.h>
#include <stdbool.h>

struct path_buf {
	char text[PATH_MAX];
};

/* Of functions with such a buffer. Programs call functions of libc where they have little stack: in small
 * threads and in handlers of signals. So only a call with a path that may be Rocade's needs the buffer. */
#define WITH_BUFFER __attribute__((noinline))

/* The quick test for most paths: path_serve() returns them. Any thread. */
bool path_may_be_served(const char *path);
/* As above, for path_serve_read(). writes: the call may change the file. */
bool path_may_be_opened(int dirfd, const char *path, bool writes);
/* Returns whether this descriptor, or AT_FDCWD, is of a directory in a tree. Preserves errno. */
bool path_folder_in_tree(int dirfd);

/*
 * Returns the path to use: another one if this is a path of Rocade's devices, and else the path
 * itself. A device node is replaced by /dev/null: programs check that the node exists, but do not
 * use it. A relative path stays, as its directory is the real one already. Preserves errno. Any thread.
 */
const char *path_serve(const char *path, struct path_buf *buf);
/* As path_serve(), for a call that reads the file, relative to the directory dirfd, or AT_FDCWD: it has
 * the present text. The node of RDMA-CM is returned under its own name. */
const char *path_serve_read(int dirfd, const char *path, struct path_buf *buf);
/* Returns whether this is a path in the tree, whose files refuse to be written. */
bool path_is_in_tree(const char *path);
/* Returns how many characters at the beginning of a path, to be left out, lead to the tree. */
unsigned path_hidden(const char *path);

#endif
