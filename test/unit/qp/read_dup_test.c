/* SPDX-License-Identifier: BSD-3-Clause */
/* READs that are asked for again, and READ responses that are lost (sections 7 and 8,
 * "Duplicates"; IBA 9.7.5.1.2, C9-150). */
#include <endian.h>
#include <string.h>

#include "qp_pair.h"

static struct pair p;

#define REMOTE 0x8000
#define FIRST OPCODE_RC_READ_RESPONSE_FIRST
#define MIDDLE OPCODE_RC_READ_RESPONSE_MIDDLE
#define LAST OPCODE_RC_READ_RESPONSE_LAST
#define ONLY OPCODE_RC_READ_RESPONSE_ONLY

static void
init(uint8_t depth)
{
	struct pair_conf conf = pair_defaults_rdma();

	conf.max_rd = conf.max_dest_rd = depth;
	pair_init(&p, &conf);
	bytes_fill(p.b.mem + REMOTE, 0x8000, 1);
	for (unsigned i = 0; i < 8; i++)
		host_recv(&p.b, i, 0x1000, 8);
}

static void
reset_all(void)
{
	struct cqe cqe;

	while (host_poll(&p.b, &p.b.recv_cq, &cqe))
		;
	wire_drop_all(&p.a);
	wire_drop_all(&p.b);
	assert_int_equal(host_modify(&p.a, IBV_QPS_RESET), 0);
	assert_int_equal(host_modify(&p.b, IBV_QPS_RESET), 0);
	pair_fini(&p);
}

static void
hand_read_key(uint32_t psn, uint32_t offset, uint32_t len, uint32_t rkey)
{
	inject(&p.b, &(struct crafted){.opcode = OPCODE_RC_READ_REQUEST,
			     .psn = psn,
			     .ack_req = true,
			     .va = (uintptr_t)p.b.mem + REMOTE + offset,
			     .rkey = rkey,
			     .dma_len = len});
}

static void
hand_read(uint32_t psn, uint32_t offset, uint32_t len)
{
	hand_read_key(psn, offset, len, p.b.rkey);
}

static void
hand_send(uint32_t psn)
{
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, psn, 8);
}

/* b answers with these and no more; bytes: where in the target area they are from. */
static void
expect_responses(const uint8_t *opcodes, unsigned n, uint32_t psn, uint32_t msn,
	uint32_t offset, uint32_t len)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t part = RTE_MIN(len, 1024u);
		struct pkt_view v = wire_view(&p.b, i);

		expect_response(&p.b, i, opcodes[i], psn + i, msn, part);
		assert_memory_equal(v.payload, p.b.mem + REMOTE + offset, part);
		offset += part;
		len -= part;
	}
	wire_drop_all(&p.b);
}

#define expect_read(psn, msn, offset, len, ...)                                          \
	do {                                                                             \
		const uint8_t ops[] = {__VA_ARGS__};                                     \
		expect_responses(ops, RTE_DIM(ops), psn, msn, offset, len);              \
	} while (0)

static void
expect_one_ack(uint32_t psn, uint32_t msn)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_ACK, psn, msn);
	wire_drop_all(&p.b);
}

#define expect_silence() assert_int_equal(host_pull(&p.b, PULL_ALL), 0)

/* "Must match an entry (same R_Key, range inside the original). Re-execute from memory
 * for the requested part"; the current MSN; ePSN and MSN stand. */
static void
test_parts(void **state)
{
	(void)state;
	init(4);
	hand_read(PSN_A, 0, 3000);
	expect_read(PSN_A, 1, 0, 3000, FIRST, MIDDLE, LAST);
	hand_send(PSN_A + 3);
	expect_one_ack(PSN_A + 3, 2);
	hand_read(PSN_A, 0, 3000);
	expect_read(PSN_A, 2, 0, 3000, FIRST, MIDDLE, LAST);
	hand_read(PSN_A + 1, 1024, 1976);
	expect_read(PSN_A + 1, 2, 1024, 1976, FIRST, LAST);
	hand_read(PSN_A + 2, 2048, 952);
	expect_read(PSN_A + 2, 2, 2048, 952, ONLY);
	hand_read(PSN_A, 0, 100); /* exactly as much as asked for */
	expect_read(PSN_A, 2, 0, 100, ONLY);
	hand_read(PSN_A + 1, 1024, 1025);
	expect_read(PSN_A + 1, 2, 1024, 1025, FIRST, LAST);
	hand_read(PSN_A, 0, 3000); /* and the whole again */
	p.b.mem[REMOTE] ^= 0xFF;   /* memory as it is now */
	expect_read(PSN_A, 2, 0, 3000, FIRST, MIDDLE, LAST);
	hand_read(PSN_A + 1, 1024, 0);
	expect_read(PSN_A + 1, 2, 1024, 0, ONLY);
	assert_int_equal(p.b.qp.resp.epsn, PSN_A + 4);
	assert_int_equal(p.b.stats.duplicates, 7);
	reset_all();
}

