/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets whose payload must not be delivered before their ICRC has been checked: all but
 * those of direct_place_test.c. */
#include <stdlib.h>
#include <string.h>

#include "direct_place_bed.h"

/* The packet that follows the first packet of a message. */
static struct crafted
middle(enum way way)
{
	static const uint8_t opcodes[WAYS] = {OPCODE_RC_SEND_MIDDLE,
		OPCODE_RC_SEND_MIDDLE, OPCODE_RC_WRITE_MIDDLE,
		OPCODE_RC_READ_RESPONSE_MIDDLE};

	return (struct crafted){.opcode = opcodes[way],
		.psn = psn_add(PSN_A, 1),
		.payload_len = mtu,
		.payload_key = 9};
}

static void
begin(enum way way, uint32_t bytes)
{
	struct pair_conf conf = pair_defaults_rdma();

	direct_open(way, &conf, bytes, 0);
	wire_deliver(from, 0);
	direct_changed(0, mtu);
}

static void
expect_delivered(const struct crafted *c, bool delivered)
{
	struct frame frame = craft(to, c);
	struct look look = direct_look(&frame);

	delivered = delivered && icrc_copy_min <= c->payload_len;
	assert_true(look.right);
	assert_int_equal(look.delivered, delivered);
	direct_changed(mtu, delivered ? mtu : 0);
	free(frame.data);
}

/* The unchanged packet is delivered. So the change made before is what prevented it. */
static void
expect_next_placed(enum way way)
{
	struct crafted c = middle(way);

	expect_delivered(&c, true);
}

static void
expect_next_not(enum way way)
{
	struct crafted c = middle(way);

	expect_delivered(&c, false);
}

/* ---- The packet ---- */

static void
test_headers(void **state)
{
	static const struct crafted rows[] = {{.psn = 1}, {.psn = 2}, {.psn = PSN_MASK},
		{.psn = PSN_MASK - 1}, {.psn = 1 << 23}, {.src_ip_change = 1},
		{.dst_ip_change = 1}, {.other_version = true}, {.pkey = 0x1234},
		{.pkey_zero = true}};

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		begin(way, 4 * 1024);
		for (unsigned i = 0; i < RTE_DIM(rows); i++) {
			struct crafted c = rows[i], right = middle(way);

			c.psn = psn_add(right.psn, c.psn);
			c.opcode = right.opcode;
			c.payload_len = right.payload_len;
			expect_delivered(&c, false);
		}
		expect_next_placed(way);
		pair_abandon(&p);
	}
}

/* All lengths but the full path MTU. */
static void
test_lengths(void **state)
{
	static const uint32_t lens[] = {
		0, 4, 252, 256, 512, 1020, 1021, 1023, 1025, 1028, 2048};

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		begin(way, 4 * 1024);
		for (unsigned i = 0; i < RTE_DIM(lens); i++) {
			struct crafted c = middle(way);

			c.payload_len = lens[i];
			expect_delivered(&c, false);
		}
		expect_next_placed(way);
		pair_abandon(&p);
	}
}

/* All other opcodes: first and last packets, MIDDLE of another kind of message or of
 * another service. */
static void
test_opcodes(void **state)
{
	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		unsigned others = 0;

		begin(way, 4 * 1024);
		for (unsigned opcode = 0; opcode < 256; opcode++) {
			struct crafted c = middle(way);
			const struct op_row *op = &op_rows[opcode];

			if (op->kind == OP_UNKNOWN || opcode == c.opcode)
				continue;
			c.opcode = (uint8_t)opcode;
			c.psn = op_is_response(op) ? to->qp.req.una_psn
						   : to->qp.resp.epsn;
			expect_delivered(&c, false);
			others++;
		}
		assert_true(others > 60);
		expect_next_placed(way);
		pair_abandon(&p);
	}
}

/* ---- The QP ---- */

/* The states that take requests, and those that take responses (IBA 10.3.1). */
static void
test_states(void **state)
{
	static const bool requests[] = {[IBV_QPS_RTR] = true,
		[IBV_QPS_RTS] = true,
		[IBV_QPS_SQD] = true,
		[IBV_QPS_SQE] = true,
		[IBV_QPS_ERR] = false};

	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		struct crafted c;

		begin(way, 4 * 1024);
		c = middle(way);
		for (uint8_t at = IBV_QPS_RESET; at <= IBV_QPS_ERR; at++) {
			bool takes = way == WAY_READ
					     ? at == IBV_QPS_RTS || at == IBV_QPS_SQD
					     : requests[at];

			to->qp.state = at;
			expect_delivered(&c, takes);
		}
		to->qp.state = IBV_QPS_RTS;
		pair_abandon(&p);
	}
}

