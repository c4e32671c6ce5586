/* SPDX-License-Identifier: BSD-3-Clause */
/* --mount: the paths of the device in a mount namespace of rocade-run and the program. */
#ifndef RUN_MOUNT_TREE_H
#define RUN_MOUNT_TREE_H

#include "run_conf.h"

#define MOUNT_REFRESH_S 1 /* how often the files that change are written */

/* Enters the namespace, and sets the program's environment for it. Returns 0 or an exit code, after a
 * message. */
int mount_enter(const struct conf *s);
/* In the child that becomes the program: its namespace is a copy in which the directories of /sys are read-only,
 * as most files of the kernel there are. Returns as above. */
int mount_program_enter(void);
/* Writes the files that change: in the namespace of rocade-run. */
void mount_refresh(const struct conf *s);

#endif
