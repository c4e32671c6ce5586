/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands behind the structures of verbs. Nearly each object begins with its public part; it
 * is ours if the operations of its context are.
 */
#ifndef ROCADE_VERBS_OBJECTS_H
#define ROCADE_VERBS_OBJECTS_H

#include <errno.h>

#include "verbs/port.h"
#include "verbs/post.h"

/* mlx5dv and efadv look at private members behind an ibv_device before they know whose it is:
 * they find zeros. */
#define DEVICE_PAD 1024

struct verbs_device {
	struct ibv_device ibv;
	uint8_t pad[DEVICE_PAD];
	/* Device list's lock: */
	struct rocade_port *port; /* NULL: closed, and only a device list still names it */
	uint32_t refs;		  /* the port and every device list */
	struct verbs_device *next; /* all there are */
	int index;
	const struct device_source *source; /* NULL: a port that somebody opened */
	bool listed;			    /* with a source: it is there */
	uint64_t guid;
};

struct verbs_ctx {
	struct verbs_context base; /* the application's ibv_context is its last member */
	struct rocade_port *port;
	struct dev *dev;
	struct event_queue events;
	struct dev_listener listener; /* for the events of the port */
	int engine;	  /* where the next QP goes, -1: in turn */
	uint32_t objects; /* PDs and CQs not destroyed yet */
};

struct verbs_td {
	struct ibv_td ibv;
	uint32_t domains; /* that have it */
};

struct verbs_pd {
	struct ibv_pd ibv;
	uint32_t number;
	struct verbs_pd *base; /* a parent domain: its PD, whose number it has */
	struct verbs_td *td;
	uint32_t objects; /* MRs, SRQs and QPs not destroyed yet */
};

struct verbs_mr {
	struct ibv_mr ibv;
	unsigned access; /* as it was asked for */
};

struct verbs_channel {
	struct ibv_comp_channel ibv; /* refcnt: CQs that use it */
	struct event_queue events;
};

struct verbs_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct dev *dev;
	struct verbs_pd *domain; /* the parent domain it was made on, or NULL */
	struct cq cq;
	/* Between ibv_start_poll() and ibv_end_poll(), under the pollers' lock: */
	const struct cqe *cqe;
	uint32_t tail; /* its index */
};

struct xrc_domain;

struct verbs_xrcd {
	struct ibv_xrcd ibv;
	struct xrc_domain *domain; /* shared by those that opened it by one file */
	uint32_t objects;	   /* SRQs and QPs not destroyed yet */
};

struct verbs_srq {
	struct ibv_srq ibv;
	struct verbs_xrcd *xrcd; /* NULL: not an XRC SRQ */
	struct srq srq;
};

/* ibv_wr_post(3): what stands between start and complete, under the SQ's lock. */
struct verbs_wr {
	struct send_wqe *wqe; /* being built; NULL: none, or none any more after an error */
	uint32_t prod;	      /* of wqe, or where the next one goes */
	uint32_t last_signaled;
	bool any_signaled;
	bool dest; /* UD, XRC: the address or SRQ was given */
	int err;   /* the first one */
	/* Since creation: */
	bool addressed;	   /* UD, XRC: each request says where it goes */
	uint32_t opcodes;  /* a bit per IBV_WR_* that may be built */
	uint32_t always;   /* flags that every request has */
	uint32_t offset;   /* of SGEs or inline data: behind the address of a datagram */
	uint32_t dest_max; /* bytes of a datagram */
};

/* What is ours stands first, so that most QPs can end with their ibv_qp. */
struct verbs_qp {
	struct qp *qp;
	uint32_t last_signaled; /* index behind the youngest signaled request; SQ lock */
	bool any_signaled;	/* there was one since RESET */
	bool extended;		/* created with send_ops_flags: has ex and wr */
	bool joined;		/* the QP stands in front of it, see sender_qp() */
	/* XRC target: one of its handles. */
	struct verbs_xrcd *xrcd;
	struct qp_watch *watch; /* NULL: any other QP */
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	struct verbs_wr wr;
};
#define VERBS_QP_PLAIN (offsetof(struct verbs_qp, ibv) + sizeof(struct ibv_qp))
static_assert(VERBS_QP_PLAIN <= 3 * LINE_SIZE, "idle ones are many");

