/* SPDX-License-Identifier: BSD-3-Clause */
/* Duplicate READs at the responder (docs/protocol.md 7.5 and 8.7; IBA 9.7.5.1.2,
 * C9-150). */
#include "read_fixture.h"

static void
inject_area_read(uint32_t psn, uint32_t offset, uint32_t len)
{
	inject_read(psn, read_va(offset), p.b.rkey, len);
}

static void
inject_send(uint32_t psn)
{
	inject_request(&p.b, OPCODE_RC_SEND_ONLY, psn, 8);
}

/* Expects exactly these responses of b. Their bytes are those at offset of the target
 * area. */
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

/* A duplicate READ must have the R_Key and a part of the range of the original, and is
 * answered from memory with the current MSN (docs/protocol.md 8.7). ePSN and MSN do not
 * change. */
TEST(duplicate_read_of_part)
{
	read_init_receives(4);
	inject_area_read(PSN_A, 0, 3000);
	expect_read(PSN_A, 1, 0, 3000, FIRST, MIDDLE, LAST);
	inject_send(PSN_A + 3);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 3, 2);
	inject_area_read(PSN_A, 0, 3000);
	expect_read(PSN_A, 2, 0, 3000, FIRST, MIDDLE, LAST);
	inject_area_read(PSN_A + 1, 1024, 1976);
	expect_read(PSN_A + 1, 2, 1024, 1976, FIRST, LAST);
	inject_area_read(PSN_A + 2, 2048, 952);
	expect_read(PSN_A + 2, 2, 2048, 952, ONLY);
	inject_area_read(PSN_A, 0, 100); /* shorter than the original */
	expect_read(PSN_A, 2, 0, 100, ONLY);
	inject_area_read(PSN_A + 1, 1024, 1025);
	expect_read(PSN_A + 1, 2, 1024, 1025, FIRST, LAST);
	inject_area_read(PSN_A, 0, 3000); /* the whole READ again */
	p.b.mem[REMOTE] ^= 0xFF; /* the response has the memory's current bytes */
	expect_read(PSN_A, 2, 0, 3000, FIRST, MIDDLE, LAST);
	inject_area_read(PSN_A + 1, 1024, 0);
	expect_read(PSN_A + 1, 2, 1024, 0, ONLY);
	assert_int_equal(p.b.qp.resp.epsn, PSN_A + 4);
	assert_int_equal(p.b.stats.duplicates, 7);
	qp_link_fini_discard(&p);
}

/* A duplicate that matches no responder resource is dropped. */
TEST(unmatched_duplicate_is_dropped)
{
	uint32_t key;

	read_init_receives(2);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	inject_send(PSN_A);
	inject_area_read(PSN_A + 1, 0, 3000);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	inject_area_read(PSN_A + 1, 64, 100); /* another address */
	inject_area_read(PSN_A + 1, 0, 3001); /* longer */
	inject_area_read(PSN_A + 1, 0, 0xFFFFFFFF);
	inject_area_read(PSN_A + 2, 1024, 1977);
	inject_area_read(PSN_A + 2, 0, 1000);
	inject_read(PSN_A + 1, read_va(0), key, 3000); /* another rkey */
	inject_area_read(PSN_A, 0, 8);                 /* the PSN of a SEND */
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_FETCH_ADD,
			     .psn = PSN_A + 1,
			     .va = (uintptr_t)p.b.mem + REMOTE,
			     .rkey = p.b.rkey,
			     .swap_add = 1});
	expect_no_frame(&p.b);
	/* the atomic was not executed */
	assert_true(bytes_match(p.b.mem + REMOTE, 8, 1));
	/* Two READs later it is forgotten. */
	inject_area_read(PSN_A + 4, 0, 8);
	expect_read(PSN_A + 4, 3, 0, 8, ONLY);
	inject_area_read(PSN_A + 1, 0, 3000);
	expect_read(PSN_A + 1, 3, 0, 3000, FIRST, MIDDLE, LAST);
	inject_area_read(PSN_A + 5, 0, 8);
	expect_read(PSN_A + 5, 4, 0, 8, ONLY);
	inject_area_read(PSN_A + 1, 0, 3000);
	expect_no_frame(&p.b);
	assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
	expect_received(&p.b, 0, 8);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	qp_link_fini_discard(&p);
}

/* The R_Key is checked again (docs/protocol.md 8.7). If it is gone: NAK 0x62 with the PSN
 * of the duplicate. The READ was answered, so the duplicate may be a late copy: the
 * connection stands. */
