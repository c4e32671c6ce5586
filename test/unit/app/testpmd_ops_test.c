/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of rocade-testpmd, with a peer that carries them out right or with one fault. */
#include "testpmd_ops_fixture.h"

#define ALL                                                                              \
	"send:3,send-imm:2,send-inv:2,write:5,write-imm:5,read:4,fadd:3,cas:3,atomic-write:2,flush:2"

TEST_WITH(every_operation_is_verified, NULL, teardown)
{
	run_begin(ALL);
	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = 0; i < SLOTS; i++)
			message();
		messages_acknowledged();
		assert_true(target_verify(&rx, &rx_conn, tx_conn.ring.acked));
		tx_conn.ring.checked = rx_conn.checked.writes;
		assert_string_equal(rx.reason, "");
		assert_string_equal(tx.reason, "");
	}
	assert_int_equal(tx_conn.acked + tx_conn.posted, 100 * SLOTS);
	assert_int_equal(
		rx_conn.received, mix_count(&conf.mix, tx_conn.posted, OP_RECEIVED));
	assert_int_equal(
		rx_conn.checked.writes, mix_count(&conf.mix, tx_conn.posted, OP_RING));
	for (unsigned i = 0; i < OP_KINDS; i++)
		assert_true(tx.tally.of_op[i] > 100);
	assert_true(flushes[ROCADE_FLUSH_RANGE] > 50 && flushes[ROCADE_FLUSH_MR] > 50);
	assert_true(tx.tally.verified_bytes > 1000 && rx.tally.verified_bytes > 1000);
}

/* Runs eight messages of an operation. Before the sender sees them acknowledged, harm() does harm. */
static void
harmed(const char *text, void (*harm)(void), struct host *finder, const char *say)
{
	run_begin(text);
	for (unsigned i = 0; i < 8; i++)
		message();
	harm();
	messages_acknowledged();
	(void)target_verify(&rx, &rx_conn, tx_conn.ring.acked);
	if (strstr(finder->reason, say) == NULL)
		fail_msg("%s: \"%s\" does not say \"%s\"", text, finder->reason, say);
	assert_int_equal(finder->tally.bad_messages, 1);
}

static void
harm_slot_5(void)
{
	rx.target.mem[target_slot(&rx.target.map, 1, 0, 5) + 3] ^= 1;
}

/* An earlier WRITE arrives again, late. */
static void
harm_by_replay(void)
{
	memcpy(rx.target.mem + target_slot(&rx.target.map, 1, 0, 6), buffers + 3 * 64, 8);
}

static void
harm_result_2(void)
{
	buffers[2 * 64 + 1] ^= 0x10;
}

/* A request that was carried out twice. */
static void
harm_word(void)
{
	buffers[7 * 64] ^= 1;
}

TEST_WITH(one_wrong_byte_is_found, NULL, teardown)
{
	harmed("write", harm_slot_5, &rx, "write 5: 1 bad, 3: ");
	harmed("write-imm", harm_slot_5, &rx, "write-imm 5: 1 bad, 3: ");
	harmed("atomic-write", harm_slot_5, &rx, "atomic-write 5: 1 bad, 3: ");
	harmed("write", harm_by_replay, &rx, "write 6: 8 bad, 0: ");
	harmed("read", harm_result_2, &tx, "read 2: 1 bad, 1: ");
	harmed("fadd", harm_result_2, &tx, "fadd, message 2 of QP 0x100, returned 0x");
	harmed("cas", harm_word, &tx, "cas, message 7 of QP 0x100, returned 0x");
}

/* A READ of another message has other bytes, whatever its size. */
TEST_WITH(reads_differ, NULL, teardown)
{
	uint8_t first[64];

	run_begin("read");
	message();
	memcpy(first, buffers, 64);
	for (unsigned i = 1; i < SLOTS; i++)
		message();
	for (unsigned i = 1; i < SLOTS; i++)
		assert_memory_not_equal(first, buffers + i * 64, 8);
}

