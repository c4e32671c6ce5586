/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC (annex A14; section 12): what differs from RC. The sweep runs all of it over a bad
 * wire. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "qp_pair.h"

#define PD_OTHER 11
#define MTU 1024

/* A further SRQ of b, with a CQ and a PD of its own. */
struct second {
	struct srq srq;
	struct cq cq;
	uint32_t key; /* of all of b's memory, local and remote */
};

static struct pair p;
static struct second second;

static void
start(void)
{
	struct pair_conf conf = pair_defaults_rdma();

	conf.type = IBV_QPT_XRC_SEND;
	conf.srq_pd = true;
	pair_init(&p, &conf);
}

static void
second_init(uint32_t xrcd)
{
	assert_int_equal(cq_init(&second.cq, &p.mem, 64, &p.b.events, &p.b), 0);
	cq_attach(&second.cq, 0);
	assert_int_equal(
		srq_init(&second.srq, &p.mem, PD_OTHER, 16, 2, &p.b.events, &p.b), 0);
	second.srq.xrcd = xrcd;
	second.srq.cq = &second.cq;
	assert_int_equal(srq_table_put(&p.b.srqs, &second.srq), 0);
	assert_int_equal(key_alloc(&p.b.keys, PD_OTHER, (uintptr_t)p.b.mem, p.b.mem,
				 p.conf.mem_bytes, IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE,
				 &second.key),
		0);
}

/* As the engine does it: no packet meets the SRQ any more. */
static void
second_gone(void)
{
	srq_table_remove(&p.b.srqs, &second.srq);
	qp_forget_srq(&p.b.qp, &second.srq);
}

static void
second_fini(void)
{
	srq_fini(&second.srq);
	cq_detach(&second.cq);
	cq_fini(&second.cq);
	(void)key_free(&p.b.keys, second.key);
}

static void
second_recv(uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct sge sge = host_sge(&p.b, offset, len);

	sge.lkey = second.key;
	assert_int_equal(ring_post(&second.srq.ring, wr_id, &sge, 1), 0);
}

static void
second_received(uint64_t wr_id, enum ibv_wc_status status, uint32_t len_or_vendor)
{
	struct cqe cqe;

	assert_true(cq_take(&second.cq, &p.b.qp.sq, &cqe));
	assert_int_equal(cqe.wr_id, wr_id);
	assert_int_equal(cqe.status, status);
	assert_int_equal(cqe.byte_len, len_or_vendor);
	assert_int_equal(cqe.qpn, QPN_B);
	assert_false(cq_take(&second.cq, &p.b.qp.sq, &cqe));
}

static void
send_to(uint32_t srqn, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct sge sge = host_sge(&p.a, offset, len);
	struct send_req req = {.wr_id = wr_id,
		.flags = IBV_SEND_SIGNALED,
		.sge = &sge,
		.num_sge = 1,
		.srqn = srqn};

	assert_int_equal(host_post_send(&p.a, &req), 0);
}

/* ---- On the wire ---- */

static void
xrceth_check(unsigned index, uint8_t opcode, uint32_t psn)
{
	struct pkt_view v;

	expect_frame(&p.a, index, opcode, psn, -1);
	v = wire_view(&p.a, index);
	assert_int_equal(v.ext[0], 0);
	assert_int_equal(view_srqn(&v), p.b.srq.srqn);
}

