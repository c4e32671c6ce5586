/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives the program that includes this trees of sysfs_session.h of its own: one that runs at the same time, and one
 * that has failed, have trees of the same name. */
#ifndef OWN_TREES_H
#define OWN_TREES_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/sysfs_tree.h"

static char own_trees[] = "/tmp/rocade-trees-XXXXXX";
static pid_t own_trees_pid; /* a child of fork() leaves them */

static __attribute__((constructor)) void
own_trees_begin(void)
{
	if (mkdtemp(own_trees) == NULL || setenv("XDG_RUNTIME_DIR", own_trees, 1) != 0)
		abort();
	own_trees_pid = getpid();
}

static __attribute__((destructor)) void
own_trees_end(void)
{
	if (getpid() == own_trees_pid)
		sysfs_tree_remove(AT_FDCWD, own_trees);
}

#endif
