/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subordinate uids (subuid(5)). A user may run processes under all uids of its ranges (newuidmap(1)), 65,536
 * on most systems. Each of them is a user to the kernel, with rights of its own; what it holds of the daemon is
 * charged to the owner of the range.
 */
#ifndef ROCADE_SERVER_SUBUIDS_H
#define ROCADE_SERVER_SUBUIDS_H

#include <stdint.h>

#define SUBUIDS_PATH "/etc/subuid"

struct subuid_range {
	uint32_t first, count;
	uint32_t owner;
};

struct subuids {
	struct subuid_range *ranges;
	uint32_t count, room;
};

/* Reads the ranges of the file; without the file there are none. Lines that are no range, and ranges with uid
 * 0, are skipped. Names of users are looked up, so this is for the start of the daemon. A range of a user that
 * does not exist is owned by its first uid. Returns 0 or -ENOMEM. */
int subuids_read(struct subuids *s, const char *path);
void subuids_free(struct subuids *s);

/* Returns who is charged for what processes of the uid hold. */
uint32_t subuids_payer(const struct subuids *s, uint32_t uid);

#endif
