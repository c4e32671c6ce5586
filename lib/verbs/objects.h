/* SPDX-License-Identifier: BSD-3-Clause */
/* Private structures of the verbs objects. Most begin with their public part. */
#ifndef ROCADE_VERBS_OBJECTS_H
#define ROCADE_VERBS_OBJECTS_H

#include <errno.h>

#include "verbs/context_file.h"
#include "verbs/newer.h"
#include "verbs/verbs_port.h"

/* mlx5dv and efadv read private members behind an ibv_device before they know whose
 * device it is: they find zeros. */
#define DEVICE_PAD 1024

struct verbs_device {
	struct ibv_device ibv;
	uint8_t pad[DEVICE_PAD];
	/* Under the device list's lock: */
	/* NULL: closed, only device lists of the application still contain it */
	struct rocade_port *port;
	uint32_t refs;             /* one of the port, and one of every device list */
	struct verbs_device *next; /* list of all devices, or of all of a source */
	int index;
	const struct device_source *source; /* NULL: a port opened by rocade_open_*() */
	bool listed; /* only with a source: the device exists now */
	uint64_t guid;
};

struct verbs_ctx {
	struct verbs_context base; /* its last member is the application's ibv_context */
	/* Both NULL: the port was closed, see struct port_watch. Calls return ENODEV. */
	struct rocade_port *port;
	struct dev *dev;
	struct context_file *file;
	struct event_queue events;
	struct dev_listener listener; /* for the port's events */
	int engine;                   /* engine of the next QP; -1: round robin */
	uint32_t objects;             /* PDs, CQs and other objects not destroyed yet */
};

static inline struct verbs_ctx *
ctx_of_listener(struct dev_listener *listener)
{
	return (struct verbs_ctx *)((char *)listener -
				    offsetof(struct verbs_ctx, listener));
}

struct verbs_td {
	struct ibv_td ibv;
	uint32_t domains; /* parent domains that use it */
};

/* Shared by a PD and those that were imported from its handle. Under the port's lock, except
 * objects. */
struct pd_core {
	LIST_ENTRY(pd_core) link;
	const struct context_file *file;
	uint32_t number;
	uint32_t handles;
	uint32_t objects; /* MRs, SRQs, QPs and other objects not destroyed yet */
	bool destroyed;   /* by ibv_dealloc_pd() of one of the handles */
};

/* As in struct ibv_parent_domain_init_attr. */
struct pd_allocators {
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		uint64_t resource_type);
	void (*free)(
		struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
};

struct verbs_pd {
	struct ibv_pd ibv;
	uint32_t number;
	/* parent domain: the PD that it extends, whose number it shares; NULL: a plain
	 * PD */
	struct verbs_pd *base;
	struct verbs_td *td;
	/* of a parent domain; NULL: memory comes from the port */
	struct pd_allocators allocators;
	struct pd_core *core; /* parent domain: that of base */
	/* 1 until the application gives up this structure, and the objects that refer to it */
	uint32_t users;
};

struct verbs_mr {
	struct ibv_mr ibv;
	unsigned access; /* as requested */
	bool imported;
	struct dm_core *dm; /* that it is of; NULL: memory of the application */
};

#define DM_SIZE_MAX (1 << 20) /* bytes of one ibv_alloc_dm() */

#define UDMABUF_DEVICE "/dev/udmabuf"

/* Device memory: shared by its handles and their regions. That of a DMA-buf has only
 * regions. Under the port's lock, except what is constant. */
struct dm_core {
	LIST_ENTRY(dm_core) link;
	const struct context_file *file; /* constant */
	uint8_t *bytes;                  /* constant */
	size_t length;                   /* constant */
	size_t mapped;    /* constant: the bytes are a mapping; 0: of the heap */
	int memfd;        /* constant: the mapping's; -1: none */
	uint32_t number;  /* constant */
	uint32_t users;   /* handles of the memory and of its regions */
	uint32_t regions; /* not deregistered yet */
	bool destroyed; /* by ibv_free_dm() of one of the handles; read without the lock */
};

struct verbs_dm {
	struct ibv_dm ibv;
	struct dm_core *core;
};

struct verbs_channel {
	struct ibv_comp_channel ibv; /* refcnt: number of CQs that use it */
	struct event_queue events;
};

struct verbs_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct dev *dev;
	struct verbs_pd *domain; /* parent domain it was created on, or NULL */
	struct cq cq;
	/* Between ibv_start_poll() and ibv_end_poll(), under the pollers' lock: */
	struct cqe cqe;
	uint64_t stamp; /* time of cqe, if the CQ has time stamps */
	struct wall_time wall;
};

