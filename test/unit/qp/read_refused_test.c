/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA READ (docs/protocol.md 8 and 9; IBA 9.7.5.1.9): requests that the responder
 * refuses and responses that the requester refuses. */
#include <errno.h>

#include "read_fixture.h"

/* ---- Refused by the responder ---- */

static void
expect_refused(uint8_t syndrome, uint32_t psn, enum ibv_event_type event)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, syndrome, psn, psn - PSN_A);
	wire_drop_all(&p.b);
	expect_event(&p.b, event);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	inject_read(psn, read_va(0), p.b.rkey, 8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	qp_link_fini(&p);
}

/* Rows 10, 11, 13 and 14 of docs/protocol.md 8.2. */
TEST(invalid_read_is_refused)
{
	uint32_t key;

	read_init(4, 4);
	p.b.qp.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	inject_read(PSN_A, read_va(0), p.b.rkey, 8);
	expect_refused(AETH_NAK_INV_REQ, PSN_A, IBV_EVENT_QP_REQ_ERR);

	read_init(4, 0); /* row 11 of docs/protocol.md 8.2 */
	inject_read(PSN_A, read_va(0), p.b.rkey, 8);
	expect_refused(AETH_NAK_INV_REQ, PSN_A, IBV_EVENT_QP_REQ_ERR);

	read_init(4, 4);
	inject_read(PSN_A, read_va(0), p.b.rkey, 0x80000001);
	expect_refused(AETH_NAK_INV_REQ, PSN_A, IBV_EVENT_QP_REQ_ERR);

	read_init(4, 4); /* row 13 of docs/protocol.md 8.2: no payload */
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_READ_REQUEST,
			     .psn = PSN_A,
			     .payload_len = 4,
			     .va = read_va(0),
			     .rkey = p.b.rkey,
			     .dma_len = 8});
	expect_refused(AETH_NAK_INV_REQ, PSN_A, IBV_EVENT_QP_REQ_ERR);

	read_init(4, 4);
	inject_read(PSN_A, read_va(0), p.b.rkey ^ 1, 8);
	expect_refused(AETH_NAK_ACCESS, PSN_A, IBV_EVENT_QP_ACCESS_ERR);

	read_init(4, 4);
	inject_read(PSN_A, read_va(0x8000 - 7), p.b.rkey, 8);
	expect_refused(AETH_NAK_ACCESS, PSN_A, IBV_EVENT_QP_ACCESS_ERR);

	read_init(4, 4);
	inject_read(PSN_A, UINT64_MAX - 3, p.b.rkey, 8);
	expect_refused(AETH_NAK_ACCESS, PSN_A, IBV_EVENT_QP_ACCESS_ERR);

	read_init(4, 4);
	key = host_key(
		&p.b, REMOTE, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	inject_read(PSN_A, read_va(0), key, 8);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	expect_refused(AETH_NAK_ACCESS, PSN_A, IBV_EVENT_QP_ACCESS_ERR);
}

/* Row 11 of docs/protocol.md 8.2: more than max_dest_rd_atomic unanswered READs. The
 * accepted ones are answered first, then the NAK follows in PSN order. */
TEST(too_many_reads_are_refused)
{
	read_init(4, 2);
	for (unsigned i = 0; i < 3; i++)
		inject_read(PSN_A + i, read_va(0), p.b.rkey, 8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_ONLY, PSN_A, 1, 8);
	expect_response(&p.b, 1, OPCODE_RC_READ_RESPONSE_ONLY, PSN_A + 1, 2, 8);
	expect_ack(&p.b, 2, AETH_NAK_INV_REQ, PSN_A + 2, 2);
	wire_drop_all(&p.b);
	expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
	qp_link_fini(&p);
	/* Each answered READ frees a responder resource. */
	read_init(4, 2);
	for (unsigned i = 0; i < 100; i++) {
		inject_read(PSN_A + i, read_va(0), p.b.rkey, 8);
		if (i != 0)
			assert_int_equal(host_pull(&p.b, 1), 1);
	}
	qp_link_fini_discard(&p);
}

