/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of librocade-faults.so, which stands before librocade-verbs.so and librdmacm in the search order:
 * each counts a call, refuses it, or calls the next one. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "preload/fault_connections.h"
#include "preload/fault_function.h"
#include "preload/fault_process.h"
#include "preload/fault_queues.h"
#include "preload/fault_requests.h"
#include "preload/real_dl.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static int
fail_minus(int err)
{
	errno = err;
	return -1;
}

static void *
fail_pointer(int err)
{
	errno = err;
	return NULL;
}

static int
fail_number(int err)
{
	errno = err;
	return err;
}

#define VERB(kind, type, call, function, node, parameters, arguments, context_)          \
	EXPORT type function parameters                                                  \
	{                                                                                \
		__typeof__(&function) next = NEXT(function, node);                       \
		int err = next == NULL ? ENOSYS : 0;                                     \
		type value;                                                              \
                                                                                         \
		if (err == 0 && fault_context_is_patched(context_))                      \
			err = fault_refusal(FAULT_##call);                               \
		if (err != 0)                                                            \
			return fail_##kind(err);                                         \
		fault_inside++;                                                          \
		value = next arguments;                                                  \
		fault_inside--;                                                          \
		return value;                                                            \
	}

/* Whether an ID is of another device: verbs is NULL as long as it has none. */
static bool
is_elsewhere(const struct ibv_context *verbs)
{
	return verbs != NULL && !fault_context_is_patched(verbs);
}

/* It calls verbs itself, which count. Its own calls of these functions, for example to find out what the kernel
 * has, do not. */
#define CM(kind, type, call, function, node, parameters, arguments, context_)            \
	EXPORT type function parameters                                                  \
	{                                                                                \
		__typeof__(&function) next = NEXT(function, node);                       \
		int err = next == NULL ? ENOSYS : 0;                                     \
                                                                                         \
		if (err == 0 && !is_elsewhere(context_) &&                               \
			!fault_same_library(                                             \
				__builtin_return_address(0), (const void *)next))        \
			err = fault_refusal(FAULT_##call);                               \
		return err != 0 ? fail_##kind(err) : next arguments;                     \
	}

/* Such a call, on an ID, whose connection a rule may concern, too. */
#define CONNECTION(call, function, parameters, arguments)                                \
	EXPORT int function parameters                                                   \
	{                                                                                \
		__typeof__(&function) next = NEXT(function, "RDMACM_1.0");               \
		bool faulty = false;                                                     \
		int err = next == NULL ? ENOSYS : 0;                                     \
                                                                                         \
		if (err == 0 && !is_elsewhere(id->verbs))                                \
			err = fault_connection_call(FAULT_##call, id,                    \
				!fault_same_library(__builtin_return_address(0),         \
					(const void *)next),                             \
				&faulty);                                                \
		err = err != 0 ? fail_minus(err) : next arguments;                       \
		if (err != 0 && faulty)                                                  \
			fault_connection_forget(id);                                     \
		return err;                                                              \
	}

#define QUEUE(object, call, create, destroy, attributes)                                 \
	EXPORT struct ibv_##object *create(struct ibv_pd *pd, attributes *attr)          \
	{                                                                                \
		__typeof__(&create) next = NEXT(create, "IBVERBS_1.1");                  \
		bool ours = fault_context_is_patched(pd->context);                       \
		int err = next == NULL ? ENOSYS                                          \
			  : ours       ? fault_refusal(FAULT_##call)                     \
				       : 0;                                                    \
		struct ibv_##object *made;                                               \
                                                                                         \
		if (err != 0)                                                            \
			return fail_pointer(err);                                        \
		fault_inside++;                                                          \
		made = next(pd, attr);                                                   \
		fault_inside--;                                                          \
		if (ours && made != NULL)                                                \
			fault_##object##_made(made);                                     \
		return made;                                                             \
	}                                                                                \
                                                                                         \
	EXPORT int destroy(struct ibv_##object *object)                                  \
	{                                                                                \
		__typeof__(&destroy) next = NEXT(destroy, "IBVERBS_1.1");                \
		struct counted_queue *q;                                                 \
		int err;                                                                 \
                                                                                         \
		if (next == NULL)                                                        \
			return fail_number(ENOSYS);                                      \
		q = fault_queue_leave(object);                                           \
		err = next(object);                                                      \
		fault_queue_left(q, object, err == 0);                                   \
		return err;                                                              \
	}

/* RESET discards the requests that were posted. */
#define MODIFY(call, function)                                                           \
	EXPORT int function(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)       \
	{                                                                                \
		__typeof__(&function) next = NEXT(function, "IBVERBS_1.1");              \
		bool ours = fault_context_is_patched(qp->context);                       \
		bool reset = ours && (mask & IBV_QP_STATE) != 0 &&                       \
			     attr->qp_state == IBV_QPS_RESET;                            \
		int err = next == NULL ? ENOSYS                                          \
			  : ours       ? fault_refusal(FAULT_##call)                     \
				       : 0;                                                    \
		uint32_t posted = err == 0 && reset ? fault_posted(qp) : 0;              \
                                                                                         \
		if (err != 0)                                                            \
			return fail_number(err);                                         \
		fault_inside++;                                                          \
		err = next(qp, attr, mask);                                              \
		fault_inside--;                                                          \
		if (reset && err == 0)                                                   \
			fault_qp_was_reset(qp, posted);                                  \
		return err;                                                              \
	}

#include "preload/fault_entries.def"

/* A device is Rocade's if the mark that it has is in Rocade's library (verbs/forward.h). */
static bool
device_is_rocades(const struct ibv_device *device, const void *opened_by)
{
	return device->_ops._dummy1 != NULL &&
	       fault_same_library((const void *)device->_ops._dummy1, opened_by);
}

#define OPEN(function, node, parameters, argument, is_refused)                           \
	EXPORT struct ibv_context *function parameters                                   \
	{                                                                                \
		__typeof__(&function) next = NEXT(function, node);                       \
		struct ibv_context *context;                                             \
                                                                                         \
		if (next == NULL)                                                        \
			return fail_pointer(ENOSYS);                                     \
		if (is_refused)                                                          \
			return NULL;                                                     \
		fault_inside++;                                                          \
		context = next(argument);                                                \
		fault_inside--;                                                          \
		if (context != NULL)                                                     \
			fault_context_patch(context, (const void *)next);                \
		return context;                                                          \
	}

OPEN(ibv_open_device, "IBVERBS_1.1", (struct ibv_device * device), device,
	device_is_rocades(device, (const void *)next) &&
		fault_refusal(FAULT_open_device) != 0)
OPEN(ibv_import_device, "IBVERBS_1.10", (int cmd_fd), cmd_fd, false)

/* The QP's functions of ibv_wr_post(3). */
EXPORT struct ibv_qp_ex *(ibv_qp_to_qp_ex)(struct ibv_qp *qp)
{
	__typeof__(&ibv_qp_to_qp_ex) next = NEXT(ibv_qp_to_qp_ex, "IBVERBS_1.6");
	struct ibv_qp_ex *ex = next != NULL ? next(qp) : NULL;

	if (ex != NULL && fault_context_is_patched(qp->context))
		fault_wr_patch(ex);
	return ex;
}

/* For symbols.c: programs that look functions up get these. */
EXPORT void *
rocade_faults_function(const char *name)
{
	static const struct {
		const char *name;
		void (*function)(void);
	} entries[] = {
#define VERB(kind, type, call, function, ...) {#function, (void (*)(void))function},
#define CM(kind, type, call, function, ...) {#function, (void (*)(void))function},
#define CONNECTION(call, function, parameters, arguments)                                \
	{#function, (void (*)(void))function},
#define MODIFY(call, function) {#function, (void (*)(void))function},
#define QUEUE(object, call, create, destroy, attributes)                                 \
	{#create, (void (*)(void))create}, {#destroy, (void (*)(void))destroy},
#include "preload/fault_entries.def"
		{"ibv_open_device", (void (*)(void))ibv_open_device},
		{"ibv_import_device", (void (*)(void))ibv_import_device},
		{"ibv_qp_to_qp_ex", (void (*)(void))ibv_qp_to_qp_ex},
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		if (strcmp(entries[i].name, name) == 0)
			return (void *)(uintptr_t)entries[i].function;
	}
	return NULL;
}
