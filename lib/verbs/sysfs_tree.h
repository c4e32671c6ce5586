/* SPDX-License-Identifier: BSD-3-Clause */
/* A directory with the paths of sysfs.def: real directories, files and links, whose names begin at
 * its root as those of the kernel at "/". */
#ifndef ROCADE_VERBS_SYSFS_TREE_H
#define ROCADE_VERBS_SYSFS_TREE_H

#include <limits.h>

#include "verbs/device_facts.h"

/* A file that changes: a row of sysfs.def, and the index of its '#'. */
struct sysfs_live {
	unsigned row, index;
	char device[64];
};

/* root: a descriptor of the directory. All return 0 or -errno. */
int sysfs_tree_make(int root);
int sysfs_device_add(int root, const struct device_facts *facts);
/* Both remove the files of devices of the tree; the links to the kernel's devices stay. */
void sysfs_device_remove(int root, const char *name);
void sysfs_devices_sweep(int root, bool (*is_used)(const char *name));
/* Returns whether the tree has the device, and no earlier one of its name. */
bool sysfs_device_is_there(int root, const struct device_facts *facts);
/* Removes the directory of this name, and all that is in it, from another one. */
void sysfs_tree_remove(int folder, const char *name);

/* Returns whether the path is one of a file that changes. Such paths end in the device's name and the
 * rest of the row, whichever way they begin. */
bool sysfs_live_find(const char *path, struct sysfs_live *live);
/* Returns whether its text is one of the counters. */
bool sysfs_live_counts(const struct sysfs_live *live);
/* Returns whether a path that ends in this component can be one of these. */
bool sysfs_live_name(const char *name);
/* Replaces the file by one with the present text: a reader of the one before sees no part of it. */
int sysfs_live_write(
	int root, const struct sysfs_live *live, const struct device_facts *facts);
/* As above, of a device whose state cannot be found out: its port is down, and other files stay. */
int sysfs_live_write_down(int root, const struct sysfs_live *live);
void sysfs_device_write_down(int root, const char *name);
/* All files of the device that change. */
int sysfs_device_refresh(int root, const struct device_facts *facts);

/* Returns the path with index i below which the tree has files, or NULL after the last one. */
const char *sysfs_root(unsigned i);
/* Returns the length of that which the path begins with; 0: none. */
unsigned sysfs_root_length(const char *path);

#endif