/* "No matching resource entry: drop silently." */
static void
test_no_match(void **state)
{
	uint32_t key;

	(void)state;
	init(2);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	hand_send(PSN_A);
	hand_read(PSN_A + 1, 0, 3000);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	hand_read(PSN_A + 1, 64, 100); /* another address */
	hand_read(PSN_A + 1, 0, 3001); /* longer */
	hand_read(PSN_A + 1, 0, 0xFFFFFFFF);
	hand_read(PSN_A + 2, 1024, 1977);
	hand_read(PSN_A + 2, 0, 1000);
	hand_read_key(PSN_A + 1, 0, 3000, key); /* another rkey */
	hand_read(PSN_A, 0, 8);                 /* the PSN of a SEND */
	inject(&p.b, &(struct crafted){.opcode = OPCODE_RC_FETCH_ADD,
			     .psn = PSN_A + 1,
			     .va = (uintptr_t)p.b.mem + REMOTE,
			     .rkey = p.b.rkey,
			     .swap_add = 1});
	expect_silence();
	assert_true(bytes_match(p.b.mem + REMOTE, 8, 1)); /* the atomic did not run */
	/* Two READs later it is forgotten. */
	hand_read(PSN_A + 4, 0, 8);
	expect_read(PSN_A + 4, 3, 0, 8, ONLY);
	hand_read(PSN_A + 1, 0, 3000);
	expect_read(PSN_A + 1, 3, 0, 3000, FIRST, MIDDLE, LAST);
	hand_read(PSN_A + 5, 0, 8);
	expect_read(PSN_A + 5, 4, 0, 8, ONLY);
	hand_read(PSN_A + 1, 0, 3000);
	expect_silence();
	assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
	expect_received(&p.b, 0, 8);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	reset_all();
}

/* "R_Key is validated again": gone since, so NAK 0x62 with the PSN of the repetition. But
 * a late copy of a READ that was answered is nobody's fault: the connection stands. */
static void
test_key_gone(void **state)
{
	uint32_t key;

	(void)state;
	init(2);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	hand_read_key(PSN_A, 0, 3000, key);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	hand_read_key(PSN_A + 1, 1024, 1976, key);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A + 1, 1);
	assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
	wire_drop_all(&p.b);
	hand_read(PSN_A + 3, 0, 8);
	expect_read(PSN_A + 3, 2, 0, 8, ONLY);
	reset_all();
}

/* One that has not been answered whole is another matter. */
static void
test_key_gone_halfway(void **state)
{
	uint32_t key;

	(void)state;
	init(2);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	hand_read_key(PSN_A, 0, 3000, key);
	assert_int_equal(host_pull(&p.b, 1), 1);
	wire_drop_all(&p.b);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A + 1, 1);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	reset_all();
}

/* Those behind are not repeated unless asked for: one doubled packet must not bring a
 * flood. All asked for again: all answered, in PSN order, whatever the order they come.
 */
static void
test_several(void **state)
{
	(void)state;
	init(4);
	for (unsigned i = 0; i < 4; i++)
		hand_read(PSN_A + i, 100 * i, 10);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	wire_drop_all(&p.b);
	hand_read(PSN_A, 0, 10);
	expect_read(PSN_A, 4, 0, 10, ONLY);
	hand_read(PSN_A + 3, 300, 10);
	hand_read(PSN_A + 1, 100, 10);
	hand_read(PSN_A + 1, 100, 10); /* is under way */
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_response(&p.b, 0, ONLY, PSN_A + 1, 4, 10);
	expect_response(&p.b, 1, ONLY, PSN_A + 3, 4, 10);
	wire_drop_all(&p.b);
	reset_all();
}

/* While a response is under way: the same again changes nothing; an earlier part starts
 * over; a new READ queues behind. */