/* The peer waits for what was accepted: a smaller limit is refused until it is answered. */
TEST(limit_is_not_below_unanswered_reads)
{
	struct qp_attr attr = {.state = IBV_QPS_SQD, .max_dest_rd_atomic = 1};

	read_init(4, 4);
	assert_int_equal(host_modify(&p.b, IBV_QPS_SQD), 0);
	for (unsigned i = 0; i < 3; i++)
		inject_read(PSN_A + i, read_va(0), p.b.rkey, 8);
	for (unsigned left = 3; left > 1; left--) {
		assert_int_equal(qp_modify(&p.b.qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC,
					 IBV_MTU_4096),
			-EBUSY);
		assert_int_equal(host_pull(&p.b, 1), 1);
	}
	assert_int_equal(
		qp_modify(&p.b.qp, &attr, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_MTU_4096), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	for (unsigned i = 0; i < 3; i++)
		expect_response(&p.b, i, OPCODE_RC_READ_RESPONSE_ONLY, psn_add(PSN_A, i),
			i + 1, 8);
	qp_link_fini_discard(&p);
}

/* The key is freed while the response is being sent: NAK 0x62 with the PSN of the next
 * response packet. Requests behind it are not answered. */
TEST(key_freed_during_response)
{
	uint32_t key;

	read_init(4, 4);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	inject_read(PSN_A, read_va(0), key, 4096);
	inject_read(PSN_A + 4, read_va(0), p.b.rkey, 8);
	assert_int_equal(host_pull(&p.b, 2), 2);
	expect_response(&p.b, 0, OPCODE_RC_READ_RESPONSE_FIRST, PSN_A, 1, 1024);
	expect_response(&p.b, 1, OPCODE_RC_READ_RESPONSE_MIDDLE, PSN_A + 1, 1, 1024);
	wire_drop_all(&p.b);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A + 2, 2);
	wire_drop_all(&p.b);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	qp_link_fini(&p);
	/* The requester completes the READ with the error. */
	read_init(4, 4);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	host_read(&p.a, 1, 0, REMOTE, 4096);
	host_read(&p.a, 2, 0, REMOTE, 8);
	((struct send_wqe *)sq_slot(&p.a.qp.sq, 0))->rkey = key;
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, 2);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_REM_ACCESS_ERR);
	expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	qp_link_fini(&p);
}

/* A QP in ERR sends nothing. But before a fatal NAK the accepted READs are answered; an
 * error there raises no second event. */
TEST(err_stops_responses)
{
	uint32_t key;

	read_init(4, 4);
	inject_read(PSN_A, read_va(0), p.b.rkey, 3000);
	assert_int_equal(host_pull(&p.b, 1), 1);
	wire_drop_all(&p.b);
	assert_int_equal(host_modify(&p.b, IBV_QPS_ERR), 0);
	assert_false(qp_wants_tx(&p.b.qp));
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	qp_link_fini(&p);

	read_init(4, 4);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	inject_read(PSN_A, read_va(0), key, 3000);
	inject_read(PSN_A + 3, read_va(0), key, 0x80000001);
	expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(host_pull(&p.b, 2), 2);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 2, AETH_NAK_ACCESS, PSN_A + 2, 1);
	wire_drop_all(&p.b);
	expect_idle(&p.b);
	qp_link_fini(&p);
}