struct xrc_domain;

struct verbs_xrcd {
	struct ibv_xrcd ibv;
	/* shared by all XRCDs that were opened with the same file */
	struct xrc_domain *domain;
	uint32_t objects; /* SRQs and QPs not destroyed yet */
};

struct verbs_srq {
	struct ibv_srq ibv;
	struct verbs_xrcd *xrcd; /* NULL: not an XRC SRQ */
	struct srq srq;
};

/* ibv_wr_post(3): state between ibv_wr_start() and ibv_wr_complete(), under the SQ's
 * lock. */
struct verbs_wr {
	struct send_wqe *wqe; /* request being built; NULL: none, or an error occurred */
	uint32_t prod;        /* index of wqe, or of the next request */
	uint32_t last_signaled;
	bool any_signaled;
	bool binds; /* some request binds a memory window */
	bool dest;  /* UD, XRC: the address or SRQN was set */
	int err;    /* first error, or 0 */
	/* Constant since creation: */
	bool addressed;    /* UD, XRC: each request carries its destination */
	uint32_t opcodes;  /* bit per IBV_WR_* that may be posted */
	uint32_t always;   /* flags added to every request */
	uint32_t offset;   /* of SGEs or inline data: behind the address of a datagram */
	uint32_t dest_max; /* maximum length of a datagram in bytes */
};

/* Private members come first, so that most QPs can end with their ibv_qp. */
struct verbs_qp {
	struct qp *qp;
	/* index behind the youngest signaled request; under the SQ's lock */
	uint32_t last_signaled;
	bool any_signaled; /* a request was posted signaled since RESET */
	bool extended;     /* created with send_ops_flags: has ex and wr */
	bool sends;        /* the member of a struct verbs_sender: not an XRC target */
	/* XRC target: the domain of this handle; else NULL */
	struct verbs_xrcd *xrcd;
	struct qp_listener *qp_listener; /* NULL: not an XRC target */
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
		struct newer_qp_ex newer;
	};
	struct verbs_wr wr;
};
#define VERBS_QP_PLAIN (offsetof(struct verbs_qp, ibv) + sizeof(struct ibv_qp))
/* Without glibc's mutex, which has 40 bytes on x86-64 and 48 on arm64. */
static_assert(VERBS_QP_PLAIN - sizeof(pthread_mutex_t) <= 3 * LINE_SIZE - 40,
	"idle QPs are many");

/* A QP with its only handle. The handles of an XRC target share their QP. */
struct verbs_sender {
	struct qp qp;
	/* Last, because without ex and wr most end with their ibv_qp. */
	struct verbs_qp vqp;
};

struct verbs_mw {
	struct ibv_mw ibv;
	struct mw *mw;
	uint32_t index; /* the part common to all its keys: rkey >> 8 */
};

struct verbs_ah {
	struct ibv_ah ibv;
	struct ud_dest dest; /* without QPN and Q_Key */
};

/* From the public part of an object to the structure that begins with it. */
#define TO_PRIVATE(function, public, private)                                            \
	static inline struct private *function(struct public *object)                    \
	{                                                                                \
		return (struct private *)object;                                         \
	}
TO_PRIVATE(to_device, ibv_device, verbs_device)
TO_PRIVATE(to_pd, ibv_pd, verbs_pd)
TO_PRIVATE(to_td, ibv_td, verbs_td)
TO_PRIVATE(to_channel, ibv_comp_channel, verbs_channel)
TO_PRIVATE(to_cq, ibv_cq, verbs_cq)
TO_PRIVATE(to_srq, ibv_srq, verbs_srq)
TO_PRIVATE(to_xrcd, ibv_xrcd, verbs_xrcd)
TO_PRIVATE(to_ah, ibv_ah, verbs_ah)
TO_PRIVATE(to_mw, ibv_mw, verbs_mw)
#undef TO_PRIVATE

static inline struct verbs_ctx *
to_ctx(struct ibv_context *context)
{
	return container_of(context, struct verbs_ctx, base.context);
}

/* Returns whether the PD belongs to a thread domain: its objects take no locks. */
static inline bool
pd_unlocked(struct ibv_pd *pd)
{
	return to_pd(pd)->td != NULL;
}

static inline struct verbs_mr *
to_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct verbs_mr, ibv);
}

