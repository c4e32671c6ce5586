/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory placement extensions (annex A19; docs/protocol.md 4, 5.3, 8): ATOMIC_WRITE and
 * FLUSH, requester and responder: headers, responses, checks, duplicates, depth. */
#include <string.h>

#include <rte_byteorder.h>

#include "qp_link.h"

static struct qp_link p;

#define REMOTE 0x8000
#define FLUSH ((enum ibv_wr_opcode)14)
#define WC_FLUSH 8
#define ACCESS_FLUSH (1u << 8)
#define GLOBAL 1u
#define PERSISTENT 2u
#define REGION (1u << 4)
#define ONLY OPCODE_RC_READ_RESPONSE_ONLY

static uint32_t flush_key,
	plain_key; /* of b's memory: with the right to flush alone, and without it */

static void
keys_alloc(const struct qp_link_conf *conf)
{
	flush_key = host_key(&p.b, 0, conf->mem_bytes, ACCESS_FLUSH);
	plain_key = host_key(&p.b, 0, conf->mem_bytes,
		ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
}

static void
init(uint8_t rd, uint8_t dest_rd)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.max_rd = rd;
	conf.max_dest_rd = dest_rd;
	conf.access |= ACCESS_FLUSH;
	qp_link_init(&p, &conf);
	keys_alloc(&conf);
}

static void
fini(void)
{
	assert_int_equal(key_free(&p.b.keys, flush_key), 0);
	assert_int_equal(key_free(&p.b.keys, plain_key), 0);
	qp_link_fini(&p);
}

static void
post_atomic(uint64_t wr_id, uint32_t offset, uint32_t remote, unsigned flags)
{
	struct sge sge;
	struct send_req req =
		host_rdma(&p.a, &sge, wr_id, IBV_WR_ATOMIC_WRITE, offset, remote, 8);

	req.flags |= flags;
	assert_int_equal(host_post_send(&p.a, &req), 0);
}

static void
post_flush(uint64_t wr_id, uint32_t feth, uint32_t remote, uint32_t len)
{
	struct send_req req = {.wr_id = wr_id,
		.opcode = FLUSH,
		.flags = IBV_SEND_SIGNALED,
		.imm = rte_cpu_to_be_32(feth),
		.remote_va = (uintptr_t)p.b.mem + remote,
		.rkey = flush_key,
		.len = len};

	assert_int_equal(host_post_send(&p.a, &req), 0);
}

static uint64_t
remote_addr(uint32_t offset)
{
	return (uintptr_t)p.b.mem + offset;
}

static void
inject_atomic_write(
	uint32_t psn, uint64_t at, uint32_t rkey, uint32_t dma_len, uint32_t len)
{
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_ATOMIC_WRITE,
			     .psn = psn,
			     .va = at,
			     .rkey = rkey,
			     .dma_len = dma_len,
			     .payload_len = len,
			     .payload_key = 6});
}

static void
inject_flush(uint32_t psn, uint32_t feth, uint64_t at, uint32_t rkey, uint32_t len)
{
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_FLUSH,
			     .psn = psn,
			     .imm = rte_cpu_to_be_32(feth),
			     .va = at,
			     .rkey = rkey,
			     .dma_len = len});
}

static void
expect_empty(uint32_t psn, uint32_t msn)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_response(&p.b, 0, ONLY, psn, msn, 0);
	wire_drop_all(&p.b);
}

static void
reth_check(const struct pkt_view *v, uint32_t rkey, uint32_t len)
{
	assert_int_equal(rte_be_to_cpu_64(view_reth(v)->va), remote_addr(REMOTE));
	assert_int_equal(rte_be_to_cpu_32(view_reth(v)->rkey), rkey);
	assert_int_equal(rte_be_to_cpu_32(view_reth(v)->len), len);
}

/* Delivers request i, which is alone on a's wire. It must be answered and complete. */
static void
expect_done(unsigned i, enum ibv_wc_opcode opcode)
{
	struct cqe cqe;

	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	expect_response(&p.b, 0, ONLY, PSN_A + i, i + 1, 0);
	qp_link_drain(&p);
	assert_true(host_poll(&p.a, &p.a.send_cq, &cqe));
	assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	assert_int_equal(cqe.opcode, opcode);
	assert_int_equal(cqe.wr_id, i);
}