static void
test_under_way(void **state)
{
	(void)state;
	init(2);
	hand_read(PSN_A, 0, 5000);
	assert_int_equal(host_pull(&p.b, 2), 2);
	hand_read(PSN_A + 3, 3072, 5000 - 3072);
	assert_int_equal(host_pull(&p.b, 1), 1);
	expect_response(&p.b, 2, MIDDLE, PSN_A + 2, 1, 1024);
	wire_drop_all(&p.b);
	hand_read(PSN_A + 1, 1024, 5000 - 1024);
	hand_read(PSN_A + 5, 0, 8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 5);
	expect_response(&p.b, 0, FIRST, PSN_A + 1, 1, 1024);
	expect_response(&p.b, 3, LAST, PSN_A + 4, 1, 5000 - 4096);
	expect_response(&p.b, 4, ONLY, PSN_A + 5, 2, 8);
	wire_drop_all(&p.b);
	/* One that was begun behind it begins anew. */
	hand_read(PSN_A + 6, 0, 3000);
	assert_int_equal(host_pull(&p.b, 1), 1);
	hand_read(PSN_A + 5, 0, 8);
	wire_drop_all(&p.b);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	expect_response(&p.b, 0, ONLY, PSN_A + 5, 3, 8);
	expect_response(&p.b, 1, FIRST, PSN_A + 6, 3, 1024);
	wire_drop_all(&p.b);
	reset_all();
}

/* Issue: SEND + READ, both replies lost, SEND repeated: its ACK names at most the PSN
 * before the READ, which rxe would complete by it. Behind the READ: the last executed. */
static void
test_ack_limit(void **state)
{
	(void)state;
	init(4);
	host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	host_read(&p.a, 2, 0x2000, REMOTE, 8);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1); /* the READ's speaks for both */
	wire_drop_all(&p.b);
	pair_advance(&p, 68 * NS_PER_MS);
	host_pull(&p.a, PULL_ALL);
	wire_deliver(&p.a, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A, 2);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_quiet(&p.a); /* not the READ */
	pair_settle(&p);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem + 0x2000, p.b.mem + REMOTE, 8);
	expect_received(&p.b, 0, 8);
	/* SEND READ SEND SEND READ SEND: limits between. */
	for (unsigned i = 0; i < 6; i++) {
		if (i % 3 == 1)
			hand_read(PSN_A + 2 + i, 0, 8);
		else
			hand_send(PSN_A + 2 + i);
	}
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	hand_send(PSN_A + 2);
	expect_one_ack(PSN_A + 2, 8);
	hand_send(PSN_A + 4);
	expect_one_ack(PSN_A + 5, 8);
	hand_send(PSN_A + 5);
	expect_one_ack(PSN_A + 5, 8);
	hand_send(PSN_A + 7);
	expect_one_ack(PSN_A + 7, 8);
	reset_all();
}

/* A duplicate SEND neither takes away nor lowers an acknowledgement that is owed already,
 * and neither does a doubled READ. */
static void
test_owed_stays(void **state)
{
	(void)state;
	init(4);
	hand_send(PSN_A);
	expect_one_ack(PSN_A, 1);
	hand_read(PSN_A + 1, 0, 3000);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	hand_send(PSN_A + 4);
	hand_send(PSN_A); /* its own limit would be PSN_A */
	expect_one_ack(PSN_A + 4, 3);
	hand_read(PSN_A + 5, 0, 3000);
	hand_send(PSN_A + 8);
	hand_read(PSN_A + 5, 0, 3000);
	hand_send(PSN_A + 4);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	expect_frame(&p.b, 2, LAST, PSN_A + 7, 0);
	expect_ack(&p.b, 3, AETH_ACK, PSN_A + 8, 5);
	reset_all();
}

/* READ and SEND resent together: the SEND's acknowledgement follows the response; a peer
 * that got none would wait for its timeout. */
static void
test_send_behind_replay(void **state)
{
	(void)state;
	init(4);
	hand_send(PSN_A);
	hand_read(PSN_A + 1, 0, 3000);
	hand_send(PSN_A + 4);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	wire_drop_all(&p.b);
	hand_send(PSN_A); /* the response will say so */
	hand_read(PSN_A + 1, 0, 3000);
	hand_send(PSN_A);
	hand_send(PSN_A + 4);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	expect_response(&p.b, 0, FIRST, PSN_A + 1, 3, 1024);
	expect_ack(&p.b, 3, AETH_ACK, PSN_A + 4, 3);
	reset_all();
}

/* ---- Loss ---- */