/* Every request packet begins with the XRCETH, MIDDLE and LAST too; no response does. */
static void
test_wire(void **state)
{
	struct sge sge;
	struct send_req req;
	struct pkt_view v;

	(void)state;
	start();
	host_recv(&p.b, 1, 0x8000, 0x4000);
	host_recv(&p.b, 2, 0xC000, 0);
	host_send(&p.a, 1, 0, 2 * MTU + 5, 0);
	host_write(&p.a, 2, 0, 0x100, MTU + 1);
	req = host_rdma(&p.a, &sge, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0x100, 2 * MTU + 1);
	req.imm = 0x11223344;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_read(&p.a, 4, 0, 0x100, MTU + 7);
	host_atomic(&p.a, 5, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0x200, 3, 0);
	host_atomic(&p.a, 6, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0x200, 4, 5);
	host_pull(&p.a, PULL_ALL);

	xrceth_check(0, OPCODE_XRC_SEND_FIRST, PSN_A);
	xrceth_check(1, OPCODE_XRC_SEND_MIDDLE, PSN_A + 1);
	xrceth_check(2, OPCODE_XRC_SEND_LAST, PSN_A + 2);
	xrceth_check(3, OPCODE_XRC_WRITE_FIRST, PSN_A + 3);
	v = wire_view(&p.a, 3);
	assert_int_equal(v.ext + 4 - (const uint8_t *)view_reth(&v), 0);
	assert_int_equal(be32toh(view_reth(&v)->rkey), p.b.rkey);
	assert_int_equal(be32toh(view_reth(&v)->len), MTU + 1);
	xrceth_check(4, OPCODE_XRC_WRITE_LAST, PSN_A + 4);
	xrceth_check(5, OPCODE_XRC_WRITE_FIRST, PSN_A + 5);
	xrceth_check(7, OPCODE_XRC_WRITE_LAST_IMM, PSN_A + 7);
	v = wire_view(&p.a, 7);
	assert_int_equal(view_imm_be(&v), 0x11223344);
	xrceth_check(8, OPCODE_XRC_READ_REQUEST, PSN_A + 8);
	xrceth_check(9, OPCODE_XRC_FETCH_ADD, PSN_A + 10);
	xrceth_check(10, OPCODE_XRC_COMPARE_SWAP, PSN_A + 11);
	assert_int_equal(p.a.wire_count, 11);

	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_FIRST, PSN_A + 8, 4, MTU);
	expect_response(&p.b, 1, OPCODE_RC_READ_RESPONSE_LAST, PSN_A + 9, 4, 7);
	expect_frame(&p.b, 2, OPCODE_XRC_ATOMIC_ACKNOWLEDGE, PSN_A + 10, 0);
	assert_int_equal(wire_view(&p.b, 0).opcode, OPCODE_XRC_READ_RESPONSE_FIRST);
	wire_deliver_all(&p.b);
	expect_received(&p.b, 1, 2 * MTU + 5);
	expect_received(&p.b, 2, 2 * MTU + 1);
	for (uint64_t i = 2; i <= 6; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	pair_fini(&p);
}

/* An initiator has no requests to take and a target no responses; RC's are for neither.
 */
static void
test_admission(void **state)
{
	(void)state;
	start();
	inject_request(&p.a, OPCODE_XRC_SEND_ONLY, PSN_B, 8);
	inject_request(&p.b, OPCODE_XRC_ACKNOWLEDGE, PSN_B, 0);
	inject_request(&p.a, OPCODE_RC_ACKNOWLEDGE, PSN_A, 0);
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, PSN_A, 8);
	assert_int_equal(p.a.stats.drop[DROP_qp_type], 2);
	assert_int_equal(p.b.stats.drop[DROP_qp_type], 2);
	assert_int_equal(p.b.qp.resp.epsn, PSN_A);
	pair_fini(&p);
}

/* ---- SRQs ---- */

/* Each message says whose receive it takes, in whose CQ that completes and under which
 * PD. The initiator's requests stay in one order. */