TEST(duplicate_with_freed_key)
{
	uint32_t key;

	read_init_receives(2);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	inject_read(PSN_A, read_va(0), key, 3000);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	inject_read(PSN_A + 1, read_va(1024), key, 1976);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A + 1, 1);
	assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
	wire_drop_all(&p.b);
	inject_area_read(PSN_A + 3, 0, 8);
	expect_read(PSN_A + 3, 2, 0, 8, ONLY);
	qp_link_fini_discard(&p);
}

/* A READ that was not answered completely is fatal when its key is gone. */
TEST(key_freed_during_response)
{
	uint32_t key;

	read_init_receives(2);
	key = host_key(&p.b, REMOTE, 4096, IBV_ACCESS_REMOTE_READ);
	inject_read(PSN_A, read_va(0), key, 3000);
	assert_int_equal(host_pull(&p.b, 1), 1);
	wire_drop_all(&p.b);
	assert_int_equal(key_free(&p.b.keys, key), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_NAK_ACCESS, PSN_A + 1, 1);
	expect_event(&p.b, IBV_EVENT_QP_ACCESS_ERR);
	qp_link_fini_discard(&p);
}

/* READs behind a duplicate are not answered again unless requested: one doubled packet
 * must not cause a flood. Requested again in any order, they are answered in PSN
 * order. */
TEST(duplicates_in_psn_order)
{
	read_init_receives(4);
	for (unsigned i = 0; i < 4; i++)
		inject_area_read(PSN_A + i, 100 * i, 10);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	wire_drop_all(&p.b);
	inject_area_read(PSN_A, 0, 10);
	expect_read(PSN_A, 4, 0, 10, ONLY);
	inject_area_read(PSN_A + 3, 300, 10);
	inject_area_read(PSN_A + 1, 100, 10);
	inject_area_read(PSN_A + 1, 100, 10); /* is already being answered */
	assert_int_equal(host_pull(&p.b, PULL_ALL), 2);
	expect_response(&p.b, 0, ONLY, PSN_A + 1, 4, 10);
	expect_response(&p.b, 1, ONLY, PSN_A + 3, 4, 10);
	wire_drop_all(&p.b);
	qp_link_fini_discard(&p);
}

/* While a response is being sent: the same request changes nothing, an earlier part
 * starts over, a new READ queues behind. */
TEST(duplicate_during_response)
{
	read_init_receives(2);
	inject_area_read(PSN_A, 0, 5000);
	assert_int_equal(host_pull(&p.b, 2), 2);
	inject_area_read(PSN_A + 3, 3072, 5000 - 3072);
	assert_int_equal(host_pull(&p.b, 1), 1);
	expect_response(&p.b, 2, MIDDLE, PSN_A + 2, 1, 1024);
	wire_drop_all(&p.b);
	inject_area_read(PSN_A + 1, 1024, 5000 - 1024);
	inject_area_read(PSN_A + 5, 0, 8);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 5);
	expect_response(&p.b, 0, FIRST, PSN_A + 1, 1, 1024);
	expect_response(&p.b, 3, LAST, PSN_A + 4, 1, 5000 - 4096);
	expect_response(&p.b, 4, ONLY, PSN_A + 5, 2, 8);
	wire_drop_all(&p.b);
	/* A READ behind it had started. It starts again after the duplicate. */
	inject_area_read(PSN_A + 6, 0, 3000);
	assert_int_equal(host_pull(&p.b, 1), 1);
	inject_area_read(PSN_A + 5, 0, 8);
	wire_drop_all(&p.b);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	expect_response(&p.b, 0, ONLY, PSN_A + 5, 3, 8);
	expect_response(&p.b, 1, FIRST, PSN_A + 6, 3, 1024);
	wire_drop_all(&p.b);
	qp_link_fini_discard(&p);
}

/* SEND and READ, both responses lost, SEND repeated: its ACK names at most the PSN before
 * the READ, which rxe would complete by that ACK. Behind the READ it names the last
 * executed PSN. */
TEST(ack_stops_before_read)
{
	read_init_receives(4);
	host_send(&p.a, 1, 0, 8, IBV_SEND_SIGNALED);
	host_read(&p.a, 2, 0x2000, REMOTE, 8);
	host_pull(&p.a, PULL_ALL);
	wire_deliver_all(&p.a);
	/* the READ response acknowledges both */
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	wire_drop_all(&p.b);
	qp_link_advance(&p, 68 * NS_PER_MS);
	host_pull(&p.a, PULL_ALL);
	wire_deliver(&p.a, 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A, 2);
	wire_deliver_all(&p.b);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	expect_idle(&p.a); /* not the READ */
	qp_link_drain(&p);
	expect_sent(&p.a, 2, IBV_WC_SUCCESS);
	assert_memory_equal(p.a.mem + 0x2000, p.b.mem + REMOTE, 8);
	expect_received(&p.b, 0, 8);
	/* SEND READ SEND SEND READ SEND: the limits between READs. */
	for (unsigned i = 0; i < 6; i++) {
		if (i % 3 == 1)
			inject_area_read(PSN_A + 2 + i, 0, 8);
		else
			inject_send(PSN_A + 2 + i);
	}
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	inject_send(PSN_A + 2);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 2, 8);
	inject_send(PSN_A + 4);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 5, 8);
	inject_send(PSN_A + 5);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 5, 8);
	inject_send(PSN_A + 7);
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 7, 8);
	qp_link_fini_discard(&p);
}

