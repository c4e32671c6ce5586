/* SPDX-License-Identifier: BSD-3-Clause */
/* Every remote operation with every kind of invalid key or range (row 14 of
 * docs/protocol.md 8.2; docs/protocol.md 14; C10-56): no byte outside of what was granted
 * is read or written. The key of a memory window is no L_Key. */
#include <string.h>

#include <rte_byteorder.h>

#include "qp_link.h"

static struct qp_link p;

#define OFFSET 0x8000 /* of the region in b's memory */
#define LEN 64
#define ACCESS_FLUSH (1u << 8)
#define ALL (ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | ACCESS_FLUSH)
#define PD_OTHER 77
#define FETH_GLOBAL 1

static const struct operation {
	uint8_t opcode;
	uint32_t dma_len; /* 0: an atomic, 8 bytes */
	uint32_t payload_len;
	unsigned right;
} operations[] = {
	{OPCODE_RC_WRITE_ONLY, 16, 16, IBV_ACCESS_REMOTE_WRITE},
	{OPCODE_RC_WRITE_FIRST, 2000, 1024, IBV_ACCESS_REMOTE_WRITE},
	{OPCODE_RC_WRITE_ONLY_IMM, 16, 16, IBV_ACCESS_REMOTE_WRITE},
	{OPCODE_RC_READ_REQUEST, 16, 0, IBV_ACCESS_REMOTE_READ},
	{OPCODE_RC_READ_REQUEST, 5000, 0, IBV_ACCESS_REMOTE_READ},
	{OPCODE_RC_COMPARE_SWAP, 0, 0, IBV_ACCESS_REMOTE_ATOMIC},
	{OPCODE_RC_FETCH_ADD, 0, 0, IBV_ACCESS_REMOTE_ATOMIC},
	{OPCODE_RC_ATOMIC_WRITE, 8, 8, IBV_ACCESS_REMOTE_WRITE},
	{OPCODE_RC_FLUSH, 16, 0, ACCESS_FLUSH},
};

enum wrong {
	NOTHING,
	FREED,
	VARIANT,
	INDEX_0,
	INDEX_FRESH,
	INDEX_HUGE,
	OTHER_PD,
	NO_RIGHT,
	LOCAL_ONLY,
	BELOW,
	BEYOND,
	BEHIND,
	WRAPS, /* around 2^64 */
	TOP,
	MEMORY_INVALIDATED,
	WINDOW_UNBOUND,
	WINDOW_OTHER_QP,
	WINDOW_NO_RIGHT,
	WINDOW_BEYOND,
	WINDOW_GONE,
	WRONGS
};

static uint32_t region;
static struct mw *mw;

static uint32_t
len_of(const struct operation *op)
{
	return op->dma_len != 0 ? op->dma_len : 8;
}

static uint32_t
key_new(uint32_t pd, uint32_t len, unsigned access)
{
	uint32_t key;

	assert_int_equal(key_alloc(&p.b.keys, pd, (uintptr_t)p.b.mem + OFFSET,
				 p.b.mem + OFFSET, len, access, &key),
		0);
	return key;
}

static uint32_t
mw_bound(uint32_t qpn, uint32_t len, unsigned access)
{
	struct mw_bind bind = {mw->rkey, region, (uintptr_t)p.b.mem + OFFSET, len,
		access & ACCESS_REMOTE};

	assert_int_equal(
		mw_bind(&p.b.keys, p.b.qp.pd, qpn, &p.b.qp.sq.bound_mws, &bind), 0);
	return mw->rkey;
}

/* Returns an rkey. As `wrong` says, it, its entry or *va is invalid. */
static uint32_t
key_make(enum wrong wrong, const struct operation *op, uint64_t *va)
{
	uint32_t len = len_of(op), key;

	region = key_new(wrong == OTHER_PD ? PD_OTHER : p.b.qp.pd, len,
		wrong == NO_RIGHT     ? (ALL & ~op->right)
		: wrong == LOCAL_ONLY ? (unsigned)IBV_ACCESS_LOCAL_WRITE
				      : ALL);
	mw = host_mw(&p.b, true);
	key = region;
	switch (wrong) {
	case FREED:
		assert_int_equal(key_free(&p.b.keys, region), 0);
		region = key_new(p.b.qp.pd, 1, 0);
		break;
	case VARIANT:
		return (key & ~0xFFu) | (uint8_t)(key + 1);
	case INDEX_0:
		return key & 0xFF;
	case INDEX_FRESH:
		return key + (100u << 8);
	case INDEX_HUGE:
		return UINT32_MAX;
	case BELOW:
		*va -= 8;
		break;
	case BEYOND:
		*va += 8;
		break;
	case BEHIND:
		*va += len;
		break;
	case WRAPS:
		*va = UINT64_MAX - 7;
		break;
	case TOP:
		*va += UINT64_C(1) << 63;
		break;
	case MEMORY_INVALIDATED:
		assert_true(key_invalidate_at(&p.b.keys, p.b.mem + OFFSET + len - 1));
		/* The invalidation affects the fixture's own keys of that memory, too. */
		break;
	case WINDOW_UNBOUND:
		return mw->rkey;
	case WINDOW_OTHER_QP:
		return mw_bound(p.b.qp.qpn + 1, len, ALL);
	case WINDOW_NO_RIGHT:
		return mw_bound(p.b.qp.qpn, len, ALL & ~op->right);
	case WINDOW_BEYOND:
		key = mw_bound(p.b.qp.qpn, len - 1, ALL);
		break;
	case WINDOW_GONE:
		key = mw_bound(p.b.qp.qpn, len, ALL);
		assert_int_equal(mw_invalidate(&p.b.keys, p.b.qp.qpn, key), 0);
		break;
	default:
		break;
	}
	return key;
}

