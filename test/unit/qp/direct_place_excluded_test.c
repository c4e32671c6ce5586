/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that direct placement excludes (direct_place_test.c): their payload must not be
 * placed before their ICRC has been checked. */
#include <stdlib.h>
#include <string.h>

#include "direct_place_fixture.h"

/* The packet that follows the first packet of a message. */
static struct pkt_spec
middle_packet(enum way way)
{
	static const uint8_t opcodes[WAYS] = {OPCODE_RC_SEND_MIDDLE,
		OPCODE_RC_SEND_MIDDLE, OPCODE_RC_WRITE_MIDDLE,
		OPCODE_RC_READ_RESPONSE_MIDDLE};

	return (struct pkt_spec){.opcode = opcodes[way],
		.psn = psn_add(PSN_A, 1),
		.payload_len = mtu,
		.payload_key = 9};
}

static void
first_packet_deliver(enum way way, uint32_t bytes)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	direct_open(way, &conf, bytes, 0);
	wire_deliver(from, 0);
	expect_changed(0, mtu);
}

static void
expect_placed(const struct pkt_spec *c, bool payload_placed)
{
	struct frame frame = pkt_spec_build(to, c);
	struct check_result result = frame_check(&frame);

	payload_placed = payload_placed && icrc_copy_min <= c->payload_len;
	assert_true(result.icrc_ok);
	assert_int_equal(result.payload_placed, payload_placed);
	expect_changed(mtu, payload_placed ? mtu : 0);
	free(frame.data);
}

/* The unchanged packet is placed. So the change made before prevented the delivery. */
static void
expect_next_delivered(enum way way)
{
	struct pkt_spec c = middle_packet(way);

	expect_placed(&c, true);
}

static void
expect_next_not_delivered(enum way way)
{
	struct pkt_spec c = middle_packet(way);

	expect_placed(&c, false);
}

/* ---- The packet ---- */

TEST_BOTH_WAYS(wrong_header_not_delivered)
{
	static const struct pkt_spec rows[] = {{.psn = 1}, {.psn = 2}, {.psn = PSN_MASK},
		{.psn = PSN_MASK - 1}, {.psn = 1 << 23}, {.src_ip_change = 1},
		{.dst_ip_change = 1}, {.other_version = true}, {.pkey = 0x1234},
		{.pkey_zero = true}};

	for (enum way way = 0; way < WAYS; way++) {
		first_packet_deliver(way, 4 * 1024);
		for (unsigned i = 0; i < RTE_DIM(rows); i++) {
			struct pkt_spec c = rows[i], right = middle_packet(way);

			c.psn = psn_add(right.psn, c.psn);
			c.opcode = right.opcode;
			c.payload_len = right.payload_len;
			expect_placed(&c, false);
		}
		expect_next_delivered(way);
		qp_link_fini_discard(&p);
	}
}

/* All lengths but the full path MTU. */
TEST_BOTH_WAYS(other_length_not_delivered)
{
	static const uint32_t lens[] = {
		0, 4, 252, 256, 512, 1020, 1021, 1023, 1025, 1028, 2048};

	for (enum way way = 0; way < WAYS; way++) {
		first_packet_deliver(way, 4 * 1024);
		for (unsigned i = 0; i < RTE_DIM(lens); i++) {
			struct pkt_spec c = middle_packet(way);

			c.payload_len = lens[i];
			expect_placed(&c, false);
		}
		expect_next_delivered(way);
		qp_link_fini_discard(&p);
	}
}

/* All other opcodes: first and last packets, MIDDLE of another kind of message or of
 * another service. */
TEST_BOTH_WAYS(other_opcode_not_delivered)
{
	for (enum way way = 0; way < WAYS; way++) {
		unsigned others = 0;

		first_packet_deliver(way, 4 * 1024);
		for (unsigned opcode = 0; opcode < 256; opcode++) {
			struct pkt_spec c = middle_packet(way);
			const struct op_row *op = &op_rows[opcode];

			if (op->kind == OP_UNKNOWN || opcode == c.opcode)
				continue;
			c.opcode = (uint8_t)opcode;
			c.psn = op_is_response(op) ? to->qp.req.una_psn
						   : to->qp.resp.epsn;
			expect_placed(&c, false);
			others++;
		}
		assert_true(others > 60);
		expect_next_delivered(way);
		qp_link_fini_discard(&p);
	}
}

/* ---- The QP ---- */

