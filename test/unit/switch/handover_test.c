/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings between threads of the switch, and packets of clients that go through them. */
#include "uplink_fixture.h"

#include "switch/handover.h"

static const uint32_t one_user[CLIENTS] = {0};

TEST(ring_is_bounded_and_in_order)
{
	struct switch_fixture b;
	struct sw_thread *from, *to;
	struct handover *ring;
	uint32_t n;

	fixture_open_threads(&b, one_user, 3);
	from = b.sw->threads[1];
	to = b.sw->threads[2];
	ring = from->to[2];
	assert_null(from->to[1]);
	for (unsigned round = 0; round < 3; round++) {
		for (n = 0; n < HANDOVER_SLOTS + 7; n++) {
			const struct handed_bytes bytes = {
				(uint8_t *)&n, 1, (uint8_t *)&n + 1, sizeof(n)};
			bool room = n < HANDOVER_SLOTS;

			assert_int_equal(
				handover_bytes(from, to, HANDED_DELIVER, NULL, &bytes),
				room);
			assert_int_equal(
				handover_slot(from, to) != NULL, n + 1 < HANDOVER_SLOTS);
		}
		/* Nothing is shown before it is published. */
		assert_int_equal(handover_count(ring), 0);
		handover_publish(from);
		assert_int_equal(from->unpublished, 0);
		assert_int_equal(handover_count(ring), HANDOVER_SLOTS);
		for (uint32_t i = 0; i < HANDOVER_SLOTS; i++) {
			const struct handed *slot = handover_at(ring, 0);

			assert_int_equal(slot->len, sizeof(i));
			assert_memory_equal(slot->bytes, &i, sizeof(i));
			handover_release(ring, 1);
		}
		assert_int_equal(handover_count(ring), 0);
	}
	assert_int_equal(from->stats.handed_over, 3 * HANDOVER_SLOTS);
	fixture_close(&b);
}

TEST(too_many_bytes_are_refused)
{
	static const uint8_t bytes[CLIENT_BUF_SIZE + 1];
	const struct handed_bytes fits = {bytes, 1, bytes, CLIENT_BUF_SIZE};
	const struct handed_bytes more = {bytes, 1, bytes, CLIENT_BUF_SIZE + 1};
	struct switch_fixture b;
	struct sw_thread *from;

	fixture_open_threads(&b, one_user, 2);
	from = b.sw->threads[0];
	assert_false(handover_bytes(from, b.sw->threads[1], HANDED_GROUP, NULL, &more));
	assert_true(handover_bytes(from, b.sw->threads[1], HANDED_GROUP, NULL, &fits));
	assert_int_equal(from->stats.handed_over, 1);
	fixture_close(&b);
}

/* No packet names a client that was freed; the packets of others stay. */
TEST(freed_client_is_forgotten)
{
	static const uint8_t byte;
	const struct handed_bytes bytes = {&byte, 1, &byte, 1};
	struct sw_client *ended, *other;
	struct switch_fixture b;
	struct sw_thread *from;
	struct handover *ring;

	fixture_open_threads(&b, one_user, 2);
	from = b.sw->threads[1];
	ring = from->to[0];
	ended = b.c[2].client;
	other = b.c[0].client;
	assert_true(
		handover_bytes(from, b.sw->threads[0], HANDED_DELIVER, ended, &bytes));
	assert_true(
		handover_bytes(from, b.sw->threads[0], HANDED_DELIVER, other, &bytes));
	handover_publish(from);
	assert_true(
		handover_bytes(from, b.sw->threads[0], HANDED_DELIVER, ended, &bytes));
	client_detach(&b.c[2]);
	sw_ended_free(b.sw);
	handover_publish(from);
	assert_int_equal(handover_count(ring), 3);
	assert_null(handover_at(ring, 0)->client);
	assert_ptr_equal(handover_at(ring, 1)->client, other);
	assert_null(handover_at(ring, 2)->client);
	sw_run(b.sw, b.now);
	assert_int_equal(handover_count(ring), 0);
	assert_int_equal(other->stats.rx_packets, 1);
	fixture_close(&b);
}
