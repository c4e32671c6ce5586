/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two devices on fake ports, in virtual time, and a link between them. The test can cut
 * the link, make it lossy or choose the queue that frames arrive on. The teardown checks
 * that no memory, event or frame leaked.
 */
#ifndef ROCADE_TEST_ENGINE_BED_H
#define ROCADE_TEST_ENGINE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "fake_port.h"
#include "post.h"

struct bed_conf {
	unsigned engines[2];  /* of a and b; 0: 1 each */
	uint32_t peer_window; /* 0: 512 */
	uint32_t max_qp;      /* 0: 64 */
	uint32_t mem_bytes;   /* registered on each side; 0: 64 KiB */
};

struct side {
	struct bed *bed;
	struct fake_port port;
	struct dev *dev;
	struct event_queue events;
	struct srq srq; /* 256 WQEs, of PD 1 */
	uint8_t *mem;
	uint32_t lkey;
	bool deaf;           /* every frame sent to this side is lost */
	unsigned drop;       /* per mille of the frames sent to this side are lost */
	unsigned queue;      /* queue on which frames arrive */
	uint64_t roce_bytes; /* RoCEv2 frames sent to this side, lost ones included */
	unsigned roce_frames;
};

struct bed {
	struct bed_conf conf;
	struct side a, b;
	uint64_t now;
	uint64_t rand;
	size_t mem_used;
	struct alloc mem;
};

void
bed_init(struct bed *bed, const struct bed_conf *conf);
void
bed_fini(struct bed *bed);

/* Moves the frames that were sent to the other side. Returns their number. */
unsigned
bed_carry(struct bed *bed);
/* One pass of every engine, then bed_carry(). Returns the number of packets
 * processed and frames moved. */
unsigned
bed_turn(struct bed *bed);
/* Makes passes until nothing moves. */
void
bed_settle(struct bed *bed);
/* Lets `ns` nanoseconds pass: settles, skips to the next deadline, and repeats. */
void
bed_run(struct bed *bed, uint64_t ns);

struct bed_qp {
	struct side *side;
	struct qp *qp;
	struct cq send_cq, recv_cq;
};

struct bed_qp_conf {
	int engine; /* -1: chosen by the device, round robin */
	bool srq;
	uint32_t wr;     /* 0: 256 */
	uint8_t timeout; /* code; 0: 14 */
	bool no_timeout;
	uint8_t retry_cnt; /* 0: 7 */
	uint8_t rnr_timer;
	enum ibv_mtu mtu; /* 0: 1024 */
};

void
bed_qp_create(struct side *s, struct bed_qp *q, const struct bed_qp_conf *conf);
void
bed_qp_destroy(struct bed_qp *q);
/* Takes both QPs from RESET to RTS. */
void
bed_connect(struct bed_qp *a, struct bed_qp *b, const struct bed_qp_conf *conf);
/* Creates n QPs on each side; a[i] is connected to b[i]. */
void
bed_pairs_create(struct bed *bed, struct bed_qp *a, struct bed_qp *b, unsigned n,
	const struct bed_qp_conf *conf);
void
bed_pairs_destroy(struct bed_qp *a, struct bed_qp *b, unsigned n);
struct qp_attr
bed_attr(const struct bed_qp *q, const struct bed_qp *to, const struct bed_qp_conf *conf);
int
bed_modify(struct bed_qp *q, enum ibv_qp_state state);

/* Posts a request and rings the doorbell. Returns 0 or -ENOMEM. */
int
bed_send(struct bed_qp *q, uint64_t wr_id, uint32_t offset, uint32_t len, unsigned flags);
int
bed_recv(struct bed_qp *q, uint64_t wr_id, uint32_t offset, uint32_t len);
bool
bed_sent(struct bed_qp *q, struct cqe *cqe);
bool
bed_received(struct bed_qp *q, struct cqe *cqe);
/* Expects n completions with this status, with wr_ids in order from `first`. */
void
bed_expect_sent(struct bed_qp *q, uint64_t first, unsigned n, enum ibv_wc_status status);
void
bed_expect_received(struct bed_qp *q, uint64_t first, unsigned n);

#endif
