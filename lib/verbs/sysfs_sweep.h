/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories of sysfs_tree.h that processes of a user share, as drivers/preload makes them: they are removed
 * when nothing uses them any more. Each process that uses one has a shared flock(2) on it, which ends with the
 * process however that ends.
 */
#ifndef ROCADE_VERBS_SYSFS_SWEEP_H
#define ROCADE_VERBS_SYSFS_SWEEP_H

#include "verbs/device_facts.h"

#define TREE_NAME "/rocade-sysfs-" /* then the uid, and a key */

/* Opens a directory of this user, which no other user can change. Returns a descriptor or -errno. */
int sysfs_private_open(int folder, const char *name);
/* Opens the folder with index i in which trees can be, in which other users cannot replace a directory of
 * this one. *path: NULL after the last one. Returns a descriptor or -errno. */
int sysfs_folder_open(unsigned i, const char **path);
/* Opens the tree of this name, if there is one of this user, and locks it. how: as for flock(2). Returns a
 * descriptor or -errno; -EAGAIN: another process has removed it meanwhile. */
int sysfs_tree_lock(int folder, const char *name, int how);
/* Notes in the tree which daemon it is of. Returns 0 or -errno. */
int sysfs_daemon_note(int root, const struct device_facts *facts);
/* With an exclusive lock. Another process finds the tree whole or not at all. */
void sysfs_tree_withdraw(int folder, const char *name);
/* Removes the trees in the folder whose daemon has ended, and that no process uses. now: of a daemon that is
 * there; may be NULL. */
void sysfs_sweep(int folder, const char *path, const struct device_facts *now);
/* Removes the tree if the socket of its daemon is not there any more and no process uses it. */
void sysfs_sweep_one(int folder, const char *name);

#endif