static inline struct verbs_dm *
to_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct verbs_dm, ibv);
}

static inline struct verbs_qp *
to_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct verbs_qp, ibv);
}

/* Returns vqp->qp of the handle of a struct verbs_sender. The address needs no load, so
 * that a post waits for the cache lines of both structures at once. */
static inline struct qp *
sender_qp(struct verbs_qp *vqp)
{
	return &container_of(vqp, struct verbs_sender, vqp)->qp;
}

/* Frees SQ slots up to end: a send completion was polled. Called with the CQ's lock held.
 * A live CQE names a live QP, because reset and destroy clean the QP's CQEs under this
 * lock before they change its SQ. */
static inline void
cq_free_slots(const struct dev *dev, uint32_t qpn, uint32_t end)
{
	struct qp *qp = qp_table_get(&dev->qps, qpn);

	if (likely(qp != NULL))
		sq_free(&qp->sq, end);
}

/* Sets errno unless err is 0, for functions that return an errno value: those of libibverbs, which make
 * system calls, set errno too. */
static inline int
errno_set(int err)
{
	if (err != 0)
		errno = err;
	return err;
}

/* Set errno, for functions that return NULL or -1. */
static inline void *
null_errno(int err)
{
	errno = err;
	return NULL;
}

static inline int
minus_errno(int err)
{
	errno = err;
	return -1;
}

static inline void
count_up(uint32_t *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

/* Returns false if the count is max already. */
static inline bool
count_up_to(uint32_t *count, uint32_t max)
{
	uint32_t was = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (was < max) {
		if (__atomic_compare_exchange_n(count, &was, was + 1, true,
			    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static inline void
count_down(uint32_t *count)
{
	/* Pairs with the acquire of the function that frees the object with this
	 * count. */
	__atomic_fetch_sub(count, 1, __ATOMIC_RELEASE);
}

/* mr.c: registers memory. iova: of its first byte. Returns NULL with errno. */
struct ibv_mr *mr_create(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access);

/* dmabuf.c: registers a part of a DMA-buf. Returns NULL with errno if it cannot. */
struct ibv_mr *mr_create_dmabuf(struct ibv_pd *pd, uint64_t offset, size_t length,
	uint64_t iova, int fd, unsigned access);

/* dm_core.c: allocates zeroed device memory with one user. NULL: no memory. */
struct dm_core *dm_core_create(struct verbs_ctx *ctx, size_t length, size_t align);
/* The same for a mapping, which it takes over, with a region and no handle. */
struct dm_core *dm_core_of_mapping(struct verbs_ctx *ctx, uint8_t *bytes, size_t length);
/* Return device memory with one more user, or NULL: that with this handle in the context, and that
 * which contains these bytes. */
struct dm_core *dm_core_get(struct verbs_ctx *ctx, uint32_t number);
struct dm_core *dm_core_at(struct rocade_port *port, const uint8_t *host, size_t length);
/* Counts a region. Returns false if the memory was freed. */
bool dm_core_region_add(struct rocade_port *port, struct dm_core *core);
/* ibv_free_dm(3) for all handles. EINVAL: freed before; EBUSY: it has a region. */
int dm_core_destroy(struct rocade_port *port, struct dm_core *core);
/* Takes a user. region_ends: one of its regions has been deregistered. */
void dm_core_put(struct rocade_port *port, struct dm_core *core, bool region_ends);

/* Count an object that is created on a PD, or destroyed. */
void pd_use(struct verbs_pd *pd);
void pd_unuse(struct verbs_pd *pd);
/* Count what refers to the structure and is no object of its own. */
void pd_hold(struct verbs_pd *pd);
void pd_release(struct verbs_pd *pd);

/* Waits until all delivered events of an object were acknowledged. ibv_ack_async_event()
 * counts in completed, under mutex. */
void events_wait_acked(pthread_mutex_t *mutex, pthread_cond_t *cond,
	const uint32_t *completed, uint32_t delivered);
/* The same for an object that has been stopped, which a second call must not do. So this wait is no
 * cancellation point. */
void events_wait_acked_stopped(pthread_mutex_t *mutex, pthread_cond_t *cond,
	const uint32_t *completed, uint32_t delivered);

/* advise.c: returns whether regions of the device may be on demand. */
bool on_demand_supported(const struct dev *dev);

/* Faults in every page of a range, for writing if write. Returns 0 or EFAULT. */
int pages_fault_in(void *addr, size_t len, bool write);

#endif