/* No message is in progress. */
static void
test_between_messages(void **state)
{
	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		struct crafted c;

		begin(way, 2 * 1024);
		wire_deliver_all(from);
		direct_changed(mtu, mtu);
		c = middle(way);
		c.psn = psn_add(PSN_A, 2);
		expect_delivered(&c, false);
		direct_done(way);
	}
}

/* Fields of the QP left over from an earlier message are not used. */
static void
test_left_over(void **state)
{
	static const enum way ways[] = {WAY_SEND, WAY_SRQ};
	struct crafted write;

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(ways); i++) {
		begin(ways[i], 4 * 1024);
		to->qp.resp.va = (uintptr_t)to->mem + AT + mtu;
		to->qp.resp.rkey = to->rkey;
		to->qp.resp.left = 4 * mtu;
		write = middle(WAY_WRITE);
		expect_delivered(&write, false);
		expect_next_placed(ways[i]);
		to->qp.resp.msg = OP_WRITE;
		expect_next_not(ways[i]);
		expect_delivered(&write, true);
		pair_abandon(&p);
	}
}

/* ---- The memory ---- */

/* The key of the memory that the next packet is delivered to. */
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
static void
test_keys(void **state)
{
	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		uint32_t *key, right, poor;

		begin(way, 4 * 1024);
		key = key_in_use(way);
		right = *key;
		/* For an SRQ: of the wrong PD. Otherwise: without the right. */
		poor = host_key(to, AT, len, way == WAY_SRQ ? IBV_ACCESS_LOCAL_WRITE : 0);
		*key = poor;
		expect_next_not(way);
		*key = right;
		expect_next_placed(way);
		assert_int_equal(key_free(&to->keys, poor), 0);
		assert_int_equal(key_free(&to->keys, right), 0);
		expect_next_not(way);
		pair_abandon(&p);
	}
}

/* Remote writes are forbidden while a WRITE is in progress. */
static void
test_write_forbidden(void **state)
{
	(void)state;
	begin(WAY_WRITE, 4 * 1024);
	to->qp.access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	expect_next_not(WAY_WRITE);
	to->qp.access = IBV_ACCESS_REMOTE_WRITE;
	expect_next_placed(WAY_WRITE);
	pair_abandon(&p);
}

/* At least one byte of a WRITE must be left for the last packet, as each MIDDLE
 * implies. */
static void
test_write_end(void **state)
{
	static const uint32_t lens[] = {1025, 1024 + 512, 2 * 1024 - 1, 2 * 1024};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(lens); i++) {
		begin(WAY_WRITE, lens[i]);
		expect_next_not(WAY_WRITE);
		pair_abandon(&p);
	}
	begin(WAY_WRITE, 2 * 1024 + 1);
	expect_next_placed(WAY_WRITE);
	pair_abandon(&p);
}

/* A receive or a READ with less room than the packet's payload. */
static void
test_short(void **state)
{
	(void)state;
	for (enum way way = 0; way < WAYS; way++) {
		begin(way, 2 * 1024 - 1);
		expect_next_not(way);
		direct_done(way);
	}
}

/* A payload that crosses two SGEs is delivered after the ICRC check. Packets behind it
 * are delivered directly again. */
static void
test_two_places(void **state)
{
	static const uint32_t cuts[] = {1, 1023, 1025, 1024 + 512, 2047, 2049, 4095};

	(void)state;
	for (unsigned i = 0; i < RTE_DIM(cuts) * WAYS; i++) {
		struct pair_conf conf = pair_defaults_rdma();
		uint32_t cut = cuts[i / WAYS];
		enum way way = (enum way)(i % WAYS);

		if (way == WAY_WRITE)
			continue; /* a WRITE has one destination */
		direct_open(way, &conf, 4 * 1024 + 100, cut);
		for (uint32_t k = 0; k < PACKETS; k++) {
			struct look look = direct_look(&from->wire[0]);
			bool one = cut < k * mtu || cut >= (k + 1) * mtu;
			bool delivered = k != 0 && k != PACKETS - 1 && one;

			assert_true(look.right);
			assert_int_equal(look.delivered, delivered && icrc_copy_min <= mtu);
			direct_changed(k * mtu, look.delivered ? mtu : 0);
			wire_deliver(from, 0);
			direct_changed(k * mtu, RTE_MIN(mtu, len - k * mtu));
		}
		direct_done(way);
	}
}