/* max_rd_atomic can change in SQD once the queue is drained. */
TEST(max_rd_atomic_changes_in_sqd)
{
	struct qp_attr attr = {.max_rd_atomic = 1};

	read_init(4, 4);
	host_read(&p.a, 1, 0, REMOTE, 8);
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(host_modify(&p.a, IBV_QPS_SQD), 0);
	assert_int_equal(qp_modify(&p.a.qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, IBV_MTU_4096),
		-EINVAL);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(
		qp_modify(&p.a.qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, IBV_MTU_4096), 0);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RTS), 0);
	host_read(&p.a, 2, 0, REMOTE, 8);
	host_read(&p.a, 3, 0, REMOTE, 8);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
	qp_link_drain(&p);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	expect_sent(&p.a, 3, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* ---- Refused by the requester ---- */

static void
inject_response(uint8_t opcode, uint32_t psn, uint8_t syndrome, uint32_t len)
{
	inject(&p.a, &(struct pkt_spec){.opcode = opcode,
			     .psn = psn,
			     .syndrome = syndrome,
			     .payload_len = len});
}

/* Opcode, length and syndrome of a READ response must be right (docs/protocol.md 5.1 and
 * 7.4), otherwise BAD_RESP_ERR, and its payload is not written. */
TEST(invalid_read_response_fails)
{
	static const struct {
		uint32_t len; /* of the READ */
		uint8_t good; /* valid packets before */
		uint8_t opcode, syndrome;
		uint32_t payload;
	} rows[] = {
		{3000, 0, MIDDLE, AETH_ACK, 1024},
		{3000, 0, LAST, AETH_ACK, 1024},
		{3000, 0, ONLY, AETH_ACK, 1024},
		{3000, 0, FIRST, AETH_ACK, 1020},
		{3000, 0, FIRST, AETH_ACK, 1028},
		{3000, 0, FIRST, AETH_ACK, 0},
		{3000, 0, FIRST, AETH_NAK_SEQ, 1024},
		{3000, 0, FIRST, AETH_NAK_ACCESS, 1024},
		{3000, 0, FIRST, AETH_RNR_NAK, 1024},
		{3000, 0, FIRST, 0x40, 1024},
		{3000, 1, FIRST, AETH_ACK, 1024},
		{3000, 1, ONLY, AETH_ACK, 1024},
		{3000, 1, LAST, AETH_ACK, 1024},
		{3000, 1, MIDDLE, 0, 1020},
		{3000, 2, MIDDLE, 0, 952},
		{3000, 2, MIDDLE, 0, 1024},
		{3000, 2, LAST, AETH_ACK, 951},
		{3000, 2, LAST, AETH_ACK, 953},
		{3000, 2, LAST, AETH_NAK_SEQ, 952},
		{3000, 2, LAST, AETH_ACK, 0},
		{100, 0, ONLY, AETH_ACK, 60},  /* capture d5 */
		{100, 0, ONLY, AETH_ACK, 160}, /* capture d6 */
		{100, 0, FIRST, AETH_ACK, 100},
		{0, 0, ONLY, AETH_ACK, 1},
		{8, 0, OPCODE_RC_ATOMIC_ACKNOWLEDGE, AETH_ACK, 0},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		read_init(4, 4);
		memset(p.a.mem, UNTOUCHED, 8192);
		host_send(&p.a, 0, 0x7000, 8, 0);
		host_read(&p.a, 1, 0, REMOTE, rows[i].len);
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
		for (unsigned k = 0; k < rows[i].good; k++)
			inject_response(
				k == 0 ? FIRST : MIDDLE, PSN_A + 1 + k, AETH_ACK, 1024);
		inject_response(rows[i].opcode, PSN_A + 1 + rows[i].good,
			rows[i].syndrome, rows[i].payload);
		expect_sent_vendor(&p.a, 1, IBV_WC_BAD_RESP_ERR, VENDOR_RESPONSE);
		assert_int_equal(p.a.qp.state, IBV_QPS_ERR);
		for (unsigned k = 1024 * rows[i].good; k < 8192; k++)
			assert_int_equal(p.a.mem[k], UNTOUCHED);
		qp_link_fini(&p);
	}
}

/* A READ response to an atomic. */
TEST(read_response_to_atomic_fails)
{
	read_init(4, 4);
	host_atomic(&p.a, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, REMOTE, 1, 0);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject_response(ONLY, PSN_A, AETH_ACK, 8);
	expect_sent(&p.a, 1, IBV_WC_BAD_RESP_ERR);
	qp_link_fini(&p);
}

/* Local memory: without LOCAL_WRITE the READ is not sent. If the memory is deregistered
 * before the response, the READ fails and nothing is written; requests before it
 * complete. */
TEST(local_memory_is_checked)
{
	struct send_req req;
	struct sge sge;
	uint32_t key;

	read_init(4, 4);
	memset(p.a.mem, UNTOUCHED, 4096);
	key = host_key(&p.a, 0, 4096, 0);
	req = host_rdma(&p.a, &sge, 1, IBV_WR_RDMA_READ, 0, REMOTE, 8);
	sge.lkey = key;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	expect_sent_vendor(&p.a, 1, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
	assert_int_equal(key_free(&p.a.keys, key), 0);
	qp_link_fini(&p);

	read_init(4, 4);
	memset(p.a.mem, UNTOUCHED, 4096);
	key = host_key(&p.a, 0, 4096, IBV_ACCESS_LOCAL_WRITE);
	host_write(&p.a, 0, 0x2000, REMOTE + 64, 8);
	req = host_rdma(&p.a, &sge, 1, IBV_WR_RDMA_READ, 0, REMOTE, 2000);
	sge.lkey = key;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	assert_int_equal(key_free(&p.a.keys, key), 0);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent_vendor(&p.a, 1, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
	for (unsigned i = 0; i < 2000; i++)
		assert_int_equal(p.a.mem[i], UNTOUCHED);
	qp_link_fini(&p);
}

/* With max_rd_atomic 0 a READ fails. The requests before it complete first. */
TEST(read_with_depth_0_fails)
{
	read_init(0, 4);
	host_recv(&p.b, 5, 0, 8);
	host_send(&p.a, 0, 0, 8, IBV_SEND_SIGNALED);
	host_read(&p.a, 1, 0, REMOTE, 8);
	host_send(&p.a, 2, 0, 8, IBV_SEND_SIGNALED);
	qp_link_drain(&p);
	expect_received(&p.b, 5, 8);
	expect_sent(&p.a, 0, IBV_WC_SUCCESS);
	expect_sent_vendor(&p.a, 1, IBV_WC_LOC_QP_OP_ERR, VENDOR_DEPTH);
	expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
	qp_link_fini(&p);
}