static void
test_two_srqs(void **state)
{
	(void)state;
	start();
	second_init(XRCD);
	host_recv(&p.b, 1, 0x8000, 4 * MTU);
	second_recv(2, 0xA000, 4 * MTU);
	host_recv(&p.b, 3, 0xC000, 4 * MTU);
	send_to(p.b.srq.srqn, 11, 0, 2 * MTU);
	send_to(second.srq.srqn, 12, 0x1000, 2 * MTU + 1);
	send_to(p.b.srq.srqn, 13, 0x2000, 1);
	pair_settle(&p);
	expect_received(&p.b, 1, 2 * MTU);
	expect_received(&p.b, 3, 1);
	second_received(2, IBV_WC_SUCCESS, 2 * MTU + 1);
	assert_memory_equal(p.b.mem + 0x8000, p.a.mem, 2 * MTU);
	assert_memory_equal(p.b.mem + 0xA000, p.a.mem + 0x1000, 2 * MTU + 1);
	for (uint64_t i = 11; i <= 13; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	second_gone();
	second_fini();
	pair_fini(&p);
}

static void
refused(enum ibv_event_type first)
{
	pair_settle(&p);
	expect_sent_vendor(&p.a, 11, IBV_WC_REM_INV_REQ_ERR, VENDOR_REMOTE_NAK);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	expect_event(&p.b, first);
	if (first != IBV_EVENT_QP_LAST_WQE_REACHED)
		expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
}

/* No SRQ of that number, or one of another domain: NAK 0x61, for every opcode. */
static void
test_unknown_srq(void **state)
{
	(void)state;
	for (int op = 0; op < 4; op++) {
		struct sge sge;
		struct send_req req;

		start();
		second_init(XRCD + 1);
		second_recv(2, 0xA000, MTU);
		req = host_rdma(&p.a, &sge, 11,
			op == 0   ? IBV_WR_SEND
			: op == 1 ? IBV_WR_RDMA_READ
			: op == 2 ? WR_RDMA_WRITE
				  : IBV_WR_ATOMIC_FETCH_AND_ADD,
			0, 0x100, 8);
		req.srqn = op == 0 ? second.srq.srqn : second.srq.srqn + 1;
		assert_int_equal(host_post_send(&p.a, &req), 0);
		refused(IBV_EVENT_QP_REQ_ERR);
		assert_int_equal(recv_ring_outstanding(&second.srq.ring), 1);
		second_gone();
		second_fini();
		pair_fini(&p);
	}
}

/* A message that changes its SRQ: what it took completes in error, where it was taken. */
static void
test_srq_changes(void **state)
{
	(void)state;
	start();
	second_init(XRCD);
	second_recv(2, 0xA000, 4 * MTU);
	inject(&p.b, &(struct crafted){.opcode = OPCODE_XRC_SEND_FIRST,
			     .psn = PSN_A,
			     .srqn = second.srq.srqn,
			     .payload_len = MTU});
	inject(&p.b, &(struct crafted){.opcode = OPCODE_XRC_SEND_MIDDLE,
			     .psn = PSN_A + 1,
			     .payload_len = MTU});
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_NAK_INV_REQ, PSN_A + 1, 0);
	wire_drop_all(&p.b);
	second_received(2, IBV_WC_REM_INV_REQ_ERR, VENDOR_SRQN);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	second_gone();
	second_fini();
	pair_fini(&p);
}

/* Keys of remote access are those of the SRQ's PD: the target has none. */
static void
test_protection(void **state)
{
	struct sge sge;
	struct send_req req;

	(void)state;
	start();
	second_init(XRCD);
	for (unsigned i = 0; i < 3; i++) {
		req = host_rdma(&p.a, &sge, i,
			i == 0   ? WR_RDMA_WRITE
			: i == 1 ? IBV_WR_RDMA_READ
				 : IBV_WR_ATOMIC_FETCH_AND_ADD,
			0, 0x100, 8);
		req.srqn = second.srq.srqn;
		req.rkey = second.key;
		assert_int_equal(host_post_send(&p.a, &req), 0);
		host_write(&p.a, i + 10, 0, 0x108, 8); /* the other SRQ, its key */
	}
	pair_settle(&p);
	for (unsigned i = 0; i < 3; i++) {
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
		expect_sent(&p.a, i + 10, IBV_WC_SUCCESS);
	}
	/* The right key under the wrong SRQ. */
	req.srqn = p.b.srq.srqn;
	req.wr_id = 11;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	pair_settle(&p);
	expect_sent(&p.a, 11, IBV_WC_REM_ACCESS_ERR);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	second_gone();
	second_fini();
	pair_fini(&p);
}

/* A READ is answered under the PD of its own SRQ, whatever came behind it, and again. */
static void
test_read_behind(void **state)
{
	struct crafted read = {.opcode = OPCODE_XRC_READ_REQUEST,
		.psn = PSN_A,
		.dma_len = 2 * MTU,
		.ack_req = true};

	(void)state;
	start();
	second_init(XRCD);
	read.va = (uintptr_t)p.b.mem;
	read.rkey = second.key;
	read.srqn = second.srq.srqn;
	inject(&p.b, &read);
	inject(&p.b, &(struct crafted){.opcode = OPCODE_XRC_WRITE_ONLY,
			     .psn = PSN_A + 2,
			     .va = (uintptr_t)p.b.mem + 0x4000,
			     .rkey = p.b.rkey,
			     .dma_len = 8,
			     .payload_len = 8});
	host_pull(&p.b, PULL_ALL);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_FIRST, PSN_A, 1, MTU);
	wire_drop_all(&p.b);
	inject(&p.b, &read);
	host_pull(&p.b, PULL_ALL);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_FIRST, PSN_A, 2, MTU);
	wire_drop_all(&p.b);
	/* Not any more once the SRQ is gone: the PD may be somebody else's. */
	second_gone();
	inject(&p.b, &read);
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A, 2);
	wire_drop_all(&p.b);
	assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
	second_fini();
	pair_fini(&p);
}

