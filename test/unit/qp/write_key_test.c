/* SPDX-License-Identifier: BSD-3-Clause */
/* The R_Key of a WRITE at the responder (IBA 9.7.4.1.5). */
#include "write_fixture.h"

enum key_kind {
	KEY_STALE,     /* the variant of an earlier registration */
	KEY_NONE,      /* an index that was never allocated */
	KEY_FREED,     /* freed */
	KEY_OTHER_PD,  /* another protection domain's */
	KEY_LOCAL,     /* without remote access */
	KEY_READ_ONLY, /* remote read and atomic only */
	KEY_BEFORE,    /* a byte before the region */
	KEY_BEHIND,    /* a byte behind it */
	KEY_ENTIRE,    /* longer than the region */
	KEY_WRAP,      /* beyond 2^64 */
	KEY_KINDS,
};

/* Returns an rkey for mem[REMOTE, REMOTE + 2048), or a wrong one; *va is moved for a
 * wrong range. The caller frees *owned. */
static uint32_t
key_make(enum key_kind kind, uint64_t *va, uint32_t *owned)
{
	unsigned access = IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE;
	uint8_t *at = p.b.mem + REMOTE;
	uint32_t len = kind == KEY_ENTIRE ? 1999 : 2048, pd = p.b.qp.pd;

	if (kind == KEY_OTHER_PD)
		pd++;
	if (kind == KEY_LOCAL)
		access = IBV_ACCESS_LOCAL_WRITE;
	if (kind == KEY_READ_ONLY)
		access &= ~(unsigned)IBV_ACCESS_REMOTE_WRITE;
	if (kind == KEY_WRAP) /* the region itself ends at 2^64 */
		*va = UINT64_MAX - 2047;
	assert_int_equal(key_alloc(&p.b.keys, pd, *va, at, len, access, owned), 0);
	switch (kind) {
	case KEY_STALE:
		return *owned ^ 1;
	case KEY_NONE:
		return 0xABCDE00;
	case KEY_FREED:
		assert_int_equal(key_free(&p.b.keys, *owned), 0);
		return *owned;
	case KEY_BEFORE:
		*va -= 1;
		break;
	case KEY_BEHIND:
		*va += 49;
		break;
	case KEY_WRAP:
		*va += 49;
		break;
	default:
		break;
	}
	return *owned;
}

static void
key_run(enum key_kind kind, const struct write_packet *packet)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	uint32_t key, owned;
	uint64_t va;

	qp_link_init(&p, &conf);
	host_recv(&p.b, 1, 0, 16);
	write_target_clear(4096);
	va = (uintptr_t)p.b.mem + REMOTE;
	key = key_make(kind, &va, &owned);
	inject_write(packet, PSN_A, key, va);
	write_expect_ack(AETH_NAK_ACCESS, PSN_A, 0);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	if (packet->opcode == OPCODE_RC_WRITE_ONLY_IMM) { /* IBA 11.6.2 */
		expect_recv_error(&p.b, 1, IBV_WC_LOC_ACCESS_ERR, VENDOR_RKEY);
	} else {
		expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
		expect_recv_error(&p.b, 1, IBV_WC_WR_FLUSH_ERR, VENDOR_FLUSHED);
	}
	expect_untouched(REMOTE - GUARD, 4096 + 2 * GUARD);
	(void)key_free(&p.b.keys, owned);
	qp_link_fini(&p);
}

/* Row 14 of docs/protocol.md 8.2: the first packet is checked for the range of the whole
 * message. Each invalid key: NAK 0x62, the event, the receives are flushed, no byte is written. The
 * receive of an immediate reports the error in place of the event. */
TEST(invalid_rkey_is_refused)
{
	static const struct write_packet packets[] = {
		{OPCODE_RC_WRITE_FIRST, 1024, 2000},
		{OPCODE_RC_WRITE_FIRST, 1024, 2048 + 1024},
	};

	for (unsigned kind = 0; kind < KEY_KINDS; kind++)
		key_run(kind, &packets[0]);
	key_run(KEY_ENTIRE, &packets[1]);
	for (unsigned kind = 0; kind < KEY_KINDS; kind++) {
		/* A WRITE of one packet. */
		struct write_packet only = {OPCODE_RC_WRITE_ONLY, 1000, 1000};

		if (kind < KEY_BEHIND)
			key_run(kind, &only);
		only.opcode = OPCODE_RC_WRITE_ONLY_IMM;
		if (kind < KEY_BEHIND)
			key_run(kind, &only);
	}
}

/* A WRITE with immediate and an invalid key that finds no receive is refused at once. */
TEST(invalid_rkey_without_receive)
{
	static const struct write_packet only = {OPCODE_RC_WRITE_ONLY_IMM, 1000, 1000};
	struct qp_link_conf conf = qp_link_defaults_rdma();

	qp_link_init(&p, &conf);
	write_target_clear(1000);
	inject_write(&only, PSN_A, 0xABCDE00, (uintptr_t)p.b.mem + REMOTE);
	write_expect_ack(AETH_NAK_ACCESS, PSN_A, 0);
	assert_int_equal(p.b.qp.state, IBV_QPS_ERR);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	qp_link_fini(&p);
}

/* The last byte of the region, and of the address space, can be written. */
TEST(last_byte_can_be_written)
{
	static const struct write_packet whole = {OPCODE_RC_WRITE_ONLY, 1000, 1000};
	struct qp_link_conf conf = qp_link_defaults_rdma();
	uint64_t va = UINT64_MAX - 999;
	uint32_t key;

	qp_link_init(&p, &conf);
	write_target_clear(2000);
	assert_int_equal(key_alloc(&p.b.keys, p.b.qp.pd, va, p.b.mem + REMOTE, 1000,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &key),
		0);
	inject_write(&whole, PSN_A, key, va);
	write_expect_ack(AETH_ACK, PSN_A, 1);
	expect_written(1000, 0);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	key = host_key(&p.b, REMOTE, 1000, IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE);
	inject_write(&whole, PSN_A + 1, key, (uintptr_t)p.b.mem + REMOTE);
	write_expect_ack(AETH_ACK, PSN_A + 1, 2);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	qp_link_fini(&p);
}

/* The region is deregistered in the middle of a message: written bytes stay, the next
 * packet is refused, and the requester completes with the error. */
TEST(region_freed_during_message)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();
	struct send_req req;
	struct sge sge;
	uint32_t key;

	qp_link_init(&p, &conf);
	write_target_clear(4096);
	bytes_fill(p.a.mem, 3000, 5);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE);
	req = host_rdma(&p.a, &sge, 1, WR_RDMA_WRITE, 0, REMOTE, 3000);
	req.rkey = key;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	host_write(&p.a, 2, 0, REMOTE, 8);
	host_pull(&p.a, PULL_ALL);
	wire_deliver(&p.a, 0);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	wire_deliver_all(&p.a);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	assert_true(bytes_match(p.b.mem + REMOTE, 1024, 5));
	expect_untouched(REMOTE + 1024, 3000);
	qp_link_drain(&p);
	expect_sent_vendor(&p.a, 1, IBV_WC_REM_ACCESS_ERR, VENDOR_REMOTE_NAK);
	expect_sent(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
	qp_link_fini(&p);
}