/* The states that take requests, and those that take responses (IBA 10.3.1). */
TEST_BOTH_WAYS(delivery_by_qp_state)
{
	static const bool requests[] = {[IBV_QPS_RTR] = true,
		[IBV_QPS_RTS] = true,
		[IBV_QPS_SQD] = true,
		[IBV_QPS_SQE] = true,
		[IBV_QPS_ERR] = false};

	for (enum way way = 0; way < WAYS; way++) {
		struct pkt_spec c;

		first_packet_deliver(way, 4 * 1024);
		c = middle_packet(way);
		for (uint8_t at = IBV_QPS_RESET; at <= IBV_QPS_ERR; at++) {
			bool takes = way == WAY_READ
					     ? at == IBV_QPS_RTS || at == IBV_QPS_SQD
					     : requests[at];

			to->qp.state = at;
			expect_placed(&c, takes);
		}
		to->qp.state = IBV_QPS_RTS;
		qp_link_fini_discard(&p);
	}
}

/* No message is in progress. */
TEST_BOTH_WAYS(no_message_in_progress)
{
	for (enum way way = 0; way < WAYS; way++) {
		struct pkt_spec c;

		first_packet_deliver(way, 2 * 1024);
		wire_deliver_all(from);
		expect_changed(mtu, mtu);
		c = middle_packet(way);
		c.psn = psn_add(PSN_A, 2);
		expect_placed(&c, false);
		direct_finish(way);
	}
}

/* Fields of the QP left over from an earlier message are not used. */
TEST_BOTH_WAYS(stale_message_state_is_unused)
{
	static const enum way ways[] = {WAY_SEND, WAY_SRQ};
	struct pkt_spec write;

	for (unsigned i = 0; i < RTE_DIM(ways); i++) {
		first_packet_deliver(ways[i], 4 * 1024);
		to->qp.resp.va = (uintptr_t)to->mem + AT + mtu;
		to->qp.resp.rkey = to->rkey;
		to->qp.resp.left = 4 * mtu;
		write = middle_packet(WAY_WRITE);
		expect_placed(&write, false);
		expect_next_delivered(ways[i]);
		to->qp.resp.msg = OP_WRITE;
		expect_next_not_delivered(ways[i]);
		expect_placed(&write, true);
		qp_link_fini_discard(&p);
	}
}

/* ---- The memory ---- */

/* The key of the memory that the next packet is placed to. */
static uint32_t *
key_in_use(enum way way)
{
	if (way == WAY_WRITE)
		return &to->qp.resp.rkey;
	if (way == WAY_READ)
		return &sq_slot(&to->qp.sq, to->qp.req.una_idx)->sge[0].lkey;
	return &to->qp.wqe->sge[0].lkey;
}

/* A key that was valid for the first packet is not valid for the second. */
TEST_BOTH_WAYS(invalid_key_not_delivered)
{
	for (enum way way = 0; way < WAYS; way++) {
		uint32_t *key, right, poor;

		first_packet_deliver(way, 4 * 1024);
		key = key_in_use(way);
		right = *key;
		/* For an SRQ: of the wrong PD. Otherwise: without the right. */
		poor = host_key(to, AT, len, way == WAY_SRQ ? IBV_ACCESS_LOCAL_WRITE : 0);
		*key = poor;
		expect_next_not_delivered(way);
		*key = right;
		expect_next_delivered(way);
		assert_int_equal(key_free(&to->keys, poor), 0);
		assert_int_equal(key_free(&to->keys, right), 0);
		expect_next_not_delivered(way);
		qp_link_fini_discard(&p);
	}
}

/* Remote writes are forbidden while a WRITE is in progress. */
TEST_BOTH_WAYS(forbidden_write_not_delivered)
{
	first_packet_deliver(WAY_WRITE, 4 * 1024);
	to->qp.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	expect_next_not_delivered(WAY_WRITE);
	to->qp.access = IBV_ACCESS_REMOTE_WRITE;
	expect_next_delivered(WAY_WRITE);
	qp_link_fini_discard(&p);
}

/* At least one byte of a WRITE must be left for the last packet, as each MIDDLE
 * implies. */
TEST_BOTH_WAYS(last_bytes_of_write_not_delivered)
{
	static const uint32_t lens[] = {1025, 1024 + 512, 2 * 1024 - 1, 2 * 1024};

	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		first_packet_deliver(WAY_WRITE, lens[i]);
		expect_next_not_delivered(WAY_WRITE);
		qp_link_fini_discard(&p);
	}
	first_packet_deliver(WAY_WRITE, 2 * 1024 + 1);
	expect_next_delivered(WAY_WRITE);
	qp_link_fini_discard(&p);
}

/* A receive or a READ with less room than the packet's payload. */
TEST_BOTH_WAYS(short_buffer_not_delivered)
{
	for (enum way way = 0; way < WAYS; way++) {
		first_packet_deliver(way, 2 * 1024 - 1);
		expect_next_not_delivered(way);
		direct_finish(way);
	}
}

/* A payload that crosses two SGEs is placed after the ICRC check. Packets behind it
 * are placed directly again. */
