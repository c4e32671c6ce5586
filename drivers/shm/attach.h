/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a client and the daemon share, on the client's side. */
#ifndef ROCADE_SHM_ATTACH_H
#define ROCADE_SHM_ATTACH_H

#include "switch/proto.h"

/* Checks and maps a part of a pair: the own one, whose pages it allocates, or the partner's, for
 * reading. Returns 0, -EPROTO or -errno. */
int pair_part_map(int fd, const struct pair_geom *geom, bool own, void **mem);

/* Checks, fills and maps both parts: fds of the reply to SW_ATTACH. Returns 0, -EPROTO if the
 * geometry or the memory is not as it must be, or -errno. */
int region_map(const int fds[SW_ATTACH_FDS], const struct region_geom *geom,
	struct region *region);
void region_unmap(const struct region *region);

#endif
