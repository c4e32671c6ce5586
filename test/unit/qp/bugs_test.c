/* SPDX-License-Identifier: BSD-3-Clause */
/* Bugs of other implementations that no test of a rule would find. docs/protocol.md,
 * "Bugs of other implementations", has all of them. In rules.tsv their section is
 * "bugs". */
#include <string.h>

#include "qp_link.h"

#define REMOTE 0x8000
#define TIMEOUT_NS (UINT64_C(4096) << 14)

static struct qp_link p;

static void
rdma_init(void)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	qp_link_init(&p, &conf);
	bytes_fill(p.b.mem + REMOTE, 0x8000, 2);
}

static void
inject_rdma(uint8_t opcode, uint32_t psn, uint32_t payload_len, uint32_t dma_len)
{
	inject(&p.b, &(struct pkt_spec){.opcode = opcode,
			     .psn = psn,
			     .payload_len = payload_len,
			     .payload_key = psn,
			     .ack_req = true,
			     .va = (uintptr_t)p.b.mem + REMOTE,
			     .rkey = p.b.rkey,
			     .swap_add = 1,
			     .dma_len = dma_len});
}

/* Responder resources used after max_dest_rd_atomic changed, or freed twice: each depth
 * is changed to each other one, with READs answered, half answered and not answered
 * yet. */
static void
depth_case(uint8_t from, uint8_t to, unsigned answered)
{
	struct qp_attr attr = {.max_dest_rd_atomic = to};
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.max_dest_rd = from;
	qp_link_init(&p, &conf);
	for (unsigned i = 0; i < from; i++)
		inject_rdma(OPCODE_RC_READ_REQUEST, PSN_A + 2 * i, 0, 2000);
	host_pull(&p.b, answered);
	assert_int_equal(host_modify(&p.b, IBV_QPS_SQD), 0);
	/* One packet answers no READ. */
	if (answered != PULL_ALL && from > to) {
		assert_int_equal(qp_modify(&p.b.qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC,
					 IBV_MTU_4096),
			-EBUSY);
		host_pull(&p.b, PULL_ALL);
	}
	assert_int_equal(
		qp_modify(&p.b.qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_MTU_4096), 0);
	assert_int_equal(p.b.qp.params.max_dest_rd_atomic, to);
	/* Each READ is answered. The latest min(from, to) are kept, and answered again when their
	 * request is repeated. Repeated requests for the other READs get no response. */
	host_pull(&p.b, PULL_ALL);
	assert_int_equal(p.b.wire_count, 2u * from);
	wire_drop_all(&p.b);
	for (unsigned i = 0; i < from; i++) {
		bool kept = i + RTE_MIN(from, to) >= from;

		inject_rdma(OPCODE_RC_READ_REQUEST, PSN_A + 2 * i, 0, 2000);
		assert_int_equal(host_pull(&p.b, PULL_ALL), kept ? 2 : 0);
		wire_drop_all(&p.b);
	}
	for (unsigned i = 0; i < to; i++)
		inject_rdma(OPCODE_RC_READ_REQUEST, PSN_A + 2u * from + i, 0, 8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), to);
	wire_drop_all(&p.b);
	assert_int_equal(qp_state(&p.b.qp), IBV_QPS_SQD);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	expect_idle(&p.b);
	qp_link_fini(&p);
}

TEST(responder_depth_changes)
{
	static const uint8_t depths[] = {0, 1, 2, 3, 4, 7, 16};

	for (unsigned from = 0; from < RTE_DIM(depths); from++) {
		for (unsigned to = 0; to < RTE_DIM(depths); to++) {
			depth_case(depths[from], depths[to], 0);
			depth_case(depths[from], depths[to], 1);
			depth_case(depths[from], depths[to], PULL_ALL);
		}
	}
}

/* A timer fires in a QP that was reset. RESET and ERR stop each timer: retransmission,
 * RNR wait, tail-loss probe. */
TEST(reset_and_err_stop_timers)
{
	for (unsigned timer = 0; timer < 3; timer++) {
		for (unsigned to = 0; to < 2; to++) {
			rdma_init();
			host_recv(&p.b, 0, 0, 100);
			if (timer == 2) { /* measures a round trip */
				host_send(&p.a, 0, 0, 8, IBV_SEND_SIGNALED);
				host_pull(&p.a, PULL_ALL);
				p.now += 50 * NS_PER_US;
				wire_deliver_all(&p.a);
				host_pull(&p.b, PULL_ALL);
				wire_deliver_all(&p.b);
				expect_sent(&p.a, 0, IBV_WC_SUCCESS);
				expect_received(&p.b, 0, 8);
			}
			host_send(&p.a, 1, 0, 8, 0);
			host_pull(&p.a, PULL_ALL);
			wire_drop_all(&p.a);
			if (timer == 1)
				inject_ack(&p.a, AETH_RNR_NAK | 10, PSN_A);
			assert_int_not_equal(qp_deadline(&p.a.qp), TIME_NEVER);
			assert_int_equal(
				host_modify(&p.a, to ? IBV_QPS_ERR : IBV_QPS_RESET), 0);
			assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
			if (to)
				expect_sent(&p.a, 1, IBV_WC_WR_FLUSH_ERR);
			qp_link_advance(&p, NS_PER_SEC);
			assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
			assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
			qp_link_fini(&p);
		}
	}
}

