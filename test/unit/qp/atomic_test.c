/* SPDX-License-Identifier: BSD-3-Clause */
/* COMPARE_SWAP and FETCH_ADD (docs/protocol.md 4 to 8; IBA 9.4.5, 9.7.5.1.9): values and
 * checks. Each atomic is executed exactly once, whichever packet is lost. */
#include <pthread.h>
#include <string.h>

#include "qp_link.h"

static struct qp_link p;

#define REMOTE 0x8000
#define CAS IBV_WR_ATOMIC_CMP_AND_SWP
#define ADD IBV_WR_ATOMIC_FETCH_AND_ADD
#define ACKED OPCODE_RC_ATOMIC_ACKNOWLEDGE

static void
init(uint8_t depth)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.max_rd = conf.max_dest_rd = depth;
	qp_link_init(&p, &conf);
}

static uint64_t *
mem_word(struct host *h, uint32_t offset)
{
	return (uint64_t *)(void *)(h->mem + offset);
}

static void
inject_atomic(uint8_t opcode, uint32_t psn, uint64_t va, uint32_t rkey, uint64_t operand,
	uint64_t compare)
{
	inject(&p.b, &(struct pkt_spec){.opcode = opcode,
			     .psn = psn,
			     .ack_req = true,
			     .va = va,
			     .rkey = rkey,
			     .swap_add = operand,
			     .compare = compare});
}

static uint64_t
remote_addr(uint32_t offset)
{
	return (uintptr_t)p.b.mem + offset;
}

static void
expect_old(uint32_t psn, uint32_t msn, uint64_t value)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_response(&p.b, 0, ACKED, psn, msn, value);
	wire_drop_all(&p.b);
}

/* The value that the requester gets, and the value in memory afterwards. */
TEST(atomic_results)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint64_t before, operand, compare, after;
	} rows[] = {
		{CAS, 0x1111222233334444, 0xAAAABBBBCCCCDDDD, 0x1111222233334444,
			0xAAAABBBBCCCCDDDD},
		{CAS, 0xAAAABBBBCCCCDDDD, 2, 1, 0xAAAABBBBCCCCDDDD},
		{CAS, 0x0102030405060708, 9, 0x0807060504030201, 0x0102030405060708},
		{CAS, 0, UINT64_MAX, 0, UINT64_MAX},
		{CAS, 5, 5, 5, 5},
		{ADD, 100, 5, 0, 105},
		{ADD, 105, UINT64_MAX, 0, 104},
		{ADD, UINT64_MAX, 1, 77, 0},
		{ADD, 0x00000000FFFFFFFF, 1, 0, 0x0000000100000000},
		{ADD, 7, 0, 7, 7},
		{ADD, 0x8000000000000000, 0x8000000000000000, 0, 0},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct cqe cqe;

		init(4);
		*mem_word(&p.b, REMOTE) = rows[i].before;
		*mem_word(&p.b, REMOTE - 8) = *mem_word(&p.b, REMOTE + 8) = 0x5A5A5A5A;
		*mem_word(&p.a, 8) = *mem_word(&p.a, 24) = 0x1234;
		host_atomic(&p.a, i, rows[i].opcode, 16, REMOTE, rows[i].operand,
			rows[i].compare);
		qp_link_drain(&p);
		assert_true(host_poll(&p.a, &p.a.send_cq, &cqe));
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_int_equal(cqe.wr_id, i);
		assert_int_equal(cqe.byte_len, 8);
		assert_int_equal(cqe.opcode,
			rows[i].opcode == CAS ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD);
		assert_int_equal(*mem_word(&p.a, 16), rows[i].before);
		assert_int_equal(*mem_word(&p.b, REMOTE), rows[i].after);
		assert_int_equal(*mem_word(&p.b, REMOTE - 8), 0x5A5A5A5A);
		assert_int_equal(*mem_word(&p.b, REMOTE + 8), 0x5A5A5A5A);
		assert_int_equal(*mem_word(&p.a, 8), 0x1234);
		assert_int_equal(*mem_word(&p.a, 24), 0x1234);
		qp_link_fini(&p);
	}
}