/* ---- ATOMIC_WRITE ---- */

TEST(atomic_write_stores_8_bytes)
{
	struct pkt_view v;

	init(4, 4);
	for (unsigned i = 0; i < 2; i++) {
		memset(p.b.mem + REMOTE - 8, 0x55, 24);
		bytes_fill(p.a.mem + 3, 8, i);
		post_atomic(i, 3, REMOTE, i == 0 ? IBV_SEND_SOLICITED : IBV_SEND_INLINE);
		host_pull(&p.a, PULL_ALL);
		expect_frame(&p.a, 0, OPCODE_RC_ATOMIC_WRITE, PSN_A + i, 1);
		v = wire_view(&p.a, 0);
		reth_check(&v, p.b.rkey, 8);
		assert_int_equal(v.payload_len, 8);
		assert_false(v.solicited);
		expect_done(i, IBV_WC_ATOMIC_WRITE);
		assert_true(bytes_match(p.b.mem + REMOTE, 8, i));
		assert_int_equal(p.b.mem[REMOTE - 1], 0x55);
		assert_int_equal(p.b.mem[REMOTE + 8], 0x55);
	}
	fini();
}

/* An ATOMIC_WRITE is executed once. A duplicate is acknowledged again. */
TEST(duplicate_atomic_write)
{
	init(4, 4);
	inject_atomic_write(PSN_A, remote_addr(REMOTE), p.b.rkey, 8, 8);
	expect_empty(PSN_A, 1);
	memset(p.b.mem + REMOTE, 0x11, 8);
	inject_atomic_write(PSN_A, remote_addr(REMOTE), p.b.rkey, 8, 8);
	expect_empty(PSN_A, 1);
	assert_int_equal(p.b.mem[REMOTE], 0x11);
	/* Another operation with that PSN does not match the responder resource. */
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_FETCH_ADD,
			     .psn = PSN_A,
			     .va = remote_addr(REMOTE),
			     .rkey = p.b.rkey});
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	assert_int_equal(p.b.qp.resp.msn, 1);
	fini();
}

TEST(invalid_atomic_write_is_refused)
{
	const struct {
		int64_t at;
		uint32_t dma_len, len;
		bool key;
		uint8_t syndrome;
		enum qp_vendor_err vendor;
	} rows[] = {
		{REMOTE + 1, 8, 8, true, AETH_NAK_INV_REQ, VENDOR_ALIGNMENT},
		{REMOTE + 4, 8, 8, true, AETH_NAK_INV_REQ, VENDOR_ALIGNMENT},
		{REMOTE, 4, 4, true, AETH_NAK_INV_REQ, VENDOR_PACKET_LENGTH},
		{REMOTE, 8, 4, true, AETH_NAK_INV_REQ, VENDOR_PACKET_LENGTH},
		{REMOTE, 8, 16, true, AETH_NAK_INV_REQ, VENDOR_PACKET_LENGTH},
		{REMOTE, 16, 8, true, AETH_NAK_INV_REQ, VENDOR_PACKET_LENGTH},
		{REMOTE, 0, 0, true, AETH_NAK_INV_REQ, VENDOR_PACKET_LENGTH},
		{REMOTE, 8, 8, false, AETH_NAK_ACCESS, VENDOR_RKEY},
		{-8, 8, 8, true, AETH_NAK_ACCESS, VENDOR_RKEY},
		{INT64_MIN, 8, 8, true, AETH_NAK_ACCESS, VENDOR_RKEY},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		init(4, 4);
		memset(p.b.mem + REMOTE, 0x11, 16);
		/* The flush key lacks REMOTE_WRITE. */
		inject_atomic_write(PSN_A, remote_addr(0) + (uint64_t)rows[i].at,
			rows[i].key ? p.b.rkey : flush_key, rows[i].dma_len, rows[i].len);
		host_pull(&p.b, PULL_ALL);
		expect_ack(&p.b, 0, rows[i].syndrome, PSN_A, 0);
		wire_drop_all(&p.b);
		expect_event(&p.b, rows[i].syndrome == AETH_NAK_ACCESS
					   ? IBV_EVENT_QP_ACCESS_ERR
					   : IBV_EVENT_QP_REQ_ERR);
		for (unsigned k = 0; k < 16; k++)
			assert_int_equal(p.b.mem[REMOTE + k], 0x11);
		fini();
	}
}

