/* SPDX-License-Identifier: BSD-3-Clause */
/* Which objects are Rocade's. Forwards calls on objects that are not Rocade's to the
 * real libibverbs, found by dlopen() and dlvsym(). RTLD_NEXT would not find it if it was
 * loaded as the dependency of a plugin. */
#ifndef ROCADE_VERBS_FORWARD_H
#define ROCADE_VERBS_FORWARD_H

#include <stdbool.h>

#include "verbs/context_ops.h"

/* Marks a context as Rocade's by a function pointer that is never called: rocade-run --faults replaces others. */
static inline void
context_mark(struct ibv_context *context)
{
	context->ops._compat_alloc_pd = (void *(*)(void))(void (*)(void))verbs_poll_cq;
}

/* An object is Rocade's if its context is. */
static inline bool
context_is_ours(const struct ibv_context *context)
{
	return (void (*)(void))context->ops._compat_alloc_pd ==
	       (void (*)(void))verbs_poll_cq;
}

/* Marks a device as Rocade's by a function pointer that is never called. */
static inline void
device_mark(struct ibv_device *device)
{
	device->_ops._dummy1 = (struct ibv_context * (*)(struct ibv_device *, int))(
		void (*)(void))verbs_poll_cq;
}

static inline bool
device_is_ours(const struct ibv_device *device)
{
	return (void (*)(void))device->_ops._dummy1 == (void (*)(void))verbs_poll_cq;
}

enum forward_id {
#define FORWARD(name, version) FORWARD_##name,
#include "verbs/symbols.def"
	FORWARD_COUNT
};

/* Private to rdma-core, but applications call it. type: 0 is IB or RoCE v1, 1 is RoCE
 * v2. */
int ibv_query_gid_type(
	struct ibv_context *context, uint8_t port_num, unsigned int index, int *type);

/* Returns the real function, or NULL with errno ENOSYS. */
void *forward_symbol(enum forward_id id);

/* > 0: this thread is inside the real library. That calls its own functions through the
 * dynamic linker, and so ends up in Rocade's. */
extern __thread unsigned forward_depth;

/* Returns whether a device list requested from this return address must contain only the
 * real devices: for the real library, its providers, and DPDK's drivers, which take every
 * listed device for their hardware. */
bool forward_caller(const void *address);
/* Returns whether the address is in a shared object whose file name begins so. */
bool forward_address_in(const void *address, const char *file);

/* Calls the real function and yields its value, or failed if there is none. */
#define forward(failed, name, ...)                                                       \
	__extension__({                                                                  \
		__typeof__(name) *forward_fn_ =                                          \
			(__typeof__(name) *)forward_symbol(FORWARD_##name);              \
		__typeof__(forward_fn_(__VA_ARGS__)) forward_value_ = (failed);          \
                                                                                         \
		if (forward_fn_ != NULL) {                                               \
			forward_depth++;                                                 \
			forward_value_ = forward_fn_(__VA_ARGS__);                       \
			forward_depth--;                                                 \
		}                                                                        \
		forward_value_;                                                          \
	})

#define forward_void(name, ...)                                                          \
	do {                                                                             \
		__typeof__(name) *forward_fn_ =                                          \
			(__typeof__(name) *)forward_symbol(FORWARD_##name);              \
                                                                                         \
		if (forward_fn_ != NULL) {                                               \
			forward_depth++;                                                 \
			forward_fn_(__VA_ARGS__);                                        \
			forward_depth--;                                                 \
		}                                                                        \
	} while (0)

#endif
