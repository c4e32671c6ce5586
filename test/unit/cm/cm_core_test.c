/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager as a whole: configuration, ids, counters, TX queue. */
#include <errno.h>
#include <string.h>

#include "case.h"
#include "cm_pair.h"
#include "cm/table.h"

static struct cm_pair pair;

TEST(invalid_configuration_is_refused)
{
	struct cm_conf good, conf;
	struct cm *cm;

	cm_conf_default(&good);
	assert_int_equal(cm_create(&good, 0, &cm), 0);
	cm_destroy(cm);
#define REFUSED(change)                                                                  \
	do {                                                                             \
		conf = good;                                                             \
		change;                                                                  \
		assert_int_equal(cm_create(&conf, 0, &cm), -EINVAL);                     \
	} while (0)
	REFUSED(conf.max_conns = 0);
	REFUSED(conf.max_conns = 65537);
	REFUSED(conf.response_timeout = CM_TIMEOUT_MAX + 1);
	REFUSED(conf.packet_life = CM_TIMEOUT_MAX + 1);
	REFUSED(conf.ack_timeout = CM_MRA_MAX + 1);
	REFUSED(conf.mra_timeout = CM_MRA_MAX + 1);
	REFUSED(conf.max_retries = 16);
#undef REFUSED
}

/* Ids differ between seeds, are not zero, and are not reused soon. */
TEST(ids_are_random_and_not_reused_soon)
{
	static uint32_t seen[4000];
	unsigned count = 0;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct cm_conf conf;
		struct cm *cm;
		struct cm_path path;

		cm_conf_default(&conf);
		conf.random.word[0] = seed;
		conf.max_conns = 3;
		assert_int_equal(cm_create(&conf, 0, &cm), 0);
		for (unsigned i = 0; i < 200; i++) {
			struct cm_request r = request_from(A, 0x100);
			struct cm_conn *conn;
			struct mad mad;

			assert_int_equal(cm_connect(cm, &r, NULL, 0, &conn), 0);
			assert_int_not_equal(conn->local_id, 0);
			assert_ptr_equal(conn_find(cm, conn->local_id), conn);
			seen[count++] = conn->local_id;
			cm_release(conn, 0);
			while (cm_tx(cm, &mad, &path))
				;
		}
		assert_null(conn_find(cm, seen[count - 1]));
		cm_destroy(cm);
	}
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(seen[i], seen[k]);
}

/* Peers see the IDs and the transaction IDs of requests to them. They cannot compute
 * those of other requests: no step from one ID to the next comes twice. */
TEST(ids_do_not_reveal_the_next)
{
	enum { COUNT = 100 };
	struct cm_conn *conns[COUNT];
	uint32_t id_steps[COUNT], tid_steps[COUNT];

	cm_pair_init(&pair, COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		struct cm_request r = request_from(A, 0x100 + i);
		struct mad req;

		assert_int_equal(
			cm_connect(pair.cm[A], &r, NULL, pair.now, &conns[i]), 0);
		req = mad_take(&pair, A);
		assert_int_equal(mad_local_id(&req), conns[i]->local_id);
		id_steps[i] = conns[i]->local_id - (i == 0 ? 0 : conns[i - 1]->local_id);
		tid_steps[i] =
			(uint32_t)(conns[i]->tid - (i == 0 ? 0 : conns[i - 1]->tid));
		for (unsigned k = 0; k < i; k++) {
			assert_int_not_equal(id_steps[i], id_steps[k]);
			assert_int_not_equal(tid_steps[i], tid_steps[k]);
		}
	}
	for (unsigned i = 0; i < COUNT; i++) {
		cm_release(conns[i], pair.now);
		mad_take(&pair, A);
	}
	cm_pair_fini(&pair);
}

/* A message that does not fit the TX queue is dropped and counted. The retry timer sends
 * it again, as if the wire had lost it. */
TEST(full_tx_queue_counts_drops)
{
	struct cm_request r = request_from(A, 0x100);
	struct cm_conn *conns[CM_TX_QUEUE_LEN + 10];
	struct cm_path path;
	struct mad mad;

	cm_pair_init(&pair, CM_TX_QUEUE_LEN + 10);
	for (unsigned i = 0; i < CM_TX_QUEUE_LEN + 10; i++)
		assert_int_equal(
			cm_connect(pair.cm[A], &r, NULL, pair.now, &conns[i]), 0);
	for (unsigned i = 0; i < CM_TX_QUEUE_LEN; i++)
		assert_true(cm_tx(pair.cm[A], &mad, &path));
	assert_false(cm_tx(pair.cm[A], &mad, &path));
	assert_int_equal(pair.cm[A]->stats.tx_full, 10);
	assert_int_equal(pair.cm[A]->stats.tx, CM_TX_QUEUE_LEN);
	for (unsigned i = 0; i < CM_TX_QUEUE_LEN + 10; i++) {
		cm_release(conns[i], pair.now);
		cm_tx(pair.cm[A], &mad, &path);
	}
	pair.cm[A]->stats.tx_full = 0;
	cm_pair_fini(&pair);
}

