/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_sysfs_make() and the like: the files of the daemon's device for programs that no preload reaches. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rocade/status.h>

#include "shm/shm_facts.h"
#include "verbs/export.h"
#include "verbs/sysfs_sweep.h"
#include "verbs/sysfs_tree.h"

static char made[ROCADE_NAME_MAX]; /* the device of rocade_sysfs_make() */

static int
result(int rc)
{
	return rc == 0 ? 0 : rocade_fail(-rc, "sysfs: %s", strerror(-rc));
}

int
rocade_sysfs_make(const char *socket, int root)
{
	struct device_facts facts;
	int rc = shm_facts(socket, true, false, &facts);

	if (rc == 0)
		rc = sysfs_tree_make(root);
	if (rc == 0)
		rc = sysfs_device_add(root, &facts);
	if (rc == 0)
		snprintf(made, sizeof(made), "%s", facts.name);
	return result(rc);
}

int
rocade_sysfs_refresh(const char *socket, int root)
{
	struct device_facts facts;
	int rc = shm_facts(socket, true, true, &facts);

	if (rc == 0)
		rc = sysfs_device_refresh(root, &facts);
	else if (made[0] != '\0' && rc != -ETIMEDOUT)
		sysfs_device_write_down(root, made);
	return result(rc);
}

const char *
rocade_sysfs_root(unsigned i)
{
	return sysfs_root(i);
}

void
rocade_sysfs_sweep(void)
{
	const char *path;
	int folder;

	for (unsigned i = 0; folder = sysfs_folder_open(i, &path), path != NULL; i++) {
		if (folder < 0)
			continue;
		sysfs_sweep(folder, path, NULL);
		close(folder);
	}
}