TEST_WITH(immediates_and_order_are_verified, NULL, teardown)
{
	uint64_t seed = verify_seed(QPN, 0);

	run_begin("write-imm");
	receive(IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, htobe32((uint32_t)seed),
		SIZE);
	assert_string_equal(rx.reason, "");
	receive(IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, htobe32((uint32_t)seed), 8);
	assert_non_null(
		strstr(rx.reason, "the immediate of message 1 (write-imm) of QP 0x100"));
	run_begin("write-imm");
	receive(IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, htobe32((uint32_t)seed),
		SIZE - 1);
	assert_non_null(strstr(rx.reason, "has 39 bytes, expected 40"));
	run_begin("send:1,write-imm:1");
	receive(IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, htobe32((uint32_t)seed),
		SIZE);
	assert_non_null(strstr(rx.reason, "another operation than send"));
	run_begin("send-imm");
	receive(IBV_WC_RECV, 0, 0, SIZE);
	assert_non_null(strstr(rx.reason, "another operation than send-imm"));
}

/* A peer that does not know of --op sends at once. */
TEST_WITH(a_message_before_the_ends_agree_is_refused, NULL, teardown)
{
	run_begin("write");
	rx.exchange.asked.receives = false;
	receive(IBV_WC_RECV, 0, 0, SIZE);
	assert_int_equal(rx.state, HOST_FAILED);
	assert_non_null(strstr(
		rx.reason, "192.0.2.2 sends messages that this end with '--op here'"));
}

/* Gives the receiver the bytes of message msg, of an operation with SENDs only. */
static void
datagram(uint64_t msg)
{
	verify_fill(received, conf.sizes[msg % conf.n_sizes], verify_seed(QPN, msg));
	receive(IBV_WC_RECV, 0, 0, (uint32_t)conf.sizes[msg % conf.n_sizes]);
}

TEST_WITH(lost_late_and_repeated_messages_are_counted, NULL, teardown)
{
	static const uint64_t arrive[] = {0, 1, 4, 3, 3, 1, 5, 900, 899, 902};

	run_begin("send");
	conf.type = TYPE_UC;
	for (size_t i = 0; i < sizeof(arrive) / sizeof(arrive[0]); i++)
		datagram(arrive[i]);
	assert_string_equal(rx.reason, "");
	assert_int_equal(rx_conn.received, 8);
	assert_int_equal(rx.tally.messages, 8);
	assert_int_equal(rx.tally.late, 2);
	assert_int_equal(rx.tally.duplicates, 2);
	rx_lost(&rx, &rx_conn, 1000, 1000 - rx_conn.received);
	assert_int_equal(rx.tally.lost, 992);
	datagram(1000); /* of the next run */
	assert_int_equal(rx_conn.received, 1001);
	assert_int_equal(rx_conn.take.msg, 1001);
	memset(received, 0x5a, sizeof(received));
	receive(IBV_WC_RECV, 0, 0, SIZE);
	assert_int_equal(rx.tally.bad_messages, 2); /* its bytes and its length */
}

/* UC: a WRITE of which nothing has come, one of which a part has come, and one with a wrong byte. */
TEST_WITH(incomplete_writes_are_lost, NULL, teardown)
{
	uint8_t *slot;

	run_begin("write");
	conf.type = TYPE_UC;
	for (unsigned i = 0; i < 8; i++)
		message();
	messages_acknowledged();
	memset(rx.target.mem + target_slot(&rx.target.map, 1, 0, 3), 0, SIZE);
	memset(rx.target.mem + target_slot(&rx.target.map, 1, 0, 6) + 16, 0, SIZE - 16);
	assert_true(target_is_complete(&rx, &rx_conn, 3));
	assert_false(target_is_complete(&rx, &rx_conn, 4));
	assert_true(target_verify(&rx, &rx_conn, 8));
	assert_string_equal(rx.reason, "");
	assert_int_equal(rx.tally.lost, 2);
	assert_int_equal(rx.tally.messages, 6);
	message();
	messages_acknowledged();
	slot = rx.target.mem + target_slot(&rx.target.map, 1, 0, 8);
	slot[2] ^= 4;
	assert_false(target_verify(&rx, &rx_conn, 9));
	assert_int_equal(rx.tally.bad_messages, 1);
	/* A slot is clear when its next WRITE comes. */
	for (unsigned i = 0; i < SIZE; i++)
		assert_int_equal(slot[i], 0);
}