/* Each counter has a name and a text, in the order of the structure. */
TEST(each_counter_has_name_and_text)
{
	const struct cm_stats *stats;

	cm_pair_init(&pair, 4);
	for (unsigned i = 0; i < CM_STAT_COUNT; i++) {
		assert_true(strlen(cm_stat_rows[i].name) > 1);
		assert_true(strlen(cm_stat_rows[i].text) > 4);
	}
	assert_string_equal(cm_stat_rows[0].name, "rx");
	assert_string_equal(cm_stat_rows[CM_STAT_COUNT - 1].name, "drop_field");
	stats = cm_stats_of(pair.cm[B]);
	assert_int_equal(cm_rx(pair.cm[B], (const uint8_t *)"", 0, &pair.flights[0].path,
				 pair.now),
		CM_DROP_length);
	assert_int_equal(stats->rx, 1);
	assert_int_equal(stats->drop[CM_DROP_length], 1);
	cm_pair_fini(&pair);
}

/* Connections to a host that does not answer, all of them opened at the same time. */
TEST(expired_timers_are_handled_in_batches)
{
	enum { CONNS = 500 };
	struct cm_conn *conns[CONNS];
	struct cm_conf conf;
	struct cm *cm;
	struct mad mad;
	struct cm_path path;
	uint64_t now = NS_PER_SEC, resent = 0;
	unsigned calls = 0;

	cm_conf_default(&conf);
	conf.max_conns = CONNS;
	assert_int_equal(cm_create(&conf, now, &cm), 0);
	for (unsigned i = 0; i < CONNS; i++) {
		struct cm_request r = request_from(A, 0x100 + i);

		assert_int_equal(cm_connect(cm, &r, NULL, now, &conns[i]), 0);
		assert_true(cm_tx(cm, &mad, &path));
	}
	now += REQ_WAIT_NS + CONNS * WHEEL_TICK_NS + NS_PER_MS;
	for (; cm_deadline(cm) <= now; calls++) {
		unsigned sent = 0;

		cm_run(cm, now);
		while (cm_tx(cm, &mad, &path))
			sent++;
		assert_in_range(sent, 1, CM_TIMERS_BATCH);
		resent += sent;
	}
	assert_int_equal(resent, CONNS);
	assert_in_range(calls, CONNS / CM_TIMERS_BATCH, 2 * CONNS / CM_TIMERS_BATCH);
	assert_int_equal(cm_stats_of(cm)->tx_full, 0);
	for (unsigned i = 0; i < CONNS; i++)
		cm_release(conns[i], now);
	cm_destroy(cm);
}

/* Only the connection's own message of this kind is lost, and only before it has left. */
TEST(a_message_is_lost_on_purpose)
{
	struct cm_request req = request_from(A, 0x112);
	struct cm_conn *a, *other;

	cm_pair_init(&pair, 4);
	other = active_connect(&pair);
	assert_int_equal(cm_connect(pair.cm[A], &req, "a", pair.now, &a), 0);
	cm_lose(a, MAD_RTU);
	cm_lose(other, MAD_REQ);
	assert_int_equal(pair.cm[A]->stats.faults, 0);
	cm_lose(a, MAD_REQ);
	assert_int_equal(pair.cm[A]->stats.faults, 1);
	cm_pair_drain(&pair);
	expect_wire(&pair, "a:REQ");
	cm_lose(other, MAD_REQ);
	assert_int_equal(pair.cm[A]->stats.faults, 1);
	cm_release(expect_event(&pair, B, CM_EVENT_REQUEST).conn, pair.now);
	expect_no_event(&pair, B);
	cm_pair_advance(&pair, 2 * REQ_WAIT_NS);
	cm_release(expect_event(&pair, B, CM_EVENT_REQUEST).conn, pair.now);
	cm_pair_drain(&pair);
	expect_event(&pair, A, CM_EVENT_REJECTED);
	expect_event(&pair, A, CM_EVENT_REJECTED);
	cm_release(a, pair.now);
	cm_release(other, pair.now);
	cm_pair_advance(&pair, 2 * REQ_WAIT_NS);
	cm_pair_fini(&pair);
}
