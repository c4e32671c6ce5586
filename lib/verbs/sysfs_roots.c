/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "verbs/sysfs_tree.h"

const char *
sysfs_root(unsigned i)
{
	static const char *const roots[] = {
#define SYSFS_ROOT(path) path,
#include "verbs/sysfs.def"
	};

	return i < RTE_DIM(roots) ? roots[i] : NULL;
}

unsigned
sysfs_root_length(const char *path)
{
	const char *root;

	for (unsigned i = 0; (root = sysfs_root(i)) != NULL; i++) {
		size_t len = strlen(root);

		if (strncmp(path, root, len) == 0 &&
			(path[len] == '/' || path[len] == '\0'))
			return (unsigned)len;
	}
	return 0;
}