/* AtomicETH and AtomicAckETH are big-endian on the wire. Each atomic takes one PSN. */
TEST(atomic_headers_on_the_wire)
{
	uint8_t want[28] = {[12] = 0x11,
		0x22,
		0x33,
		0x44,
		0x55,
		0x66,
		0x77,
		0x88,
		0x99,
		0xAA,
		0xBB,
		0xCC,
		0xDD,
		0xEE,
		0xFF,
		0x01};
	static const uint8_t answer[12] = {
		AETH_ACK, 0, 0, 1, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7, 0xA8};
	struct pkt_view v;

	init(4);
	*mem_word(&p.b, REMOTE) = 0xA1A2A3A4A5A6A7A8;
	host_atomic(&p.a, 1, CAS, 0, REMOTE, 0x1122334455667788, 0x99AABBCCDDEEFF01);
	host_atomic(&p.a, 2, ADD, 0, REMOTE, 0x1122334455667788, 3);
	host_pull(&p.a, PULL_ALL);
	for (unsigned i = 0; i < 8; i++)
		want[i] = (uint8_t)(remote_addr(REMOTE) >> (56 - 8 * i));
	for (unsigned i = 0; i < 4; i++)
		want[8 + i] = (uint8_t)(p.b.rkey >> (24 - 8 * i));
	expect_frame(&p.a, 0, OPCODE_RC_COMPARE_SWAP, PSN_A, 1);
	v = wire_view(&p.a, 0);
	assert_int_equal(v.payload_len, 0);
	assert_memory_equal(v.ext, want, 28);
	expect_frame(&p.a, 1, OPCODE_RC_FETCH_ADD, PSN_A + 1, 1);
	v = wire_view(&p.a, 1);
	memset(want + 20, 0, 8); /* docs/protocol.md 4.1: 0 in a FETCH_ADD */
	assert_memory_equal(v.ext, want, 28);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_frame(&p.b, 0, ACKED, PSN_A, 0);
	v = wire_view(&p.b, 0);
	assert_memory_equal(v.ext, answer, 12);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	qp_link_fini(&p);
}

/* The result is scattered over the SGEs. Nothing is sent if an SGE is not writable. */
TEST(result_is_scattered)
{
	struct send_req req;
	struct sge list[3];

	init(4);
	*mem_word(&p.b, REMOTE) = 0x0807060504030201;
	req = host_rdma(&p.a, &list[0], 1, ADD, 100, REMOTE, 3);
	list[1] = host_sge(&p.a, 200, 0);
	list[2] = host_sge(&p.a, 301, 5);
	req.num_sge = 3;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(p.a.mem[i < 3 ? 100 + i : 298 + i], 1 + i);
	list[0] = host_sge(&p.a, 0, 8);
	list[0].lkey = host_key(&p.a, 0, 64, 0);
	req.num_sge = 1;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
	expect_sent_vendor(&p.a, 1, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
	assert_int_equal(key_free(&p.a.keys, list[0].lkey), 0);
	qp_link_fini(&p);
}

/* ---- Refused ---- */

static void
nak_case(uint8_t opcode, uint64_t at, uint32_t rkey, uint8_t syndrome)
{
	bool access = syndrome == AETH_NAK_ACCESS;

	*mem_word(&p.b, REMOTE) = 7;
	*mem_word(&p.b, REMOTE + 8) = 7;
	inject_atomic(opcode, PSN_A, at, rkey, 1, 7);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, syndrome, PSN_A, 0);
	wire_drop_all(&p.b);
	expect_event(&p.b, access ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	assert_int_equal(*mem_word(&p.b, REMOTE), 7);
	assert_int_equal(*mem_word(&p.b, REMOTE + 8), 7);
}

/* Rows 10, 11, 14 and 16 of docs/protocol.md 8.2, for both opcodes. */
TEST(invalid_atomic_is_refused)
{
	static const uint8_t opcodes[] = {OPCODE_RC_COMPARE_SWAP, OPCODE_RC_FETCH_ADD};

	for (unsigned i = 0; i < 2; i++) {
		uint8_t op = opcodes[i];
		uint32_t key;

		init(4);
		p.b.qp.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		nak_case(op, remote_addr(REMOTE), p.b.rkey, AETH_NAK_INV_REQ);
		qp_link_fini(&p);
		init(0);
		nak_case(op, remote_addr(REMOTE), p.b.rkey, AETH_NAK_INV_REQ);
		qp_link_fini(&p);
		for (unsigned off = 1; off < 8; off++) { /* capture c6 */
			init(4);
			nak_case(op, remote_addr(REMOTE + off), p.b.rkey,
				AETH_NAK_INV_REQ);
			qp_link_fini(&p);
		}
		init(4);
		nak_case(op, remote_addr(REMOTE), p.b.rkey ^ 1, AETH_NAK_ACCESS);
		qp_link_fini(&p);
		init(4); /* the right to write is not sufficient */
		key = host_key(&p.b, REMOTE, 64,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ);
		nak_case(op, remote_addr(REMOTE), key, AETH_NAK_ACCESS);
		assert_int_equal(key_free(&p.b.keys, key), 0);
		qp_link_fini(&p);
		init(4); /* half of the word is behind the region */
		key = host_key(&p.b, REMOTE, 12, IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE);
		nak_case(op, remote_addr(REMOTE + 8), key, AETH_NAK_ACCESS);
		assert_int_equal(key_free(&p.b.keys, key), 0);
		qp_link_fini(&p);
		init(4); /* the IOVA is aligned, the memory is not */
		assert_int_equal(
			key_alloc(&p.b.keys, p.b.qp.pd, 0x1000, p.b.mem + REMOTE + 4, 64,
				IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE, &key),
			0);
		nak_case(op, 0x1000, key, AETH_NAK_INV_REQ);
		assert_int_equal(key_free(&p.b.keys, key), 0);
		qp_link_fini(&p);
	}
}

/* READs and atomics share the responder resources. */
TEST(atomics_share_responder_resources)
{
	init(2);
	*mem_word(&p.b, REMOTE) = 0;
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_READ_REQUEST,
			     .psn = PSN_A,
			     .va = remote_addr(REMOTE),
			     .rkey = p.b.rkey,
			     .dma_len = 8});
	inject_atomic(
		OPCODE_RC_FETCH_ADD, PSN_A + 1, remote_addr(REMOTE), p.b.rkey, 1, 0);
	inject_atomic(
		OPCODE_RC_FETCH_ADD, PSN_A + 2, remote_addr(REMOTE), p.b.rkey, 1, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	expect_response(&p.b, 1, ACKED, PSN_A + 1, 2, 0);
	expect_ack(&p.b, 2, AETH_NAK_INV_REQ, PSN_A + 2, 2);
	wire_drop_all(&p.b);
	expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(*mem_word(&p.b, REMOTE), 1);
	qp_link_fini(&p);
}

