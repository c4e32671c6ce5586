/* SPDX-License-Identifier: BSD-3-Clause */
/* The faults of this process, whose script rocade-run --faults names in the environment: librocade-faults.so. */
#ifndef ROCADE_PRELOAD_FAULT_PROCESS_H
#define ROCADE_PRELOAD_FAULT_PROCESS_H

#include <infiniband/verbs.h>

#include "faults/faults.h"

/* > 0: this thread is inside a verb. The calls that a verb makes itself do not count. */
extern __thread unsigned fault_inside;

/* Whether a rule of this process counts this: an enum fault_call, FAULT_REQUESTS, FAULT_RECEIVES or FAULT_PACKETS. */
bool fault_is_possible(unsigned counted);
/* Counts a call. Returns the errno by which it is refused, or 0. Sets errno, and writes the line of the journal then. */
int fault_refusal(enum fault_call call);
/* Only counts it. */
struct fault_hit fault_call_hit(enum fault_call call);
/* As fault_plan_request(). */
struct fault_hit fault_request_hit(
	unsigned counted, struct fault_queue queue, uint64_t number, unsigned kind);
/* The device has refused the request. */
void fault_request_undo(unsigned counted);
/* As fault_plan_packet(). */
struct fault_hit fault_packet_hit(
	struct fault_queue queue, const struct fault_packet *packet);
/* Whether a rule of the process concerns the link. */
bool fault_link_is_possible(void);
/* The rules of the process, if one of them concerns anything. */
const struct fault_plan *fault_process_plan(void);
/* A hit is applied: writes the line of the journal. Keeps errno. */
void fault_hit_apply(const struct fault_hit *hit);

/* Returns the function that is behind this library in the search order, or NULL. node: of its version. */
void *fault_next_function(const char *name, const char *node);
/* The same with its type, looked up once. */
#define NEXT(function, node)                                                             \
	__extension__({                                                                  \
		static __typeof__(&function) next_;                                      \
		__typeof__(&function) found_ =                                           \
			__atomic_load_n(&next_, __ATOMIC_RELAXED);                       \
                                                                                         \
		if (found_ == NULL) {                                                    \
			found_ = (__typeof__(&function))fault_next_function(             \
				#function, node);                                        \
			__atomic_store_n(&next_, found_, __ATOMIC_RELAXED);              \
		}                                                                        \
		found_;                                                                  \
	})

/* The functions of librocade-verbs, which is behind this library in the search order; NULL: it is not there. */
struct fault_hooks;
const struct fault_hooks *verbs_hooks(void);

/* Whether both addresses are in one shared object. */
bool fault_same_library(const void *a, const void *b);

/* fault_ops.c: replaces the functions of a new context, if it is Rocade's. opened_by: the next ibv_open_device() or
 * ibv_import_device(). */
void fault_context_patch(struct ibv_context *context, const void *opened_by);
/* Whether they are replaced: so the context is Rocade's. */
bool fault_context_is_patched(const struct ibv_context *context);
void fault_wr_patch(struct ibv_qp_ex *ex);

#endif