/* A retransmission timer that is never stopped fires under load. While each request is
 * answered it must not fire. */
TEST(timer_does_not_fire_under_load)
{
	rdma_init();
	p.a.shared.tlp_off = true;
	for (unsigned i = 0; i < 1000; i++) {
		host_recv(&p.b, i, 0, 100);
		host_send(&p.a, i, 0, 100, IBV_SEND_SIGNALED);
		host_pull(&p.a, PULL_ALL);
		p.now += NS_PER_MS; /* 1 s in total, 15 timeouts */
		assert_true(qp_deadline(&p.a.qp) > p.now);
		qp_link_drain(&p);
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_received(&p.b, i, 100);
		assert_int_equal(qp_deadline(&p.a.qp), TIME_NEVER);
	}
	assert_int_equal(p.a.stats.ack_timeouts, 0);
	assert_int_equal(p.a.stats.retransmitted, 0);
	qp_link_fini(&p);
}

/* A duplicate READ or atomic in the middle of a WRITE or SEND must not end that message,
 * and no acknowledgement may have its PSN. */
TEST(duplicate_read_inside_message)
{
	static const uint8_t again[] = {OPCODE_RC_READ_REQUEST, OPCODE_RC_FETCH_ADD};

	for (unsigned kind = 0; kind < 2; kind++) {
		for (unsigned write = 0; write < 2; write++) {
			uint8_t first =
				write ? OPCODE_RC_WRITE_FIRST : OPCODE_RC_SEND_FIRST;
			uint32_t psn = PSN_A;

			rdma_init();
			host_recv(&p.b, 0, 0, 4096);
			inject_rdma(again[kind], psn++, 0, 8);
			host_pull(&p.b, PULL_ALL);
			wire_drop_all(&p.b);
			for (unsigned i = 0; i < 3; i++) {
				/* The opcodes of FIRST, MIDDLE, LAST are consecutive. */
				inject_rdma((uint8_t)(first + i), psn++,
					i < 2 ? 1024 : 100, 2 * 1024 + 100);
				assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
				expect_ack(
					&p.b, 0, AETH_ACK, PSN_A + 1 + i, i < 2 ? 1 : 2);
				wire_drop_all(&p.b);
				inject_rdma(again[kind], PSN_A, 0, 8);
				assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
				assert_int_equal(wire_view(&p.b, 0).psn, PSN_A);
				assert_int_not_equal(
					wire_view(&p.b, 0).opcode, OPCODE_RC_ACKNOWLEDGE);
				wire_drop_all(&p.b);
				assert_int_equal(p.b.qp.resp.msg, i == 2  ? OP_UNKNOWN
								  : write ? OP_WRITE
									  : OP_SEND);
				assert_int_equal(p.b.qp.resp.epsn, psn);
			}
			if (!write)
				expect_received(&p.b, 0, 2 * 1024 + 100);
			assert_int_equal(qp_state(&p.b.qp), IBV_QPS_RTS);
			assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
			qp_link_fini(&p);
		}
	}
}

/* Several moves to ERR, also while the queue drains: each request is flushed once, and
 * SQ_DRAINED is not raised for a queue that failed. */
TEST(repeated_err_flushes_once)
{
	for (unsigned draining = 0; draining < 2; draining++) {
		struct qp_attr attr = {.state = IBV_QPS_SQD, .en_sqd_async_notify = true};

		rdma_init();
		host_recv(&p.a, 50, 0, 8);
		host_send(&p.a, 1, 0, 3000, IBV_SEND_SIGNALED);
		host_pull(&p.a, 1);
		wire_drop_all(&p.a);
		if (draining)
			assert_int_equal(
				qp_modify(&p.a.qp, &attr,
					IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY,
					IBV_MTU_4096),
				0);
		host_send(&p.a, 2, 0, 8, 0);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
		host_send(&p.a, 3, 0, 8, 0);
		host_recv(&p.a, 51, 0, 8);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
			assert_int_equal(host_modify(&p.a, IBV_QPS_ERR), 0);
		}
		for (unsigned i = 1; i <= 3; i++)
			expect_sent(&p.a, i, IBV_WC_WR_FLUSH_ERR);
		expect_recv_error(&p.a, 50, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
		expect_recv_error(&p.a, 51, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
		inject_ack(&p.a, AETH_ACK, PSN_A); /* dropped */
		expect_idle(&p.a);
		qp_link_fini(&p);
	}
}

/* A second error while a fatal NAK is still pending. */
TEST(second_error_during_fatal_nak)
{
	rdma_init();
	host_recv(&p.b, 0, 0, 8);
	inject_rdma(OPCODE_RC_SEND_MIDDLE, PSN_A, 1024, 0);
	inject_rdma(OPCODE_RC_SEND_MIDDLE, PSN_A + 1, 1024, 0);
	expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
	expect_recv_error(&p.b, 0, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_INV_REQ, PSN_A, 0);
	wire_drop_all(&p.b);
	inject_rdma(OPCODE_RC_SEND_MIDDLE, PSN_A, 1024, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	expect_idle(&p.b);
	qp_link_fini(&p);
}