/* Destroyed in the middle of a message: its receive goes with it, the rest is refused. */
static void
test_srq_gone(void **state)
{
	(void)state;
	start();
	second_init(XRCD);
	second_recv(2, 0xA000, 4 * MTU);
	send_to(second.srq.srqn, 11, 0, 3 * MTU);
	host_pull(&p.a, PULL_ALL);
	wire_deliver(&p.a, 0);
	assert_true(p.b.qp.resp.wqe_held);
	second_gone();
	second_fini();
	refused(IBV_EVENT_QP_REQ_ERR);
	pair_fini(&p);
}

static void
test_srq_error(void **state)
{
	(void)state;
	start();
	p.b.srq.error = true;
	host_send(&p.a, 11, 0, 8, IBV_SEND_SIGNALED);
	pair_settle(&p);
	expect_sent(&p.a, 11, IBV_WC_REM_OP_ERR);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	pair_fini(&p);
}

/* Empty: RNR NAK, for the messages to that SRQ and what stands behind them. */
static void
test_rnr(void **state)
{
	(void)state;
	start();
	second_init(XRCD);
	second_recv(2, 0xA000, MTU);
	host_send(&p.a, 11, 0, 8, IBV_SEND_SIGNALED);
	send_to(second.srq.srqn, 12, 0, 8);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_ack(&p.b, 0, AETH_RNR_NAK | 12, PSN_A, 0);
	wire_deliver_all(&p.b);
	host_recv(&p.b, 1, 0x8000, MTU);
	pair_advance(&p, rnr_timer_ns[12]);
	pair_settle(&p);
	expect_received(&p.b, 1, 8);
	second_received(2, IBV_WC_SUCCESS, 8);
	expect_sent(&p.a, 11, IBV_WC_SUCCESS);
	expect_sent(&p.a, 12, IBV_WC_SUCCESS);
	second_gone();
	second_fini();
	pair_fini(&p);
}

static void
test_limit(void **state)
{
	struct srq_attr attr = {.limit = 2};

	(void)state;
	start();
	host_recv(&p.b, 1, 0x8000, MTU);
	host_recv(&p.b, 2, 0x9000, MTU);
	assert_int_equal(srq_modify(&p.b.srq, &attr, IBV_SRQ_LIMIT), 0);
	host_send(&p.a, 11, 0, 8, IBV_SEND_SIGNALED);
	pair_settle(&p);
	expect_event(&p.b, IBV_EVENT_SRQ_LIMIT_REACHED);
	expect_received(&p.b, 1, 8);
	expect_sent(&p.a, 11, IBV_WC_SUCCESS);
	pair_fini(&p);
}

/* ---- States ---- */

/* To ERR: the event alone, as nothing of the target's own is outstanding. To RESET: what
 * it received stays, for it is the SRQ's. */
static void
test_target_states(void **state)
{
	(void)state;
	start();
	host_recv(&p.b, 1, 0x8000, MTU);
	host_send(&p.a, 11, 0, 8, IBV_SEND_SIGNALED);
	pair_settle(&p);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	assert_null(p.b.qp.srq);
	expect_received(&p.b, 1, 8);
	expect_sent(&p.a, 11, IBV_WC_SUCCESS);
	/* And works again. */
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	pair_connect(&p);
	host_recv(&p.b, 2, 0x8000, MTU);
	host_send(&p.a, 12, 0, 8, IBV_SEND_SIGNALED);
	pair_settle(&p);
	expect_received(&p.b, 2, 8);
	expect_sent(&p.a, 12, IBV_WC_SUCCESS);
	pair_fini(&p);
}