/* ---- FLUSH ---- */

TEST(flush_headers_and_response)
{
	static const uint32_t feths[] = {GLOBAL, GLOBAL | REGION};
	struct pkt_view v;

	init(4, 4);
	for (unsigned i = 0; i < RTE_DIM(feths); i++) {
		uint32_t feth;

		post_flush(i, feths[i], REMOTE, 30000);
		host_pull(&p.a, PULL_ALL);
		expect_frame(&p.a, 0, OPCODE_RC_FLUSH, PSN_A + i, 1);
		v = wire_view(&p.a, 0);
		memcpy(&feth, v.ext, 4);
		assert_int_equal(rte_be_to_cpu_32(feth), feths[i]);
		assert_ptr_equal(view_reth(&v), v.ext + 4);
		reth_check(&v, flush_key, 30000);
		assert_int_equal(v.payload_len, 0);
		expect_done(i, WC_FLUSH);
	}
	/* A duplicate is acknowledged again. */
	inject_flush(PSN_A, GLOBAL, remote_addr(REMOTE), flush_key, 30000);
	expect_empty(PSN_A, 2);
	fini();
}

TEST(invalid_flush_is_refused)
{
	const struct {
		uint32_t feth;
		int64_t at;
		uint32_t len;
		bool key; /* the key grants the right */
		uint8_t syndrome;
	} rows[] = {
		{GLOBAL, REMOTE, 0, false, 0}, /* names no memory */
		{GLOBAL | REGION, INT64_MIN, 5, true, 0},
		{GLOBAL | 0xFFFFFFC0, REMOTE, 8, true, 0}, /* reserved bits */
		{0, REMOTE, 8, true, AETH_NAK_INV_REQ},
		{PERSISTENT, REMOTE, 8, true, AETH_NAK_ACCESS},
		{GLOBAL | PERSISTENT, REMOTE, 8, true, AETH_NAK_ACCESS},
		{PERSISTENT, REMOTE, 0, true, AETH_NAK_ACCESS},
		{PERSISTENT | 4, REMOTE, 8, true, AETH_NAK_INV_REQ},
		{GLOBAL | 4, REMOTE, 8, true, AETH_NAK_INV_REQ},
		{GLOBAL | 2 << 4, REMOTE, 8, true, AETH_NAK_INV_REQ},
		{GLOBAL | 3 << 4, REMOTE, 8, true, AETH_NAK_INV_REQ},
		{GLOBAL, REMOTE, 8, false, AETH_NAK_ACCESS},
		{GLOBAL | REGION, REMOTE, 0, false, AETH_NAK_ACCESS},
		{GLOBAL, -1, 8, true, AETH_NAK_ACCESS},
		{GLOBAL, 0, UINT32_MAX, true, AETH_NAK_ACCESS},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		init(4, 4);
		inject_flush(PSN_A, rows[i].feth, remote_addr(0) + (uint64_t)rows[i].at,
			rows[i].key ? flush_key : plain_key, rows[i].len);
		if (rows[i].syndrome == 0) {
			expect_empty(PSN_A, 1);
			fini();
			continue;
		}
		host_pull(&p.b, PULL_ALL);
		expect_ack(&p.b, 0, rows[i].syndrome, PSN_A, 0);
		wire_drop_all(&p.b);
		expect_event(&p.b, rows[i].syndrome == AETH_NAK_ACCESS
					   ? IBV_EVENT_QP_ACCESS_ERR
					   : IBV_EVENT_QP_REQ_ERR);
		fini();
	}
}

/* The QP's access flags do not grant the operation. */
TEST(access_flags_are_required)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	for (unsigned i = 0; i < 2; i++) {
		conf.access = ~(unsigned)IBV_ACCESS_REMOTE_WRITE & ACCESS_REMOTE;
		qp_link_init(&p, &conf);
		keys_alloc(&conf);
		if (i == 0)
			inject_atomic_write(PSN_A, remote_addr(REMOTE), p.b.rkey, 8, 8);
		else
			inject_flush(PSN_A, GLOBAL, remote_addr(REMOTE), flush_key, 8);
		host_pull(&p.b, PULL_ALL);
		expect_ack(&p.b, 0, AETH_NAK_INV_REQ, PSN_A, 0);
		wire_drop_all(&p.b);
		expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
		fini();
	}
}

