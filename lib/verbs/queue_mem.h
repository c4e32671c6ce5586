/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of queues from the allocators of a parent domain (ibv_alloc_parent_domain(3)). They are
 * called by the thread that creates or destroys the object, without a lock. */
#ifndef ROCADE_VERBS_QUEUE_MEM_H
#define ROCADE_VERBS_QUEUE_MEM_H

#include "verbs/objects.h"

/* Returns the allocator for an object on the PD (NULL: a CQ without one): that of the port, or one
 * that queue_mem_free() ends. NULL: no memory. */
const struct alloc *queue_mem_new(
	struct verbs_pd *pd, const struct alloc *port, enum rocade_resource type);

/* The object is complete. Later memory comes from the port, because it is allocated
 * with locks held. */
void queue_mem_created(const struct alloc *mem);

/* Frees what the allocators gave, when the object has no queue any more. Before pd_unuse(). */
void queue_mem_free(const struct alloc *mem);

#endif