/* The first packet in RTR raises COMM_EST, one for an SRQ that is not there too. */
static void
test_established(void **state)
{
	struct pair_conf conf = pair_defaults_rdma();
	struct qp_attr attr;

	(void)state;
	for (int bad = 0; bad < 2; bad++) {
		conf.type = IBV_QPT_XRC_SEND;
		conf.unconnected = true;
		pair_init(&p, &conf);
		host_connect(&p.a);
		host_recv(&p.b, 1, 0x8000, MTU);
		attr = host_attr(&p.b);
		host_connect(&p.b);
		p.b.qp.state = IBV_QPS_RTR;
		send_to(p.b.srq.srqn + (uint32_t)bad, 11, 0, 8);
		pair_settle(&p);
		expect_event(&p.b, IBV_EVENT_COMM_EST);
		if (bad) {
			refused(IBV_EVENT_QP_REQ_ERR);
		} else {
			expect_received(&p.b, 1, 8);
			expect_sent(&p.a, 11, IBV_WC_SUCCESS);
		}
		(void)attr;
		pair_fini(&p);
	}
}

/* Reliable as RC: retries, then ERR and a flush, not SQE. */
static void
test_initiator_error(void **state)
{
	(void)state;
	start();
	host_send(&p.a, 11, 0, 8, 0);
	host_send(&p.a, 12, 0, 8, 0);
	for (int i = 0; i < 8; i++) {
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
		pair_advance(&p, 68 * NS_PER_MS);
	}
	expect_sent_vendor(&p.a, 11, IBV_WC_RETRY_EXC_ERR, VENDOR_ACK_TIMEOUT);
	expect_sent(&p.a, 12, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
	pair_fini(&p);
}

/* Every handle of a target is told of its events. */
static void
test_watches(void **state)
{
	struct event_queue queue[2];
	struct qp_watch watch[2];
	struct event_record event;

	(void)state;
	start();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(event_queue_init(&queue[i]), 0);
		fcntl(queue[i].fd, F_SETFL, O_NONBLOCK);
		qp_watch_init(&watch[i], &queue[i], &watch[i]);
		LIST_INSERT_HEAD(&p.b.qp.watches, &watch[i], link);
	}
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	expect_event(&p.b, IBV_EVENT_QP_LAST_WQE_REACHED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(event_next(&queue[i], &event), 0);
		assert_int_equal(event.type, IBV_EVENT_QP_LAST_WQE_REACHED);
		assert_ptr_equal(event.object, &watch[i]);
		assert_int_equal(event_next(&queue[i], &event), -EAGAIN);
		LIST_REMOVE(&watch[i], link);
		event_queue_fini(&queue[i]);
	}
	pair_fini(&p);
}

/* What a type does not have is not looked at; a target needs a domain, not CQs. */
static void
test_create(void **state)
{
	struct qp_conf conf = {.type = IBV_QPT_XRC_RECV,
		.max_send_wr = UINT32_MAX,
		.max_recv_wr = UINT32_MAX};
	struct cq cq;
	struct qp qp;

	(void)state;
	assert_int_equal(qp_init(&qp, 2, &conf, &alloc_plain, NULL, NULL), -EINVAL);
	conf.xrcd = 1;
	assert_int_equal(qp_init(&qp, 2, &conf, &alloc_plain, NULL, NULL), 0);
	assert_null(qp.rq);
	assert_null(qp.send_cq);
	qp_stop(&qp);
	qp_fini(&qp);
	conf.type = IBV_QPT_XRC_SEND;
	conf.max_send_wr = 4;
	assert_int_equal(qp_init(&qp, 2, &conf, &alloc_plain, NULL, NULL), -EINVAL);
	assert_int_equal(cq_init(&cq, &alloc_plain, 4, NULL, NULL), 0);
	conf.send_cq = &cq;
	assert_int_equal(qp_init(&qp, 2, &conf, &alloc_plain, NULL, NULL), 0);
	assert_null(qp.rq);
	assert_null(qp.recv_cq);
	qp_stop(&qp);
	qp_fini(&qp);
	cq_fini(&cq);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire),
		cmocka_unit_test(test_admission),
		cmocka_unit_test(test_two_srqs),
		cmocka_unit_test(test_unknown_srq),
		cmocka_unit_test(test_srq_changes),
		cmocka_unit_test(test_protection),
		cmocka_unit_test(test_read_behind),
		cmocka_unit_test(test_srq_gone),
		cmocka_unit_test(test_srq_error),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_target_states),
		cmocka_unit_test(test_established),
		cmocka_unit_test(test_initiator_error),
		cmocka_unit_test(test_watches),
		cmocka_unit_test(test_create),
	};

	return cmocka_run_group_tests_name("qp xrc", tests, NULL, NULL);
}