/* ---- Depth ---- */

/* The requester counts both against max_rd_atomic. With 0 they fail. */
TEST(requester_counts_both_operations)
{
	init(2, 2);
	post_atomic(1, 0, REMOTE, 0);
	post_flush(2, GLOBAL, REMOTE, 8);
	post_flush(3, GLOBAL, REMOTE, 8);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	qp_link_drain(&p);
	for (unsigned i = 1; i <= 3; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
	fini();
	init(0, 1);
	post_flush(1, GLOBAL, REMOTE, 8);
	qp_link_drain(&p);
	expect_sent_vendor(&p.a, 1, IBV_WC_LOC_QP_OP_ERR, VENDOR_DEPTH);
	fini();
}

/* A peer that does not count FLUSHes (rxe): a FLUSH without a free responder resource is
 * dropped as if lost, and so is a READ or atomic for which FLUSHes left none. Too many
 * READs are still an error. */
TEST(flush_beyond_depth_is_dropped)
{
	init(4, 2);
	for (uint32_t i = 0; i < 3; i++)
		inject_flush(PSN_A + i, GLOBAL, remote_addr(REMOTE), flush_key, 8);
	assert_int_equal(p.b.stats.drop[DROP_no_resource], 1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	wire_drop_all(&p.b);
	inject_flush(PSN_A + 2, GLOBAL, remote_addr(REMOTE), flush_key, 8);
	inject_atomic_write(PSN_A + 3, remote_addr(REMOTE), p.b.rkey, 8, 8);
	inject_atomic_write(PSN_A + 4, remote_addr(REMOTE), p.b.rkey, 8, 8);
	assert_int_equal(p.b.stats.drop[DROP_no_resource], 2);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_response(&p.b, 1, ONLY, PSN_A + 3, 4, 0);
	wire_drop_all(&p.b);
	for (uint32_t i = 0; i < 3; i++)
		inject_atomic_write(PSN_A + 4 + i, remote_addr(REMOTE), p.b.rkey, 8, 8);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
	host_pull(&p.b, PULL_ALL);
	wire_drop_all(&p.b);
	fini();
	init(0, 0);
	inject_flush(PSN_A, GLOBAL, remote_addr(REMOTE), flush_key, 8);
	expect_event(&p.b, IBV_EVENT_QP_REQ_ERR);
	host_pull(&p.b, PULL_ALL);
	wire_drop_all(&p.b);
	fini();
}

/* ---- Responses at the requester ---- */

TEST(wrong_response_fails)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
	} rows[] = {{ONLY, 8}, {OPCODE_RC_READ_RESPONSE_FIRST, 1024},
		{OPCODE_RC_READ_RESPONSE_LAST, 4}, {OPCODE_RC_ATOMIC_ACKNOWLEDGE, 0}};

	for (unsigned i = 0; i < 2 * RTE_DIM(rows); i++) {
		init(4, 4);
		if (i % 2 == 0)
			post_atomic(1, 0, REMOTE, 0);
		else
			post_flush(1, GLOBAL, REMOTE, 8);
		host_pull(&p.a, PULL_ALL);
		wire_drop_all(&p.a);
		inject(&p.a, &(struct pkt_spec){.opcode = rows[i / 2].opcode,
				     .psn = PSN_A,
				     .syndrome = AETH_ACK,
				     .payload_len = rows[i / 2].len});
		expect_sent_vendor(&p.a, 1, IBV_WC_BAD_RESP_ERR, VENDOR_RESPONSE);
		fini();
	}
}

/* Both are resent with the same PSN until their own response arrives. An ACK does not
 * complete them. */
TEST(resent_until_answered)
{
	init(4, 4);
	post_atomic(1, 0, REMOTE, 0);
	post_flush(2, GLOBAL, REMOTE, 8);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	host_pull(&p.b, PULL_ALL);
	wire_drop(&p.b, 0); /* the FLUSH's response is an implied NAK for it (C9-137) */
	wire_deliver_all(&p.b);
	expect_idle(&p.a);
	assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
	expect_frame(&p.a, 0, OPCODE_RC_ATOMIC_WRITE, PSN_A, 1);
	expect_frame(&p.a, 1, OPCODE_RC_FLUSH, PSN_A + 1, 1);
	qp_link_drain(&p);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(p.b.qp.resp.msn, 2);
	fini();
}