/* READs and atomics together stay within max_rd_atomic. */
TEST(requester_keeps_max_rd_atomic)
{
	init(2);
	*mem_word(&p.b, REMOTE) = 0;
	for (unsigned i = 0; i < 6; i++) {
		if (i % 2 == 0)
			host_atomic(&p.a, i, ADD, 8 * i, REMOTE, 1, 0);
		else
			host_read(&p.a, i, 8 * i, REMOTE, 8);
	}
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	qp_link_drain(&p);
	for (unsigned i = 0; i < 6; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	/* Each READ sees at least the atomics before it. */
	for (unsigned i = 0; i < 6; i++)
		assert_true(*mem_word(&p.a, 8 * i) >= (i + 1) / 2);
	assert_int_equal(*mem_word(&p.b, REMOTE), 3);
	qp_link_fini(&p);
}

/* ---- Exactly once ---- */

/* A duplicate is answered with the saved value, which its PSN alone identifies, and is
 * not executed again (docs/protocol.md 8.7), even with other operands (captures 62 and
 * c5). */
TEST(duplicate_gets_saved_value)
{
	init(2);
	*mem_word(&p.b, REMOTE) = 100;
	inject_atomic(OPCODE_RC_FETCH_ADD, PSN_A, remote_addr(REMOTE), p.b.rkey, 1, 0);
	expect_old(PSN_A, 1, 100);
	inject_atomic(OPCODE_RC_FETCH_ADD, PSN_A, remote_addr(REMOTE), p.b.rkey, 1, 0);
	expect_old(PSN_A, 1, 100);
	inject_atomic(OPCODE_RC_FETCH_ADD, PSN_A, remote_addr(REMOTE), p.b.rkey, 50, 0);
	expect_old(PSN_A, 1, 100);
	inject_atomic(
		OPCODE_RC_COMPARE_SWAP, PSN_A, remote_addr(REMOTE), p.b.rkey, 7, 101);
	expect_old(PSN_A, 1, 100);
	/* the address is not checked either */
	inject_atomic(OPCODE_RC_FETCH_ADD, PSN_A, 1, 0, 50, 0);
	expect_old(PSN_A, 1, 100);
	assert_int_equal(*mem_word(&p.b, REMOTE), 101);
	/* The response has the current MSN. The oldest resource is forgotten. */
	inject_atomic(
		OPCODE_RC_COMPARE_SWAP, PSN_A + 1, remote_addr(REMOTE), p.b.rkey, 5, 101);
	expect_old(PSN_A + 1, 2, 101);
	inject_atomic(OPCODE_RC_FETCH_ADD, PSN_A, remote_addr(REMOTE), p.b.rkey, 1, 0);
	expect_old(PSN_A, 2, 100);
	inject_atomic(
		OPCODE_RC_FETCH_ADD, PSN_A + 2, remote_addr(REMOTE), p.b.rkey, 1, 0);
	expect_old(PSN_A + 2, 3, 5);
	inject_atomic(OPCODE_RC_FETCH_ADD, PSN_A, remote_addr(REMOTE), p.b.rkey, 1, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	assert_int_equal(*mem_word(&p.b, REMOTE), 6);
	qp_link_fini(&p);
}

/* The request or the response of one of several atomics is lost: each is executed once,
 * in order. */
TEST(lost_atomics_run_once)
{
	for (unsigned lost = 0; lost < 8; lost++) {
		init(4);
		*mem_word(&p.b, REMOTE) = 1000;
		for (unsigned i = 0; i < 4; i++)
			host_atomic(&p.a, i, ADD, 8 * i, REMOTE, 1, 0);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 4);
		if (lost < 4)
			wire_drop(&p.a, lost);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		if (lost >= 4)
			wire_drop(&p.b, lost - 4);
		qp_link_drain(&p);
		for (unsigned k = 0; k < 3; k++) {
			qp_link_advance(&p, 70 * NS_PER_MS);
			qp_link_drain(&p);
		}
		for (unsigned i = 0; i < 4; i++) {
			expect_sent(&p.a, i, IBV_WC_SUCCESS);
			assert_int_equal(*mem_word(&p.a, 8 * i), 1000 + i);
		}
		assert_int_equal(*mem_word(&p.b, REMOTE), 1004);
		qp_link_fini(&p);
	}
}

/* An atomic is completed only by its own response. An ACK for its PSN is an implied NAK
 * (C9-137; capture d16). An ATOMIC_ACKNOWLEDGE with a NAK syndrome is a bad response. */
TEST(ack_is_implied_nak)
{
	init(4);
	*mem_word(&p.b, REMOTE) = 3;
	host_atomic(&p.a, 1, ADD, 0, REMOTE, 1, 0);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_drop_all(&p.b);
	inject_ack(&p.a, AETH_ACK, PSN_A);
	expect_idle(&p.a);
	assert_int_equal(p.a.qp.req.retry_left, 6);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(*mem_word(&p.a, 0), 3);
	assert_int_equal(*mem_word(&p.b, REMOTE), 4);
	host_atomic(&p.a, 2, ADD, 0, REMOTE, 1, 0);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject(&p.a,
		&(struct pkt_spec){
			.opcode = ACKED, .psn = PSN_A + 1, .syndrome = AETH_NAK_ACCESS});
	expect_sent_vendor(&p.a, 2, IBV_WC_BAD_RESP_ERR, VENDOR_RESPONSE);
	qp_link_fini(&p);
}

/* An ATOMIC_ACKNOWLEDGE where the oldest request is a READ or a SEND. */
TEST(atomic_ack_for_other_request_fails)
{
	for (int read = 0; read < 2; read++) {
		init(4);
		if (read)
			host_read(&p.a, 1, 0, REMOTE, 8);
		else
			host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
		inject(&p.a,
			&(struct pkt_spec){.opcode = ACKED, .psn = PSN_A, .value = 9});
		expect_sent_vendor(&p.a, 1, IBV_WC_BAD_RESP_ERR, VENDOR_RESPONSE);
		qp_link_fini(&p);
	}
}

/* ---- Concurrent CPU atomics ---- */

#define THREADS 4
#define ADDS_PER_THREAD 100000
#define REMOTE_ATOMICS 20000

static uint32_t threads_ready;

static void *
adder(void *arg)
{
	uint64_t *at = arg;

	__atomic_fetch_add(&threads_ready, 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < ADDS_PER_THREAD; i++)
		__atomic_fetch_add(at, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Remote atomics of both kinds while four threads add to the same word: no addition is
 * lost. The returned value tells which COMPARE_SWAPs failed. */
TEST(remote_and_cpu_atomics)
{
	pthread_t thread[THREADS];
	uint64_t *at, won = 0, value = 0;

	init(4);
	at = mem_word(&p.b, REMOTE);
	*at = 0;
	threads_ready = 0;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, adder, at), 0);
	while (__atomic_load_n(&threads_ready, __ATOMIC_ACQUIRE) == 0)
		;
	for (unsigned i = 0; i < REMOTE_ATOMICS; i++) {
		struct cqe cqe;

		host_atomic(&p.a, i, i % 2 ? ADD : CAS, 0, REMOTE,
			i % 2 ? (UINT64_C(1) << 32) : value + (UINT64_C(1) << 32), value);
		qp_link_drain(&p);
		assert_true(host_poll(&p.a, &p.a.send_cq, &cqe));
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		won += i % 2 || *mem_word(&p.a, 0) == value;
		value = *mem_word(&p.a, 0) + (i % 2 ? UINT64_C(1) << 32 : 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(*at & UINT32_MAX, THREADS * ADDS_PER_THREAD);
	assert_int_equal(*at >> 32, won);
	qp_link_fini(&p);
}
