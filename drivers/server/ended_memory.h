/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the daemon shared with clients that have ended. The last one to unmap it
 * frees its pages, half a millisecond for each mapping, and its seals forbid to free it in
 * pieces. So when many clients end at once, one mapping is unmapped at a time, so rarely
 * that packets and requests go on meanwhile. It stays charged to the user until then. A
 * user whose clients come and go faster than that, and who has no room for the next one,
 * waits for its own mappings: the request of the next client unmaps them.
 */
#ifndef ROCADE_SERVER_ENDED_MEMORY_H
#define ROCADE_SERVER_ENDED_MEMORY_H

#include <stddef.h>
#include <sys/queue.h>

#include "base/account.h"
#include "base/common.h"

#define ENDED_MEMORY_NS (4 * NS_PER_MS) /* from one to the next */
#define ENDED_MEMORY_TAKE 2 /* unmapped by a request: as many as a client has */

struct mapping {
	void *at; /* NULL: none */
	size_t size;
};

struct ended_memory {
	TAILQ_HEAD(, ended_mapping) mappings; /* the oldest first */
	uint64_t due_ns;                      /* nothing is unmapped before */
};

void ended_memory_init(struct ended_memory *all);
/* Unmaps everything at once. */
void ended_memory_free(struct ended_memory *all);
/* Unmaps the mapping later, and gives kib of memory_kib back to the account then. Without
 * memory for the list, or without a mapping: at once. */
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