struct verbs_ah {
	struct ibv_ah ibv;
	struct ud_dest dest; /* without QPN and Q_Key */
};

/* In place of a function pointer that nobody calls: tells our devices from others. */
void device_mark(void);

static inline bool
device_ours(const struct ibv_device *device)
{
	return (void (*)(void))device->_ops._dummy1 == device_mark;
}

static inline bool
ours(const struct ibv_context *context)
{
	return context->ops.poll_cq == verbs_poll_cq;
}

static inline struct verbs_device *
to_device(struct ibv_device *device)
{
	return (struct verbs_device *)device;
}

static inline struct verbs_ctx *
to_ctx(struct ibv_context *context)
{
	return container_of(context, struct verbs_ctx, base.context);
}

static inline struct verbs_pd *
to_pd(struct ibv_pd *pd)
{
	return (struct verbs_pd *)pd;
}

/* Under a thread domain. */
static inline bool
pd_unlocked(struct ibv_pd *pd)
{
	return to_pd(pd)->td != NULL;
}

static inline struct verbs_td *
to_td(struct ibv_td *td)
{
	return (struct verbs_td *)td;
}

static inline struct verbs_channel *
to_channel(struct ibv_comp_channel *channel)
{
	return (struct verbs_channel *)channel;
}

static inline struct verbs_cq *
to_cq(struct ibv_cq *cq)
{
	return (struct verbs_cq *)cq;
}

static inline struct verbs_srq *
to_srq(struct ibv_srq *srq)
{
	return (struct verbs_srq *)srq;
}

static inline struct verbs_xrcd *
to_xrcd(struct ibv_xrcd *xrcd)
{
	return (struct verbs_xrcd *)xrcd;
}

static inline struct verbs_ah *
to_ah(struct ibv_ah *ah)
{
	return (struct verbs_ah *)ah;
}

static inline struct verbs_qp *
to_qp(struct ibv_qp *qp)
{
	return container_of(qp, struct verbs_qp, ibv);
}

/* The QP of all but handles of XRC targets: where it is takes no load, so that a post waits
 * for both at once where neither is in the cache. */
static inline struct qp *
sender_qp(struct verbs_qp *vqp)
{
	return (struct qp *)vqp - 1;
}

/* For calls that return a pointer or -1: sets errno. */
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

static inline void
count_down(uint32_t *count)
{
	/* Pairs with the acquire of whoever frees what is counted. */
	__atomic_fetch_sub(count, 1, __ATOMIC_RELEASE);
}

/* ibv_query_port() and ibv_query_device() in the forms that verbs_context has. */
int verbs_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
	size_t size);
int verbs_query_device_ex(struct ibv_context *context,
	const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
	size_t size);
int verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
struct ibv_td *verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int verbs_dealloc_td(struct ibv_td *td);
struct ibv_pd *verbs_alloc_parent_domain(struct ibv_context *context,
	struct ibv_parent_domain_init_attr *attr);
struct ibv_cq_ex *verbs_create_cq_ex(struct ibv_context *context,
	struct ibv_cq_init_attr_ex *attr);
struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context,
	struct ibv_qp_init_attr_ex *attr);

/* Of one that nothing uses any more. */
void parent_domain_free(struct verbs_pd *pd);

/* Zeroed but for its context: without ex and wr unless extended, with room for its QP if
 * joined; NULL: no memory. */
struct verbs_qp *verbs_qp_alloc(struct ibv_context *context, bool extended, bool joined);
void verbs_qp_free(struct verbs_qp *vqp);
/* Fills in what the public part says of the QP and makes its event lock. */
void verbs_qp_publish(struct verbs_qp *vqp);

/* Waits until as many events of an object were acknowledged as were delivered
 * (ibv_ack_async_event() counts in completed, under mutex). */
void events_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
	uint32_t delivered);

/* Makes every page of a range present, writable ones for write: 0 or EFAULT. */
int pages_fault_in(void *addr, size_t len, bool write);

#endif