TEST_BOTH_WAYS(payload_across_sges_not_delivered)
{
	static const uint32_t cuts[] = {1, 1023, 1025, 1024 + 512, 2047, 2049, 4095};

	for (unsigned i = 0; i < RTE_DIM(cuts) * WAYS; i++) {
		struct qp_link_conf conf = qp_link_defaults_rdma();
		uint32_t cut = cuts[i / WAYS];
		enum way way = (enum way)(i % WAYS);

		if (way == WAY_WRITE)
			continue; /* a WRITE has one destination */
		direct_open(way, &conf, 4 * 1024 + 100, cut);
		for (uint32_t k = 0; k < PACKETS; k++) {
			struct check_result result = frame_check(&from->wire[0]);
			bool one = cut < k * mtu || cut >= (k + 1) * mtu;
			bool payload_placed = k != 0 && k != PACKETS - 1 && one;

			assert_true(result.icrc_ok);
			assert_int_equal(result.payload_placed,
				payload_placed && icrc_copy_min <= mtu);
			expect_changed(k * mtu, result.payload_placed ? mtu : 0);
			wire_deliver(from, 0);
			expect_changed(k * mtu, RTE_MIN(mtu, len - k * mtu));
		}
		direct_finish(way);
	}
}

/* ---- READ ---- */

/* The first response of a READ is never a MIDDLE, also not where the READ before
 * ended. */
TEST_BOTH_WAYS(first_read_response_not_delivered)
{
	struct pkt_spec c;

	direct_open_default(WAY_READ);
	c = middle_packet(WAY_READ);
	c.psn = PSN_A;
	expect_placed(&c, false);
	qp_link_drain(&p);
	expect_changed(0, len);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	host_read(&p.a, 3, AT, FROM, 8 * mtu);
	c.psn = psn_add(PSN_A, PACKETS);
	expect_placed(&c, false); /* not sent yet */
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(to->qp.req.una_psn, c.psn);
	assert_int_equal(to->qp.req.read_pos_psn, c.psn);
	expect_placed(&c, false);
	qp_link_fini_discard(&p);
}

/* The read position must be that of the oldest packet. */
TEST_BOTH_WAYS(read_position_must_match)
{
	first_packet_deliver(WAY_READ, 4 * 1024);
	assert_int_equal(to->qp.req.read_pos_psn, psn_add(PSN_A, 1));
	to->qp.req.read_pos_psn++;
	expect_next_not_delivered(WAY_READ);
	to->qp.req.read_pos_psn--;
	to->qp.req.una_psn++;
	expect_next_not_delivered(WAY_READ);
	to->qp.req.una_psn--;
	expect_next_delivered(WAY_READ);
	qp_link_fini_discard(&p);
}

/* The oldest request is not a READ, also when one of its packets is acknowledged. */
TEST_BOTH_WAYS(response_without_read_not_delivered)
{
	struct pkt_spec c;

	direct_open_default(WAY_READ);
	qp_link_drain(&p);
	expect_changed(0, len);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	c = middle_packet(WAY_READ);
	c.psn = psn_add(PSN_A, PACKETS);
	host_recv(&p.b, 2, AT, 8 * mtu);
	host_send(&p.a, 3, AT, 8 * mtu, 0);
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(to->qp.req.read_pos_psn, c.psn);
	expect_placed(&c, false);
	inject_ack(&p.a, AETH_ACK, c.psn);
	c.psn = psn_add(c.psn, 1);
	assert_int_equal(to->qp.req.una_psn, c.psn);
	expect_placed(&c, false);
	/* As if a READ had received one packet. The opcode of the request decides. */
	to->qp.req.read_pos_psn = c.psn;
	to->qp.req.read_pos = (struct sge_pos){0, mtu};
	expect_placed(&c, false);
	qp_link_fini_discard(&p);
}

/* ---- Other services ---- */

static void
none_delivered(enum ibv_qp_type type, enum way way)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.type = type;
	if (type == IBV_QPT_UC)
		conf.access = IBV_ACCESS_REMOTE_WRITE;
	direct_open(way, &conf, (PACKETS - 1) * 1024 + 100, 0);
	for (uint32_t i = 0; i < PACKETS; i++) {
		struct check_result result = frame_check(&from->wire[0]);

		assert_true(result.icrc_ok);
		assert_false(result.payload_placed);
		expect_changed(0, 0);
		wire_deliver(from, 0);
		expect_changed(i * mtu, RTE_MIN(mtu, len - i * mtu));
	}
	direct_finish(way);
}

TEST_BOTH_WAYS(other_services_not_delivered)
{
	none_delivered(IBV_QPT_UC, WAY_SEND);
	none_delivered(IBV_QPT_UC, WAY_WRITE);
	none_delivered(IBV_QPT_XRC_SEND, WAY_SEND);
	none_delivered(IBV_QPT_XRC_SEND, WAY_WRITE);
	none_delivered(IBV_QPT_XRC_SEND, WAY_READ);
}

TEST_GROUP(direct_on, NULL)
