/* SPDX-License-Identifier: BSD-3-Clause */
/* SRQs whose messages are handed over in mbufs: which frames are given away, chains, copies, and who
 * frees them. */
#include <errno.h>

#include "mbuf_fixture.h"

TEST(frame_is_handed_over)
{
	struct rte_mbuf *m;

	link_open(64);
	receives_post(1);
	m = frame_make(PORT_POOL, OPCODE_RC_SEND_ONLY, 0, 1000);
	mbuf_in(m);
	expect_one_ack(&p.b, AETH_ACK, PSN_A, 1);
	assert_ptr_equal(one_take(0, 1000), m);
	assert_int_equal(p.b.stats.mbufs_handed, 1);
	assert_int_equal(p.b.stats.mbufs_copied, 0);
	assert_int_equal(live, 1);
	fake_free(m);
	link_close();
}

TEST(packets_of_a_message_are_chained)
{
	struct rte_mbuf *m, *at;

	link_open(64);
	receives_post(2);
	for (unsigned i = 0; i < 2; i++) {
		frame_in(OPCODE_RC_SEND_FIRST, 3 * i, 1024);
		frame_in(OPCODE_RC_SEND_MIDDLE, 3 * i + 1, 1024);
		frame_in(OPCODE_RC_SEND_LAST_IMM, 3 * i + 2, 1);
	}
	for (unsigned i = 0; i < 2; i++) {
		m = at = message_take(2049, 3);
		assert_true(segment_is(&at, 3 * i, 1024));
		assert_true(segment_is(&at, 3 * i + 1, 1024));
		assert_true(segment_is(&at, 3 * i + 2, 1));
		assert_null(at);
		fake_free(m);
	}
	assert_int_equal(p.b.stats.mbufs_handed, 6);
	link_close();
}

/* A completion without payload has the wr_id of its receive. */
TEST(no_payload_no_mbuf)
{
	struct cqe cqe;

	link_open(64);
	receives_post(2);
	frame_in(OPCODE_RC_SEND_ONLY, 0, 0);
	expect_received(&p.b, 0x50, 0);
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_WRITE_ONLY_IMM,
			     .psn = PSN_A + 1,
			     .payload_len = 8,
			     .dma_len = 8,
			     .va = (uintptr_t)p.b.mem,
			     .rkey = p.b.rkey});
	assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
	assert_int_equal(cqe.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(cqe.wr_id, 0x51);
	assert_int_equal(p.b.stats.mbufs_copied, 0);
	link_close();
}

/* Frames with another holder, or that must come back to the port. */
TEST(other_frames_are_copied)
{
	static const struct {
		struct rte_mempool *pool;
		uint64_t ol_flags;
		uint16_t refcnt, segs;
		struct rte_mempool *only;
		bool off;
	} rows[] = {
		{PORT_POOL, 0, 2, 1, NULL, false},
		{PORT_POOL, RTE_MBUF_F_INDIRECT, 1, 1, NULL, false},
		{PORT_POOL, RTE_MBUF_F_EXTERNAL, 1, 1, NULL, false},
		{PORT_POOL, 0, 1, 2, NULL, false},
		{OWN_POOL, 0, 1, 1, NULL, false},
		{OWN_POOL, 0, 1, 1, OWN_POOL, false},
		{PORT_POOL, 0, 1, 1, SRQ_POOL, false},
		{PORT_POOL, 0, 1, 1, PORT_POOL, true},
	};

	link_open(64);
	receives_post(RTE_DIM(rows));
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct rte_mbuf *frame =
			frame_make(rows[i].pool, OPCODE_RC_SEND_ONLY, i, 500);
		struct rte_mbuf *m;

		frame->ol_flags = rows[i].ol_flags;
		frame->refcnt = rows[i].refcnt;
		frame->nb_segs = rows[i].segs;
		p.b.shared.mbuf.copies_all = rows[i].off;
		p.b.shared.mbuf.frame_pool = rows[i].only;
		p.b.shared.mbuf.frames.pool = NULL; /* judged anew */
		mbuf_in(frame);
		m = one_take(i, 500);
		assert_ptr_equal(m->pool, SRQ_POOL);
		fake_free(m);
	}
	assert_int_equal(p.b.stats.mbufs_handed, 0);
	assert_int_equal(p.b.stats.mbufs_copied, RTE_DIM(rows));
	link_close();
}

