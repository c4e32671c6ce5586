/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two devices on fake ports, in virtual time, and a link between them. The test can cut
 * the link, make it lossy or choose the queue that frames arrive on. The teardown checks
 * that no memory, event or frame leaked.
 */
#ifndef ROCADE_TEST_ENGINE_LINK_H
#define ROCADE_TEST_ENGINE_LINK_H

#include <stdint.h>

#include "case.h"
#include "engine/engine.h"
#include "fake_port.h"
#include "post.h"

struct engine_link_conf {
	unsigned engines[2];  /* of a and b; 0: 1 each */
	uint32_t peer_window; /* 0: 512 */
	bool cc;              /* with congestion control */
	/* of both sides: RSS chooses the receive queue of a packet; NULL: link_side.queue */
	const struct rss *rss;
	bool delay_unknown; /* which does not know delays */
	unsigned paths;     /* of each QP; 0: one */
	bool rings;         /* the link is a ring of the process, as in drivers/loop */
	uint32_t max_qp;    /* 0: 64 */
	uint32_t mem_bytes; /* registered on each side; 0: 64 KiB */
};

struct link_side {
	struct engine_link *link;
	struct fake_port port;
	struct dev *dev;
	struct event_queue events;
	struct srq srq; /* 256 WQEs, of PD 1 */
	uint8_t *mem;
	uint32_t lkey;
	bool stopped;        /* its engines make no passes */
	bool deaf;           /* every frame sent to this side is lost */
	unsigned drop;       /* per mille of the frames sent to this side are lost */
	unsigned queue;      /* queue on which frames arrive */
	uint64_t roce_bytes; /* RoCEv2 frames sent to this side, lost ones included */
	unsigned roce_frames;
};

struct engine_link {
	struct engine_link_conf conf;
	struct link_side a, b;
	uint64_t now;
	uint64_t rand;
	struct rounds *rounds; /* conf.rings */
	size_t mem_used;
	struct alloc mem;
};

void engine_link_init(struct engine_link *l, const struct engine_link_conf *conf);
void engine_link_fini(struct engine_link *l);

/* Moves the frames that were sent to the other side. Returns their number. */
unsigned engine_link_deliver(struct engine_link *l);
/* One pass of every engine, then engine_link_deliver(). Returns the number of packets
 * processed and frames moved. */
unsigned engine_link_pass(struct engine_link *l);
/* Makes passes until nothing moves. */
void engine_link_drain(struct engine_link *l);
/* Lets `ns` nanoseconds pass: drains, advances to the next deadline, and repeats. */
void engine_link_advance(struct engine_link *l, uint64_t ns);

/* QPs of an engine that are blocked on a peer window. */
unsigned engine_link_blocked(const struct engine *e);

struct link_qp {
	struct link_side *side;
	struct qp *qp; /* &core */
	struct qp core;
	struct cq send_cq, recv_cq;
};

struct link_qp_conf {
	int engine; /* -1: chosen by the device, round robin */
	bool srq;
	uint32_t wr;     /* 0: 256 */
	uint8_t timeout; /* code; 0: 14 */
	bool no_timeout;
	uint8_t retry_cnt; /* 0: 7 */
	uint8_t rnr_timer;
	enum ibv_mtu mtu; /* 0: 1024 */
};

void link_qp_create(
	struct link_side *s, struct link_qp *q, const struct link_qp_conf *conf);
void link_qp_destroy(struct link_qp *q);
/* Takes both QPs from RESET to RTS. */
void link_qp_connect(
	struct link_qp *a, struct link_qp *b, const struct link_qp_conf *conf);
/* Creates n QPs on each side; a[i] is connected to b[i]. */
void link_qps_create(struct engine_link *l, struct link_qp *a, struct link_qp *b,
	unsigned n, const struct link_qp_conf *conf);
void link_qps_destroy(struct link_qp *a, struct link_qp *b, unsigned n);
/* As link_qps_destroy(), then engine_link_fini(). */
void link_qps_fini(
	struct engine_link *link, struct link_qp *a, struct link_qp *b, unsigned n);
struct qp_attr link_qp_attr(const struct link_qp *q, const struct link_qp *to,
	const struct link_qp_conf *conf);
int link_qp_modify(struct link_qp *q, enum ibv_qp_state state);

/* Posts a request and rings the doorbell. Returns 0 or -ENOMEM. */
int link_qp_send(
	struct link_qp *q, uint64_t wr_id, uint32_t offset, uint32_t len, unsigned flags);
int link_qp_recv(struct link_qp *q, uint64_t wr_id, uint32_t offset, uint32_t len);
bool link_qp_poll_send(struct link_qp *q, struct cqe *cqe);
bool link_qp_poll_recv(struct link_qp *q, struct cqe *cqe);
/* Expects n completions with this status, with wr_ids in order from `first`. */
void link_qp_expect_sent(
	struct link_qp *q, uint64_t first, unsigned n, enum ibv_wc_status status);
void link_qp_expect_received(struct link_qp *q, uint64_t first, unsigned n);

/* Posts a receive and a signaled SEND of 8 bytes for it, and expects their completions. */
void link_qp_message(struct link_qp *from, struct link_qp *to, uint64_t wr_id);
void link_qp_expect_message(struct link_qp *from, struct link_qp *to, uint64_t wr_id);

#endif
