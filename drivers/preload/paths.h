/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths through which programs learn about an RDMA device. The kernel does not provide
 * them for Rocade's device. */
#ifndef ROCADE_PRELOAD_PATHS_H
#define ROCADE_PRELOAD_PATHS_H

#include <stdbool.h>

/* The network interface that programs are shown. The kernel has none of the device; this one always
 * exists and is up. */
#define PATH_INTERFACE "lo"

struct path_served {
	const char *path;   /* use this path instead */
	int fd;             /* must stay open while path is in use; -1: none */
	bool one_interface; /* a directory of which only PATH_INTERFACE is shown */
	char buf[128];
};

/*
 * Returns whether the path belongs to one of Rocade's devices (preload/served.h), with the path
 * to use instead. A device node is replaced by /dev/null: programs check that the node exists,
 * but do not use it. A file is replaced by one with the text that the kernel would
 * provide. Preserves errno.
 */
bool path_serve(const char *path, struct path_served *out);
/* Preserves errno. */
void path_done(const struct path_served *served);

#endif
