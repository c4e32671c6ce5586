/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the daemon shared with clients that have ended. The process that
 * unmaps it last frees its pages. That takes the daemon half a millisecond for each
 * mapping, and the seals of the memory forbid to free the pages in pieces. So the daemon
 * unmaps one mapping each ENDED_MEMORY_NS, and serves packets and requests in between.
 * Until then the memory stays charged to the user. If a user has no room for the next
 * client, the daemon unmaps mappings of this user while it serves that client's
 * SW_ATTACH.
 */
#ifndef ROCADE_SERVER_ENDED_MEMORY_H
#define ROCADE_SERVER_ENDED_MEMORY_H

#include <stddef.h>
#include <sys/queue.h>

#include "base/account.h"
#include "base/common.h"
#include "server/passed_fds.h"

#define ENDED_MEMORY_NS (4 * NS_PER_MS) /* from one to the next */
#define ENDED_MEMORY_TAKE 2 /* unmapped by a request: as many as a client has */

struct mapping {
	void *at; /* NULL: none */
	size_t size;
	int fd; /* of its memory, which a client has; -1: none */
};

struct ended_memory {
	TAILQ_HEAD(, ended_mapping) mappings; /* the oldest first */
	uint64_t due_ns;                      /* nothing is unmapped before */
	struct passed_fds *passed;
};

/* passed: closes the descriptors. */
void ended_memory_init(struct ended_memory *all, struct passed_fds *passed);
/* Unmaps everything at once. */
void ended_memory_free(struct ended_memory *all);
/* Unmaps the mapping later, then closes its descriptor, and gives kib of memory_kib back to the
 * account. The descriptor is charged until it is closed. Without memory for the list, or without a
 * mapping: at once. */
void ended_memory_add(struct ended_memory *all, const struct mapping *mapping,
	struct account *account, uint32_t kib);
/* Takes kib of memory_kib for the account. If there is no room, unmaps up to
 * ENDED_MEMORY_TAKE mappings of the account first. Returns false if that is not enough. */
bool ended_memory_take(struct ended_memory *all, struct account *account, uint32_t kib);
/* Unmaps the oldest mapping if that is due. */
void ended_memory_run(struct ended_memory *all, uint64_t now);
/* Returns when ended_memory_run() has something to do, or TIME_NEVER. */
uint64_t ended_memory_deadline(const struct ended_memory *all);

#endif