/* A completion that is left of an XRC target whose number the QP has now. Its wr_id is no mbuf. */
TEST(completions_of_the_last_owner_of_the_number_are_no_mbufs)
{
	struct cqe cqe = {.wr_id = 7,
		.byte_len = 500,
		.qpn = 0,
		.opcode = IBV_WC_RECV,
		.status = IBV_WC_SUCCESS};

	link_open(64);
	receives_post(1);
	cqe.qpn = p.b.qp.qpn;
	assert_true(cq_put(&p.b.recv_cq, &cqe, NULL));
	frame_in(OPCODE_RC_SEND_ONLY, 0, 100);
	assert_int_equal(live, 1);
	link_close(); /* frees the other one */
}

/* A packet behind a missing one is held, and copied once more when that comes. */
TEST(held_packets_are_copied)
{
	struct rte_mbuf *m, *at;

	link_open(64);
	receives_post(1);
	frame_in(OPCODE_RC_SEND_FIRST, 0, 1024);
	frame_in(OPCODE_RC_SEND_LAST, 2, 600);
	frame_in(OPCODE_RC_SEND_MIDDLE, 1, 1024);
	m = at = message_take(2648, 3);
	assert_true(segment_is(&at, 0, 1024));
	assert_true(segment_is(&at, 1, 1024));
	assert_true(segment_is(&at, 2, 600));
	fake_free(m);
	assert_int_equal(p.b.stats.mbufs_handed, 2);
	assert_int_equal(p.b.stats.mbufs_copied, 1);
	link_close();
}

TEST(message_longer_than_allowed)
{
	link_open(64);
	receives_post(1);
	for (unsigned i = 0; i < 4; i++)
		frame_in(i == 0 ? OPCODE_RC_SEND_FIRST : OPCODE_RC_SEND_MIDDLE, i, 1024);
	assert_int_equal(live, 4);
	frame_in(OPCODE_RC_SEND_LAST, 4, MAX_MESSAGE - 4096 + 1);
	expect_recv_error(&p.b, 0x50, IBV_WC_LOC_LEN_ERR, VENDOR_RECV_SHORT);
	expect_one_ack(&p.b, AETH_NAK_INV_REQ, PSN_A + 4, 0);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(live, 0);
	link_close();
}

/* A message that is as long as allowed is no error. */
TEST(message_as_long_as_allowed)
{
	link_open(64);
	receives_post(1);
	for (unsigned i = 0; i < 4; i++)
		frame_in(i == 0 ? OPCODE_RC_SEND_FIRST : OPCODE_RC_SEND_MIDDLE, i, 1024);
	frame_in(OPCODE_RC_SEND_LAST, 4, MAX_MESSAGE - 4096);
	fake_free(message_take(MAX_MESSAGE, 5));
	link_close();
}