static void
operation_run(const struct operation *op, enum wrong wrong)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	uint64_t va;
	uint32_t key;

	conf.access |= ACCESS_FLUSH;
	qp_link_init(&p, &conf);
	bytes_fill(p.b.mem, conf.mem_bytes, 5);
	va = (uintptr_t)p.b.mem + OFFSET;
	key = key_make(wrong, op, &va);
	if (op->opcode == OPCODE_RC_WRITE_ONLY_IMM)
		host_recv(&p.b, 1, 0, 64);
	inject(&p.b, &(struct pkt_spec){.opcode = op->opcode,
			     .psn = PSN_A,
			     .ack_req = true,
			     .va = va,
			     .rkey = key,
			     .dma_len = op->dma_len,
			     .payload_len = op->payload_len,
			     .payload_key = 9,
			     .imm = rte_cpu_to_be_32(FETH_GLOBAL),
			     .swap_add = 1,
			     .compare = *(uint64_t *)(void *)(p.b.mem + OFFSET)});
	host_pull(&p.b, PULL_ALL);
	if (wrong == NOTHING) {
		struct pkt_view v = wire_view(&p.b, 0);

		assert_true(v.op->kind != OP_ACK || view_aeth(&v)->syndrome == AETH_ACK);
		assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
		assert_int_equal(bytes_match(p.b.mem, conf.mem_bytes, 5),
			op->right == IBV_ACCESS_REMOTE_READ || op->right == ACCESS_FLUSH);
		if (op->opcode == OPCODE_RC_WRITE_ONLY_IMM)
			expect_received(&p.b, 1, 16);
	} else {
		assert_int_equal(p.b.wire_count, 1);
		expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A, 0);
		assert_true(bytes_match(p.b.mem, conf.mem_bytes, 5));
		if (op->opcode == OPCODE_RC_WRITE_ONLY_IMM) /* IBA 11.6.2 */
			expect_recv_error(&p.b, 1, IBV_WC_LOC_ACCESS_ERR, VENDOR_RKEY);
		else
			expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	}
	wire_drop_all(&p.b);
	mw_destroy(&p.b.keys, mw);
	assert_int_equal(key_free(&p.b.keys, region), 0);
	qp_link_fini(&p);
}

TEST(each_operation_with_each_invalid_key)
{
	for (unsigned i = 0; i < RTE_DIM(operations); i++) {
		for (int wrong = NOTHING; wrong < WRONGS; wrong++) {
			/* A memory window cannot grant flushing. */
			if (wrong == WINDOW_NO_RIGHT &&
				operations[i].right == ACCESS_FLUSH)
				continue;
			operation_run(&operations[i], (enum wrong)wrong);
		}
	}
}

/* The key of a memory window is for peers. Local requests can neither send from it nor
 * receive into it. */
TEST(mw_key_is_no_lkey)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct sge sge;
	struct send_req req = {.wr_id = 1, .sge = &sge, .num_sge = 1};

	for (unsigned i = 0; i < 2; i++) {
		qp_link_init(&p, &conf);
		region = key_new(p.b.qp.pd, LEN, ALL);
		mw = host_mw(&p.b, true);
		sge = host_sge(&p.b, OFFSET, LEN);
		sge.lkey = mw_bound(p.b.qp.qpn, LEN, ALL);
		memset(p.b.mem + OFFSET, 0x11, LEN);
		if (i == 0) {
			assert_int_equal(host_post_send(&p.b, &req), 0);
			assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
			expect_sent_vendor(&p.b, 1, IBV_WC_LOC_PROT_ERR, VENDOR_SEND_SGE);
		} else {
			assert_int_equal(host_post_recv(&p.b, 1, &sge, 1), 0);
			host_send(&p.a, 2, 0, LEN, IBV_SEND_SIGNALED);
			qp_link_drain(&p);
			expect_recv_error(&p.b, 1, IBV_WC_LOC_PROT_ERR, VENDOR_RECV_SGE);
			expect_sent(&p.a, 2, IBV_WC_REM_OP_ERR);
			assert_int_equal(p.b.mem[OFFSET], 0x11);
		}
		mw_destroy(&p.b.keys, mw);
		assert_int_equal(key_free(&p.b.keys, region), 0);
		qp_link_fini(&p);
	}
}
