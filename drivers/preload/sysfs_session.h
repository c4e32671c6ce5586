/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of sysfs_tree.h that this process uses. Processes of a user that have the same daemon share
 * one, so that a directory in which one of them is, or of which it has a descriptor, is the same for
 * all. */
#ifndef ROCADE_PRELOAD_SYSFS_SESSION_H
#define ROCADE_PRELOAD_SYSFS_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "verbs/sysfs_sweep.h" /* TREE_NAME */

#define TREE_PATH_MAX 128 /* of each tree's path, which has fewer characters */

/* > 0: this thread is in a function of this folder, which means the kernel's paths and the tree's. */
extern __thread unsigned sysfs_depth;

/* Returns the path of the tree, which is made if it is not there; NULL: there is no device, or no folder
 * in which it could be made. The text stays valid. Any thread. */
const char *sysfs_session_root(void);
/* Writes the file of this path anew, if it is one that changes. */
void sysfs_session_refresh(const char *path);

#endif
