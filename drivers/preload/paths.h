/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths that programs look at to learn about a device: there is no kernel that would
 * serve them for ours.
 */
#ifndef ROCADE_PRELOAD_PATHS_H
#define ROCADE_PRELOAD_PATHS_H

#include <stdbool.h>

struct path_served {
	const char *path; /* what to use in its place */
	int fd;           /* open as long as path is of use; -1 */
	char buf[32];
};

/*
 * Whether the path is one of a device called name. A device node is as good as /dev/null:
 * one may read and write it, and nobody does. A file is one that holds what the kernel's
 * would say. errno stays as it is.
 */
bool
path_serve(const char *path, const char *name, struct path_served *out);
/* errno stays as it is. */
void
path_done(const struct path_served *served);

#endif
