/* SPDX-License-Identifier: BSD-3-Clause */
/* Two QPs, of which b receives in mbufs. These are made up, without EAL. */
#ifndef ROCADE_TEST_MBUF_FIXTURE_H
#define ROCADE_TEST_MBUF_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include <rte_mbuf_core.h>

#include "qp/hold.h"
#include "qp/mbuf_receive.h"
#include "qp_link.h"

#define HEADROOM 128
#define ROOM 2048
#define MAX_MESSAGE 5000
#define RESERVE 100

struct fake {
	struct rte_mbuf m;
	uint8_t room[HEADROOM + ROOM];
};

/* Only their addresses matter. */
static uint64_t pools[3];
#define PORT_POOL                                                                        \
	((struct rte_mempool *)&pools[0]) /* of received frames, the application's */
#define SRQ_POOL ((struct rte_mempool *)&pools[1])
#define OWN_POOL ((struct rte_mempool *)&pools[2]) /* of Rocade */

static struct qp_link p;
static struct hold_arena arena;
static unsigned live, counted; /* mbufs that are not freed; calls of available() */
static uint32_t spare;         /* buffers beyond the reserve, but of SRQ_POOL */
static bool none_for_copies;

static inline struct rte_mbuf *
fake_alloc(struct rte_mempool *pool, const void *data, uint32_t len)
{
	struct fake *f = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*f), 64));

	assert_non_null(f);
	assert_true(len <= ROOM);
	memset(f, 0, sizeof(*f));
	f->m = (struct rte_mbuf){.buf_addr = f->room,
		.buf_len = sizeof(f->room),
		.data_off = HEADROOM,
		.data_len = (uint16_t)len,
		.pkt_len = len,
		.nb_segs = 1,
		.refcnt = 1,
		.pool = pool};
	memcpy(f->room + HEADROOM, data, len);
	live++;
	return &f->m;
}

static inline uint32_t
fake_room(const struct rte_mempool *pool)
{
	(void)pool;
	return ROOM;
}

static inline uint32_t
fake_available(const struct rte_mempool *pool)
{
	counted++;
	return pool != SRQ_POOL ? RESERVE + spare : 0;
}

static inline struct rte_mbuf *
fake_copy(struct rte_mempool *pool, const uint8_t *data, uint32_t len)
{
	return none_for_copies ? NULL : fake_alloc(pool, data, len);
}

static inline void
fake_free(struct rte_mbuf *m)
{
	while (m != NULL) {
		struct rte_mbuf *next = m->next;

		assert_true(live-- != 0);
		free(m);
		m = next;
	}
}

static inline bool
fake_is_own(const struct rte_mempool *pool)
{
	return pool == OWN_POOL;
}

static const struct mbuf_ops fake_ops = {.room = fake_room,
	.is_own = fake_is_own,
	.available = fake_available,
	.copy = fake_copy,
	.release = fake_free};

static inline void
link_open(uint32_t cqe)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.srq = true;
	conf.cqe = cqe;
	qp_link_init(&p, &conf);
	assert_int_equal(hold_arena_init(&arena), 0);
	p.b.shared.hold = &arena;
	p.b.shared.mbuf = (struct mbuf_state){.ops = &fake_ops, .reserve = RESERVE};
	p.b.srq.mbufs = (struct srq_mbufs){SRQ_POOL, MAX_MESSAGE};
	p.b.srq.ring.max_sge = 0;
	spare = UINT32_MAX - RESERVE;
	none_for_copies = false;
	counted = 0;
}

static inline void
link_close(void)
{
	qp_link_fini_reset(&p);
	hold_arena_fini(&arena);
	assert_int_equal(live, 0);
}

static inline void
receives_post(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		host_recv(&p.b, 0x50 + i, 0, 0);
}

/* As an engine dispatches a burst of one frame, whose mbuf it frees if it is left. */
static inline void
mbuf_in(struct rte_mbuf *m)
{
	struct rx_packet packet = {.qp = &p.b.qp};
	struct pkt pkt = {.data = (uint8_t *)m->buf_addr + m->data_off,
		.len = m->data_len,
		.room = ROOM,
		.owner = m};

	assert_int_equal(pkt_parse(&pkt, 0, &packet.view), DROP_none);
	p.b.shared.burst =
		(struct rx_burst){.packets = &packet, .end = &packet + 1, .frames = &pkt};
	qp_rx(&p.b.qp, &packet.view, p.now);
	p.b.shared.burst.end = NULL;
	if (pkt.owner != NULL)
		fake_free(pkt.owner);
}

/* A frame of len bytes of payload with this key, in an mbuf. */
static inline struct rte_mbuf *
frame_make(struct rte_mempool *pool, uint8_t opcode, unsigned n, uint32_t len)
{
	struct frame frame = pkt_spec_build(&p.b, &(struct pkt_spec){.opcode = opcode,
							  .psn = PSN_A + n,
							  .payload_len = len,
							  .payload_key = n,
							  .imm = 0x11223344,
							  .ack_req = true});
	struct rte_mbuf *m = fake_alloc(pool, frame.data, frame.len);

	m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD;
	m->packet_type = 0x11;
	m->tx_offload = 7;
	free(frame.data);
	return m;
}

static inline void
frame_in(uint8_t opcode, unsigned n, uint32_t len)
{
	mbuf_in(frame_make(PORT_POOL, opcode, n, len));
}

/* Polls a completion of len bytes in segs mbufs. The caller frees them. */
static inline struct rte_mbuf *
message_take(uint32_t len, unsigned segs)
{
	struct rte_mbuf *m;
	struct cqe cqe;

	assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
	assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	assert_int_equal(cqe.opcode, IBV_WC_RECV);
	assert_int_equal(cqe.byte_len, len);
	m = (struct rte_mbuf *)(uintptr_t)cqe.wr_id;
	assert_int_equal(m->pkt_len, len);
	assert_int_equal(m->nb_segs, segs);
	assert_int_equal(m->ol_flags, 0);
	assert_int_equal(m->packet_type, 0);
	assert_int_equal(m->tx_offload, 0);
	return m;
}

/* Returns whether a segment has len bytes of payload n; moves *m to the next one. */
static inline bool
segment_is(struct rte_mbuf **m, unsigned n, uint32_t len)
{
	const uint8_t *at = (const uint8_t *)(*m)->buf_addr + (*m)->data_off;
	bool is = (*m)->data_len == len && bytes_match(at, len, n);

	*m = (*m)->next;
	return is;
}

/* A message of one packet, number n. Returns its mbuf. */
static inline struct rte_mbuf *
one_take(unsigned n, uint32_t len)
{
	struct rte_mbuf *m = message_take(len, 1), *at = m;

	assert_true(segment_is(&at, n, len));
	return m;
}

#endif
