/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on objects that are not ours go to the real libibverbs, found by dlopen() and dlvsym():
 * RTLD_NEXT would find nothing where it came in as the dependency of a plugin.
 */
#ifndef ROCADE_VERBS_FORWARD_H
#define ROCADE_VERBS_FORWARD_H

#include <stdbool.h>

#include <infiniband/verbs.h>

enum forward_id {
#define FORWARD(name, version) FORWARD_##name,
#include "verbs/forward.def"
#undef FORWARD
	FORWARD_COUNT
};

/* Private to rdma-core, and still called by applications. type: 0 is IB or RoCE v1, 1 RoCE v2. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
	int *type);

/* The real function, or NULL with errno ENOSYS. */
void *forward_symbol(enum forward_id id);

/* > 0: this thread is inside the real library, which calls its own functions by way of the
 * dynamic linker and so comes back to ours. */
extern __thread unsigned forward_depth;

/* Whether a device list asked for from this return address is to show the real devices only:
 * the real library itself, its providers, and DPDK's drivers, which take every device that
 * they are shown for their hardware. */
bool forward_caller(const void *address);

/* The value of the real function's call; failed where there is none. */
#define forward(failed, name, ...)                                                        \
	__extension__({                                                                   \
		__typeof__(name) *forward_fn_ =                                           \
			(__typeof__(name) *)forward_symbol(FORWARD_##name);               \
		__typeof__(forward_fn_(__VA_ARGS__)) forward_value_ = (failed);           \
                                                                                          \
		if (forward_fn_ != NULL) {                                                \
			forward_depth++;                                                  \
			forward_value_ = forward_fn_(__VA_ARGS__);                        \
			forward_depth--;                                                  \
		}                                                                         \
		forward_value_;                                                           \
	})

#define forward_void(name, ...)                                                           \
	do {                                                                              \
		__typeof__(name) *forward_fn_ =                                           \
			(__typeof__(name) *)forward_symbol(FORWARD_##name);               \
                                                                                          \
		if (forward_fn_ != NULL) {                                                \
			forward_depth++;                                                  \
			forward_fn_(__VA_ARGS__);                                         \
			forward_depth--;                                                  \
		}                                                                         \
	} while (0)

#endif