/* ---- READ ---- */

/* The first response of a READ is never a MIDDLE, also not where the READ before
 * ended. */
static void
test_read_start(void **state)
{
	struct crafted c;

	(void)state;
	direct_open_default(WAY_READ);
	c = middle(WAY_READ);
	c.psn = PSN_A;
	expect_delivered(&c, false);
	pair_settle(&p);
	direct_changed(0, len);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	host_read(&p.a, 3, AT, FROM, 8 * mtu);
	c.psn = psn_add(PSN_A, PACKETS);
	expect_delivered(&c, false); /* not sent yet */
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(to->qp.req.una_psn, c.psn);
	assert_int_equal(to->qp.req.read_pos_psn, c.psn);
	expect_delivered(&c, false);
	pair_abandon(&p);
}

/* The read position must be that of the oldest packet. */
static void
test_read_place(void **state)
{
	(void)state;
	begin(WAY_READ, 4 * 1024);
	assert_int_equal(to->qp.req.read_pos_psn, psn_add(PSN_A, 1));
	to->qp.req.read_pos_psn++;
	expect_next_not(WAY_READ);
	to->qp.req.read_pos_psn--;
	to->qp.req.una_psn++;
	expect_next_not(WAY_READ);
	to->qp.req.una_psn--;
	expect_next_placed(WAY_READ);
	pair_abandon(&p);
}

/* The oldest request is not a READ, also when one of its packets is acknowledged. */
static void
test_not_a_read(void **state)
{
	struct crafted c;

	(void)state;
	direct_open_default(WAY_READ);
	pair_settle(&p);
	direct_changed(0, len);
	expect_sent(&p.a, 1, IBV_WC_SUCCESS);
	c = middle(WAY_READ);
	c.psn = psn_add(PSN_A, PACKETS);
	host_recv(&p.b, 2, AT, 8 * mtu);
	host_send(&p.a, 3, AT, 8 * mtu, 0);
	host_pull(&p.a, PULL_ALL);
	assert_int_equal(to->qp.req.read_pos_psn, c.psn);
	expect_delivered(&c, false);
	inject_ack(&p.a, AETH_ACK, c.psn);
	c.psn = psn_add(c.psn, 1);
	assert_int_equal(to->qp.req.una_psn, c.psn);
	expect_delivered(&c, false);
	/* As if a READ had received one packet. The opcode of the request decides. */
	to->qp.req.read_pos_psn = c.psn;
	to->qp.req.read_pos = (struct sge_pos){0, mtu};
	expect_delivered(&c, false);
	pair_abandon(&p);
}

/* ---- Other services ---- */

static void
none_placed(enum ibv_qp_type type, enum way way)
{
	struct pair_conf conf = pair_defaults_rdma();

	conf.type = type;
	if (type == IBV_QPT_UC)
		conf.access = IBV_ACCESS_REMOTE_WRITE;
	direct_open(way, &conf, (PACKETS - 1) * 1024 + 100, 0);
	for (uint32_t i = 0; i < PACKETS; i++) {
		struct look look = direct_look(&from->wire[0]);

		assert_true(look.right);
		assert_false(look.delivered);
		direct_changed(0, 0);
		wire_deliver(from, 0);
		direct_changed(i * mtu, RTE_MIN(mtu, len - i * mtu));
	}
	direct_done(way);
}

static void
test_other_services(void **state)
{
	(void)state;
	none_placed(IBV_QPT_UC, WAY_SEND);
	none_placed(IBV_QPT_UC, WAY_WRITE);
	none_placed(IBV_QPT_XRC_SEND, WAY_SEND);
	none_placed(IBV_QPT_XRC_SEND, WAY_WRITE);
	none_placed(IBV_QPT_XRC_SEND, WAY_READ);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		direct_test(test_headers),
		direct_test(test_lengths),
		direct_test(test_opcodes),
		direct_test(test_states),
		direct_test(test_between_messages),
		direct_test(test_left_over),
		direct_test(test_keys),
		direct_test(test_write_forbidden),
		direct_test(test_write_end),
		direct_test(test_short),
		direct_test(test_two_places),
		direct_test(test_read_start),
		direct_test(test_read_place),
		direct_test(test_not_a_read),
		direct_test(test_other_services),
	};

	return cmocka_run_group_tests_name("qp direct_place not", tests, NULL, NULL);
}