/* A message is late from the time on at which it was due, not from its post on. */
TEST_WITH(latency_counts_from_the_time_due, NULL, teardown)
{
	(void)state;
	run_begin("write:1,read:1");
	tx.ops = &send_ops;
	tx_conn.qp = NULL;
	conf.burst = 4;
	conf.rate.per_s = 1000000; /* one in 1000 ns */
	tx.tx.depth = SLOTS;
	tx_conn.limit = UINT64_MAX;
	now_ns = 5000000;
	room = 1;
	tx.state = HOST_RUNNING;
	assert_int_equal(rate_start(&tx), 0);
	assert_int_equal(rate_push(&tx), 1);
	now_ns += 9000;
	room = 4;
	assert_int_equal(rate_push(&tx), 4); /* of 9 that are due */
	now_ns += 1000;
	rate_acked(&tx, &tx_conn, 0, 5);
	assert_int_equal(tx.hist.count, 5);
	assert_int_equal(tx.hist.max_ns, 10000);
	assert_int_equal(tx.hist.min_ns, 6000);
	assert_int_equal(tx.rate.of_op[OP_WRITE].count, 3);
	assert_int_equal(tx.rate.of_op[OP_READ].count, 2);
	rate_stop(&tx);
	assert_int_equal(tx.rate.behind, 6);
	rate_close(&tx.rate);
}

/* A FLUSH covers the WRITEs in front of it, when it is complete. */
TEST_WITH(flushes_cover_earlier_writes, NULL, teardown)
{
	struct ibv_send_wr wr = {0};
	uint64_t ring, covered = 0;
	unsigned flags;
	uint32_t len;

	run_begin("write:2,flush:1");
	for (unsigned i = 0; i < 30; i++) {
		message();
		messages_acknowledged();
		if (conf.mix.order[i % conf.mix.period] == OP_FLUSH)
			covered = mix_count(&conf.mix, i, OP_RING);
		assert_int_equal(tx_conn.ring.flushed, covered);
	}
	assert_int_equal(covered, 19); /* one of 20 is behind the last FLUSH */
	run_begin("write");
	message();
	messages_acknowledged();
	assert_int_equal(tx_conn.ring.flushed, 1);
	run_begin("flush");
	ring = rx.target.map.slots * rx.target.map.stride;
	for (unsigned i = 0; i < 20; i++) {
		(void)tx_op_build(&tx, &tx_conn, &wr, buffers, i, &len, &flags);
		assert_int_equal(wr.wr.atomic.remote_addr,
			rx.target.map.addr + target_slot(&rx.target.map, 1, 0, 0));
		assert_int_equal(wr.wr.atomic.compare_add,
			wr.wr.atomic.swap == ROCADE_FLUSH_MR ? 0 : ring);
	}
}

/* The message that fills the ring is signaled, and a check is asked for when it is acknowledged. */
TEST_WITH(a_full_ring_is_signaled, NULL, teardown)
{
	struct ibv_send_wr wr = {0};
	unsigned flags, slots;
	uint32_t len;

	run_begin("write");
	slots = rx.target.map.slots;
	for (unsigned i = 0; i + 1 < slots; i++)
		assert_false(tx_op_build(&tx, &tx_conn, &wr, buffers, i, &len, &flags));
	assert_true(tx_op_build(&tx, &tx_conn, &wr, buffers, slots - 1, &len, &flags));
	assert_int_equal(tx_op_room(&tx, &tx_conn), 0);
	tx_conn.ring.checked = 10;
	assert_int_equal(tx_op_room(&tx, &tx_conn), 10);
}

/* --mode both: the area that is read is that of the end that does not begin, not the own one. */
TEST_WITH(a_read_of_the_own_memory_is_wrong, NULL, teardown)
{
	run_begin("read");
	rx.ops = tx.ops = &both_ops;
	rx.follows = true;
	target_fill(&rx);
	message();
	messages_acknowledged();
	assert_string_equal(tx.reason, "");
	rx.follows = false;
	target_fill(&rx);
	message();
	messages_acknowledged();
	assert_non_null(strstr(tx.reason, "read 1: "));
}