/* A duplicate SEND neither removes nor lowers a pending acknowledgement, and neither does
 * a duplicate READ. */
TEST(pending_ack_is_kept)
{
	read_init_receives(4);
	inject_send(PSN_A);
	expect_one_ack(&p.b, AETH_ACK, PSN_A, 1);
	inject_area_read(PSN_A + 1, 0, 3000);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	inject_send(PSN_A + 4);
	inject_send(PSN_A); /* alone it would limit the ACK to PSN_A */
	expect_one_ack(&p.b, AETH_ACK, PSN_A + 4, 3);
	inject_area_read(PSN_A + 5, 0, 3000);
	inject_send(PSN_A + 8);
	inject_area_read(PSN_A + 5, 0, 3000);
	inject_send(PSN_A + 4);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	expect_frame(&p.b, 2, LAST, PSN_A + 7, 0);
	expect_ack(&p.b, 3, AETH_ACK, PSN_A + 8, 5);
	qp_link_fini_discard(&p);
}

/* READ and SEND are resent together: the ACK of the SEND follows the READ response.
 * Without it the peer would wait for its timeout. */
TEST(ack_follows_repeated_response)
{
	read_init_receives(4);
	inject_send(PSN_A);
	inject_area_read(PSN_A + 1, 0, 3000);
	inject_send(PSN_A + 4);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	wire_drop_all(&p.b);
	inject_send(PSN_A); /* acknowledged by the READ response */
	inject_area_read(PSN_A + 1, 0, 3000);
	inject_send(PSN_A);
	inject_send(PSN_A + 4);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 4);
	expect_response(&p.b, 0, FIRST, PSN_A + 1, 3, 1024);
	expect_ack(&p.b, 3, AETH_ACK, PSN_A + 4, 3);
	qp_link_fini_discard(&p);
}

/* ---- Wrap of indices and PSNs ---- */

/* For each size of the ring its free-running index passes 2^32: every READ is answered,
 * and the last ones are answered again. */
TEST(resource_index_wraps)
{
	for (uint8_t depth = 1; depth <= QP_MAX_RD_ATOMIC; depth++) {
		struct responder *resp;

		read_init_receives(depth);
		resp = &p.b.qp.resp;
		resp->res_end = resp->res_next = resp->res_done = UINT32_MAX - 20;
		for (unsigned i = 0; i < 48; i += depth) {
			for (unsigned k = 0; k < depth; k++)
				inject_area_read(PSN_A + i + k, 16 * (i + k), 16);
			assert_int_equal(host_pull(&p.b, PULL_ALL), depth);
			wire_drop_all(&p.b);
			for (unsigned k = 0; k < depth; k++) {
				inject_area_read(PSN_A + i + k, 16 * (i + k), 16);
				expect_read(
					PSN_A + i + k, i + depth, 16 * (i + k), 16, ONLY);
			}
		}
		assert_int_equal(p.b.qp.state, IBV_QPS_RTS);
		qp_link_fini_discard(&p);
	}
}

/* The PSNs of a READ of 2^24 packets ago have a new meaning. It was forgotten long before
 * and limits no acknowledgement. */
TEST(old_read_is_forgotten)
{
	read_init_receives(4);
	inject_area_read(PSN_A, 0, 3000);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 3);
	wire_drop_all(&p.b);
	/* As if that many WRITEs had come: up to half the PSN space, then up to the
	 * READ's PSN. */
	for (uint32_t epsn = 0x200000 - 1; epsn != 0x1200000 - 1; epsn += 0x200000) {
		p.b.qp.resp.epsn = epsn & PSN_MASK;
		inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_WRITE_ONLY,
				     .psn = epsn & PSN_MASK,
				     .ack_req = true});
		assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
		wire_drop_all(&p.b);
	}
	p.b.qp.resp.epsn = PSN_A + 2;
	p.b.qp.resp.ack_psn = 0;
	inject_send(PSN_A - 1);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, AETH_ACK, PSN_A + 1, p.b.qp.resp.msn);
	wire_drop_all(&p.b);
	inject_area_read(PSN_A, 0, 3000);
	expect_no_frame(&p.b);
	qp_link_fini_discard(&p);
}