static void
finish(unsigned from, unsigned end)
{
	pair_settle(&p);
	for (unsigned i = 0; i < 3 && p.a.qp.req.una_idx != end; i++) {
		pair_advance(&p, 70 * NS_PER_MS);
		pair_settle(&p);
	}
	for (unsigned i = from; i < end; i++)
		expect_sent(&p.a, i, IBV_WC_SUCCESS);
}

/* Every frame of READ 3000, SEND, READ 100 lost once, in either direction: the data and
 * the order come right, and each is executed once. */
static void
test_each_lost(void **state)
{
	(void)state;
	for (unsigned lost = 0; lost < 8; lost++) {
		bool request = lost < 3;

		init(4);
		memset(p.a.mem, 0, 0x4000);
		host_read(&p.a, 0, 0, REMOTE, 3000);
		host_send(&p.a, 1, 0x7000, 8, IBV_SEND_SIGNALED);
		host_read(&p.a, 2, 0x1000, REMOTE + 5000, 100);
		assert_int_equal(host_pull(&p.a, PULL_ALL), 3);
		if (request)
			wire_drop(&p.a, lost);
		wire_deliver_all(&p.a);
		if (!request) {
			/* Three of the first, the ACK swallowed by the second READ's. */
			assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
			if (lost - 3 < 4)
				wire_drop(&p.b, lost - 3);
			else
				wire_drop_all(&p.b);
		}
		finish(0, 3);
		assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 3000);
		assert_int_equal(p.a.mem[3000], 0);
		assert_memory_equal(p.a.mem + 0x1000, p.b.mem + REMOTE + 5000, 100);
		expect_received(&p.b, 0, 8);
		assert_int_equal(p.b.qp.resp.msn, 3);
		expect_quiet(&p.b);
		reset_all();
	}
}

/* "A READ is resent with the PSN of the first missing response, address + received bytes,
 * length - received bytes" [cap 59], once for a loss; then FIRST (IBA) or MIDDLE (rxe) is
 * taken. */
static void
test_resume(void **state)
{
	(void)state;
	for (int rxe = 0; rxe < 2; rxe++) {
		struct pkt_view v;

		init(4);
		host_read(&p.a, 0, 0, REMOTE, 5000);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		assert_int_equal(host_pull(&p.b, PULL_ALL), 5);
		wire_drop(&p.b, 2);
		wire_deliver(&p.b, 0);
		wire_deliver(&p.b, 0);
		wire_deliver(&p.b, 0); /* the gap shows */
		wire_deliver(&p.b, 0); /* an echo of it */
		assert_int_equal(host_pull(&p.a, PULL_ALL), 1);
		assert_int_equal(p.a.qp.req.retry_left, 6); /* "implied NAK": charged */
		expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, PSN_A + 2, 1);
		v = wire_view(&p.a, 0);
		assert_int_equal(
			be64toh(view_reth(&v)->va), (uintptr_t)p.b.mem + REMOTE + 2048);
		assert_int_equal(be32toh(view_reth(&v)->len), 5000 - 2048);
		wire_drop_all(&p.a);
		for (unsigned i = 2; i < 5; i++) {
			uint8_t op = i == 4 ? LAST : i == 2 && !rxe ? FIRST : MIDDLE;

			inject(&p.a, &(struct crafted){.opcode = op,
					     .psn = PSN_A + i,
					     .payload_len = i == 4 ? 904 : 1024,
					     .payload_key = i});
		}
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		assert_int_equal(p.a.qp.req.retry_left, 7);
		assert_memory_equal(p.a.mem, p.b.mem + REMOTE, 2048);
		assert_true(bytes_match(p.a.mem + 2048, 1024, 2));
		assert_true(bytes_match(p.a.mem + 4096, 904, 4));
		reset_all();
	}
}

/* Only where it was asked for again may a response start anew: not at the next one, and
 * not after an acknowledgement moved on. */
static void
test_no_restart_elsewhere(void **state)
{
	(void)state;
	init(4);
	host_send(&p.a, 0, 0, 8, 0);
	host_read(&p.a, 1, 0, REMOTE, 3000);
	host_pull(&p.a, PULL_ALL);
	pair_advance(&p, 68 * NS_PER_MS);
	wire_drop_all(&p.a);
	host_pull(&p.a, PULL_ALL);
	wire_drop_all(&p.a);
	inject_ack(&p.a, AETH_ACK, PSN_A);
	inject(&p.a, &(struct crafted){
			     .opcode = MIDDLE, .psn = PSN_A + 1, .payload_len = 1024});
	expect_sent(&p.a, 1, IBV_WC_BAD_RESP_ERR);
	reset_all();
}