/* ERR and RESET in the middle of a message, and with completions that are not polled. */
TEST(incomplete_and_unpolled_messages_are_freed)
{
	for (unsigned reset = 0; reset < 2; reset++) {
		link_open(64);
		receives_post(3);
		frame_in(OPCODE_RC_SEND_ONLY, 0, 100);
		frame_in(OPCODE_RC_SEND_ONLY, 1, 0);
		frame_in(OPCODE_RC_SEND_FIRST, 2, 1024);
		frame_in(OPCODE_RC_SEND_MIDDLE, 3, 1024);
		assert_int_equal(live, 3);
		assert_int_equal(
			host_modify(&p.b, reset ? IBV_QPS_RESET : IBV_QPS_ERR), 0);
		if (!reset) {
			assert_int_equal(live, 1);
			fake_free(one_take(0, 100));
			expect_received(&p.b, 0x51, 0);
			expect_recv_error(
				&p.b, 0x52, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
			expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
		}
		assert_int_equal(live, 0);
		link_close();
	}
}

/* The CQ is full: the message cannot be reported. */
TEST(overflowed_completion_is_freed)
{
	link_open(1);
	receives_post(2);
	frame_in(OPCODE_RC_SEND_ONLY, 0, 100);
	frame_in(OPCODE_RC_SEND_ONLY, 1, 200);
	assert_int_equal(live, 1);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	fake_free(one_take(0, 100));
	for (unsigned i = 0; i < 3; i++)
		expect_event(&p.b,
			((const enum ibv_event_type[]){IBV_EVENT_CQ_ERR,
				IBV_EVENT_QP_FATAL, IBV_EVENT_QP_LAST_WQE_REACHED})[i]);
	link_close();
}

/* A gathered completion for which other engines took the room. */
TEST(lost_completion_is_freed)
{
	struct cqe cqe = {.opcode = IBV_WC_RECV, .byte_len = 8, .wc_flags = CQE_WC_MBUF};

	link_open(64);
	cqe.wr_id = (uintptr_t)fake_alloc(PORT_POOL, "12345678", 8);
	mbuf_cqe_drop(&p.b.qp, &cqe);
	assert_int_equal(live, 0);
	/* These have none. */
	cqe = (struct cqe){.opcode = IBV_WC_RECV, .byte_len = 0};
	mbuf_cqe_drop(&p.b.qp, &cqe);
	cqe = (struct cqe){.opcode = IBV_WC_RECV_RDMA_WITH_IMM, .byte_len = 8};
	mbuf_cqe_drop(&p.b.qp, &cqe);
	cqe = (struct cqe){
		.opcode = IBV_WC_RECV, .status = IBV_WC_WR_FLUSH_ERR, .byte_len = 8};
	mbuf_cqe_drop(&p.b.qp, &cqe);
	link_close();
}

TEST(wrong_queues_are_refused)
{
	const struct srq_mbufs mbufs = {SRQ_POOL, MAX_MESSAGE};
	struct qp_conf conf = {.type = IBV_QPT_RC, .max_send_wr = 1};
	struct srq_attr attr = {.max_wr = 32};
	struct sge sge = {.len = 0};
	struct srq srq;
	struct cq cq;
	struct qp qp;

	assert_int_equal(srq_init(&srq, &alloc_plain, PD_B, 16, 2, NULL, NULL), 0);
	assert_int_equal(cq_init(&cq, &alloc_plain, 16, NULL, NULL), 0);
	assert_int_equal(ring_post(&srq.ring, 1, &sge, 1), 0);
	assert_int_equal(srq_set_mbufs(&srq, &mbufs), -EBUSY);
	assert_false(srq_has_mbufs(&srq));
	recv_ring_clear(&srq.ring);
	srq_attach(&srq, 0, NULL);
	assert_int_equal(srq_set_mbufs(&srq, &mbufs), -EBUSY);
	srq_detach(&srq, 0);
	assert_int_equal(srq_set_mbufs(&srq, &mbufs), 0);
	assert_true(srq_has_mbufs(&srq));
	assert_int_equal(srq.ring.max_sge, 0);
	assert_int_equal(srq_modify(&srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(attr.max_wr, 32);
	assert_int_equal(attr.max_sge, 0);

	conf.send_cq = conf.recv_cq = &cq;
	conf.srq = &srq;
	for (unsigned i = 0; i < 4; i++) {
		bool good = i == 3;

		conf.type = i == 0 ? IBV_QPT_UD : i == 1 ? IBV_QPT_UC : IBV_QPT_RC;
		cq.unlocked = i == 2;
		assert_int_equal(qp_init(&qp, QPN_A, &conf, &alloc_plain, NULL, NULL),
			good ? 0 : -EINVAL);
		if (good)
			qp_fini(&qp);
	}
	cq_fini(&cq);
	srq_fini(&srq);
}