/* "If a READ/ATOMIC with PSN <= p lacks its response, it is an implied NAK: resend from
 * that request" [cap 60, d16, d17], for its own PSN, one inside, and one behind. */
static void
test_implied_nak(void **state)
{
	(void)state;
	for (unsigned at = 0; at < 5; at++) {
		init(4);
		host_send(&p.a, 0, 0, 8, IBV_SEND_SIGNALED);
		host_read(&p.a, 1, 0x2000, REMOTE, 3000);
		host_send(&p.a, 2, 0, 8, IBV_SEND_SIGNALED);
		host_pull(&p.a, PULL_ALL);
		wire_deliver_all(&p.a);
		host_pull(&p.b, PULL_ALL);
		wire_drop_all(&p.b);
		inject_ack(&p.a, AETH_ACK, PSN_A + at);
		expect_sent(&p.a, 0, IBV_WC_SUCCESS);
		expect_quiet(&p.a);
		if (at == 0) { /* before it: no NAK */
			assert_int_equal(host_pull(&p.a, PULL_ALL), 0);
		} else {
			inject_ack(&p.a, AETH_ACK, PSN_A + at); /* once for a loss */
			assert_int_equal(host_pull(&p.a, PULL_ALL), 2);
			expect_frame(&p.a, 0, OPCODE_RC_READ_REQUEST, PSN_A + 1, 1);
			assert_int_equal(p.a.qp.req.retry_left, 6);
		}
		finish(1, 3);
		assert_memory_equal(p.a.mem + 0x2000, p.b.mem + REMOTE, 3000);
		reset_all();
	}
}

/* ---- Indices and PSNs that come round ---- */

/* The ring of any size when its free-running index passes 2^32: every READ is answered,
 * and the last ones are answered again. */
static void
test_index_wrap(void **state)
{
	(void)state;
	for (uint8_t depth = 1; depth <= QP_MAX_RD_ATOMIC; depth++) {
		struct responder *resp;

		init(depth);
		resp = &p.b.qp.resp;
		resp->job_end = resp->job_next = resp->job_done = UINT32_MAX - 20;
		for (unsigned i = 0; i < 48; i += depth) {
			for (unsigned k = 0; k < depth; k++)
				hand_read(PSN_A + i + k, 16 * (i + k), 16);
			assert_int_equal(host_pull(&p.b, PULL_ALL), depth);
			wire_drop_all(&p.b);
			for (unsigned k = 0; k < depth; k++) {
				hand_read(PSN_A + i + k, 16 * (i + k), 16);
				expect_read(
					PSN_A + i + k, i + depth, 16 * (i + k), 16, ONLY);
			}
		}
		assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
		reset_all();
	}
}

/* A READ of 2^24 packets ago has PSNs that mean something else now: it is forgotten long
 * before, and limits no acknowledgement. */
static void
test_psn_wrap(void **state)
{
	(void)state;
	init(4);
	hand_read(PSN_A, 0, 3000);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	/* As if so many WRITEs had come: up to half way, then up to the READ's PSN. */
	for (uint32_t epsn = 0x200000 - 1; epsn != 0x1200000 - 1; epsn += 0x200000) {
		p.b.qp.resp.epsn = epsn & PSN_MASK;
		inject(&p.b, &(struct crafted){.opcode = OPCODE_RC_WRITE_ONLY,
				     .psn = epsn & PSN_MASK,
				     .ack_req = true});
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		wire_drop_all(&p.b);
	}
	p.b.qp.resp.epsn = PSN_A + 2;
	p.b.qp.resp.ack_psn = 0;
	hand_send(PSN_A - 1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A + 1, p.b.qp.resp.msn);
	wire_drop_all(&p.b);
	hand_read(PSN_A, 0, 3000);
	expect_silence();
	reset_all();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_no_match),
		cmocka_unit_test(test_key_gone),
		cmocka_unit_test(test_key_gone_halfway),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_under_way),
		cmocka_unit_test(test_ack_limit),
		cmocka_unit_test(test_owed_stays),
		cmocka_unit_test(test_send_behind_replay),
		cmocka_unit_test(test_each_lost),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_no_restart_elsewhere),
		cmocka_unit_test(test_implied_nak),
		cmocka_unit_test(test_index_wrap),
		cmocka_unit_test(test_psn_wrap),
	};

	return cmocka_run_group_tests_name("qp read_dup", tests, NULL, NULL);
}
