/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent for extensions: when it asks, what it believes, what it keeps, and how much others
 * can make it do. */
#include <string.h>

#include "case.h"
#include "port/ext_query.h"
#include "wire/ext_mad.h"
#include "wire/extensions.h"

static struct ext_query *q;
static struct port_stats stats;
static struct gsi_msg out;
static uint64_t now;
static const uint8_t ours[16] = {0xfd, [15] = 1};
static uint32_t extensions;

static void
open_agent(bool off)
{
	const struct random_key key = {{1, 2}};

	memset(&stats, 0, sizeof(stats));
	now = 5 * NS_PER_SEC;
	assert_int_equal(ext_query_create(&key, off, &q), 0);
	assert_true(ext_query_deadline(q) == TIME_NEVER);
}

static const uint8_t *
host(unsigned number)
{
	static uint8_t gid[16];

	memset(gid, 0, sizeof(gid));
	gid[0] = 0xfd;
	gid[12] = 9;
	gid[13] = (uint8_t)(number >> 16);
	gid[14] = (uint8_t)(number >> 8);
	gid[15] = (uint8_t)number;
	return gid;
}

static enum ext_known
ask(unsigned number)
{
	return ext_query_ask(q, ours, host(number), now, &extensions);
}

static bool
sent(void)
{
	if (!ext_query_tx(q, &out, &stats, now))
		return false;
	ext_query_tx_done(q, &out, true, &stats, now);
	return true;
}

/* The answer of the host that was asked. */
static struct gsi_msg
answer_to(const struct gsi_msg *query)
{
	struct gsi_msg answer = *query;

	answer.bytes[3] = 0x81;
	return answer;
}

static void
arrives(const struct gsi_msg *msg)
{
	ext_query_rx(q, msg, &stats, now);
}

/* Queries leave at 0, 1, 30 and 1000 ms, and silence counts as an answer 2 s after the
 * first. */
TEST(silent_host_is_asked_four_times)
{
	static const uint64_t at_ms[] = {0, 1, 30, 1000};
	uint64_t from, tid = 0;
	uint32_t generation;
	struct ext_mad mad;

	open_agent(false);
	from = now;
	generation = ext_query_generation(q);
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t due = ext_query_deadline(q);

		assert_true(RTE_MAX(due, from) == from + at_ms[i] * NS_PER_MS);
		now = RTE_MAX(due, from) - 1;
		assert_true(i == 0 || !sent());
		now++;
		assert_true(sent());
		assert_false(out.answer);
		assert_memory_equal(out.sgid, ours, 16);
		assert_memory_equal(out.dgid, host(1), 16);
		assert_int_equal(ext_mad_read(out.bytes, &mad), EXT_MAD_QUERY);
		assert_int_equal(mad.extensions, EXT_ALL);
		assert_true(mad.tid != 0 && (i == 0 || mad.tid == tid));
		tid = mad.tid;
		assert_false(sent());
		assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	}
	assert_true(ext_query_deadline(q) == from + EXT_QUERY_SILENCE_NS);
	now = from + EXT_QUERY_SILENCE_NS - 1;
	assert_false(sent());
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	assert_int_equal(ext_query_generation(q), generation);
	now++;
	assert_false(sent());
	assert_int_equal(ask(1), EXT_KNOWN);
	assert_int_equal(extensions, 0);
	assert_int_equal(ext_query_generation(q), generation + 1);
	assert_int_equal(stats.ext_queries, 4);
	assert_int_equal(stats.ext_hosts_silent, 1);
	assert_true(ext_query_deadline(q) == TIME_NEVER);
	/* The silence is forgotten. */
	now += EXT_QUERY_KEPT_NS - 1;
	assert_int_equal(ask(1), EXT_KNOWN);
	now++;
	assert_int_equal(
		ext_query_find(q, ours, host(1), now, &extensions), EXT_KNOWN_NOT);
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	assert_true(sent());
	assert_int_equal(ext_mad_read(out.bytes, &mad), EXT_MAD_QUERY);
	assert_true(mad.tid != tid);
	ext_query_destroy(q);
}

/* Neighbour resolution takes 10 ms: queries that are not sent meanwhile are not counted as
 * tries, and the next ones follow the first that is sent. */
TEST(queries_wait_for_neighbour_resolution)
{
	static const uint64_t at_ms[] = {0, 1, 30, 1000};
	uint64_t from;

	open_agent(false);
	from = now;
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(RTE_MAX(ext_query_deadline(q), from) ==
			    from + i * EXT_QUERY_RESOLVE_NS);
		now = from + i * EXT_QUERY_RESOLVE_NS;
		assert_true(ext_query_tx(q, &out, &stats, now));
		ext_query_tx_done(q, &out, false, &stats, now);
		assert_false(sent());
	}
	assert_int_equal(stats.ext_queries, 0);
	from += 10 * EXT_QUERY_RESOLVE_NS;
	for (unsigned i = 0; i < 4; i++) {
		assert_true(ext_query_deadline(q) == from + at_ms[i] * NS_PER_MS);
		now = ext_query_deadline(q);
		assert_true(sent());
	}
	assert_true(ext_query_deadline(q) == from + EXT_QUERY_SILENCE_NS);
	ext_query_destroy(q);
}

/* Resolution without an end counts as silence. */
TEST(query_ends_without_neighbour_resolution)
{
	uint64_t from;

	open_agent(false);
	from = now;
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	while (ext_query_deadline(q) != TIME_NEVER &&
		now < from + 3 * EXT_QUERY_SILENCE_NS) {
		now = RTE_MAX(now, ext_query_deadline(q));
		while (ext_query_tx(q, &out, &stats, now))
			ext_query_tx_done(q, &out, false, &stats, now);
	}
	assert_true(now == from + 2 * EXT_QUERY_SILENCE_NS);
	assert_int_equal(stats.ext_queries, 0);
	assert_int_equal(stats.ext_hosts_silent, 1);
	assert_int_equal(ask(1), EXT_KNOWN);
	ext_query_destroy(q);
}

/* As silence, an error is an answer; a yes is kept for as long. */
TEST(answers_are_kept)
{
	uint32_t generation;
	struct gsi_msg answer;

	open_agent(false);
	for (unsigned no = 0; no < 2; no++) {
		assert_int_equal(ask(no), EXT_KNOWN_ASKED);
		assert_true(sent());
		answer = answer_to(&out);
		answer.bytes[5] = no ? 0x0C : 0; /* as Linux answers */
		generation = ext_query_generation(q);
		now += NS_PER_MS;
		arrives(&answer);
		assert_int_equal(ext_query_generation(q), generation + 1);
		assert_true(ext_query_deadline(q) == TIME_NEVER);
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(ask(no), EXT_KNOWN);
			assert_int_equal(extensions, no ? 0 : EXT_SACK);
			now += EXT_QUERY_KEPT_NS - 1;
		}
		assert_int_equal(ask(no), EXT_KNOWN_ASKED);
		assert_int_equal(extensions, 0);
		assert_true(sent());
		answer = answer_to(&out);
		arrives(&answer);
		assert_int_equal(ask(no), EXT_KNOWN);
	}
	assert_int_equal(stats.ext_hosts_some, 3);
	assert_int_equal(stats.ext_hosts_none, 1);
	ext_query_destroy(q);
}

static void
expect_unasked(struct gsi_msg msg)
{
	uint64_t before = stats.drop[DROP_ext_unasked];

	arrives(&msg);
	assert_int_equal(stats.drop[DROP_ext_unasked], before + 1);
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
}

/* An answer is believed from the host that was asked, at the address that asked, with the
 * transaction ID, while the query is open. */
TEST(other_answers_are_dropped)
{
	struct gsi_msg answer, wrong;

	open_agent(false);
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	assert_true(sent());
	answer = answer_to(&out);
	for (unsigned byte = 8; byte < 16; byte++) {
		wrong = answer;
		wrong.bytes[byte] ^= 1;
		expect_unasked(wrong);
	}
	wrong = answer;
	wrong.sgid[15] ^= 2;
	expect_unasked(wrong);
	wrong = answer;
	wrong.dgid[15] ^= 2;
	expect_unasked(wrong);
	wrong = answer;
	wrong.bytes[3] = 0x82;
	arrives(&wrong);
	assert_int_equal(stats.drop[DROP_ext_format], 1);
	arrives(&answer);
	assert_int_equal(ask(1), EXT_KNOWN);
	/* A second one, and one that would change the first. */
	wrong = answer;
	wrong.bytes[5] = 0x0C;
	arrives(&wrong);
	assert_int_equal(stats.drop[DROP_ext_unasked], 11);
	assert_int_equal(ask(1), EXT_KNOWN);
	assert_int_equal(extensions, EXT_SACK);
	ext_query_destroy(q);
}

/* A query for which an answer would be guessed has not left yet. */
TEST(no_answer_comes_before_the_query)
{
	struct gsi_msg answer;
	struct random_numbers tids;
	const struct random_key key = {{1, 2}};
	struct ext_mad mad = {.extensions = EXT_SACK};

	open_agent(false);
	random_numbers_init(&tids, &key, RANDOM_EXT_TIDS);
	mad.tid = random_next(&tids);
	memcpy(answer.sgid, ours, 16);
	memcpy(answer.dgid, host(1), 16);
	ext_mad_write(answer.bytes, EXT_MAD_ANSWER, &mad);
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	expect_unasked(answer);
	assert_true(sent());
	arrives(&answer);
	assert_int_equal(ask(1), EXT_KNOWN);
	ext_query_destroy(q);
}

static struct gsi_msg
query_from(unsigned number, uint64_t tid)
{
	const struct ext_mad mad = {.tid = tid, .extensions = EXT_ALL};
	struct gsi_msg query;

	memcpy(query.sgid, ours, 16);
	memcpy(query.dgid, host(number), 16);
	ext_mad_write(query.bytes, EXT_MAD_QUERY, &mad);
	return query;
}

/* Queries are answered in their order, by what this host understands. A query says nothing:
 * anybody can send it in the name of another host. */
TEST(queries_are_answered)
{
	for (unsigned off = 0; off < 2; off++) {
		open_agent(off);
		for (unsigned i = 0; i < 3; i++) {
			struct gsi_msg query = query_from(i, 77 + i);

			arrives(&query);
			assert_true(ext_query_deadline(q) == 0);
		}
		for (unsigned i = 0; i < 3; i++) {
			struct ext_mad mad;

			assert_true(sent());
			assert_true(out.answer);
			assert_memory_equal(out.sgid, ours, 16);
			assert_memory_equal(out.dgid, host(i), 16);
			assert_int_equal(ext_mad_read(out.bytes, &mad), EXT_MAD_ANSWER);
			assert_true(mad.tid == 77 + i);
			assert_int_equal(mad.extensions, off ? 0 : EXT_ALL);
		}
		assert_false(sent());
		assert_true(ext_query_deadline(q) == TIME_NEVER);
		assert_int_equal(stats.ext_answers, 3);
		assert_int_equal(ext_query_find(q, ours, host(1), now, &extensions),
			off ? EXT_KNOWN : EXT_KNOWN_NOT);
		assert_int_equal(ext_query_own(q), off ? 0 : EXT_ALL);
		ext_query_destroy(q);
	}
}

/* Spoofed queries get at most an answer a millisecond, after a burst. */
TEST(rate_of_answers_is_limited)
{
	unsigned answers = 0;

	open_agent(false);
	for (unsigned i = 0; i < 100 * EXT_QUERY_ANSWER_BURST; i++) {
		struct gsi_msg query = query_from(i, i);

		now += NS_PER_MS / 100;
		arrives(&query);
		answers += sent();
		assert_false(sent());
	}
	assert_in_range(
		answers, 2 * EXT_QUERY_ANSWER_BURST - 2, 2 * EXT_QUERY_ANSWER_BURST + 2);
	assert_int_equal(
		stats.drop[DROP_ext_limit], 100 * EXT_QUERY_ANSWER_BURST - answers);
	/* More than may wait. */
	now += NS_PER_SEC;
	for (unsigned i = 0; i < 2 * EXT_QUERY_ANSWER_BURST; i++) {
		struct gsi_msg query = query_from(i, i);

		now += NS_PER_MS;
		arrives(&query);
	}
	for (answers = 0; sent(); answers++)
		assert_memory_equal(out.dgid, host(answers), 16);
	assert_int_equal(answers, EXT_QUERY_ANSWER_BURST);
	ext_query_destroy(q);
}

TEST(agent_that_is_off_sends_no_query)
{
	open_agent(true);
	assert_int_equal(ask(1), EXT_KNOWN);
	assert_int_equal(extensions, 0);
	assert_false(sent());
	assert_true(ext_query_deadline(q) == TIME_NEVER);
	ext_query_destroy(q);
}

/* The number of open queries and the rate at which queries leave have a limit. An open query is
 * not lost. */
TEST(queries_are_limited)
{
	struct gsi_msg first;
	unsigned burst = 0;

	open_agent(false);
	for (unsigned i = 0; i < 10 * EXT_QUERY_OPEN; i++)
		assert_int_equal(
			ask(i), i < EXT_QUERY_OPEN ? EXT_KNOWN_ASKED : EXT_KNOWN_NOT);
	assert_true(sent());
	first = answer_to(&out);
	for (burst = 1; sent(); burst++)
		;
	assert_int_equal(burst, EXT_QUERY_SEND_BURST);
	assert_true(ext_query_deadline(q) == now + EXT_QUERY_SEND_NS);
	for (unsigned ms = 0; ms < 10; ms++) {
		now = ext_query_deadline(q);
		assert_true(sent());
		assert_false(sent());
	}
	assert_int_equal(ask(5000), EXT_KNOWN_NOT);
	arrives(&first);
	assert_int_equal(ask(5000), EXT_KNOWN_ASKED);
	assert_int_equal(ask(5001), EXT_KNOWN_NOT);
	assert_int_equal(ask(0), EXT_KNOWN);
	/* When the others have not answered, there is room again. */
	now += EXT_QUERY_SILENCE_NS;
	while (stats.ext_hosts_silent < EXT_QUERY_OPEN) {
		uint64_t due = ext_query_deadline(q);

		assert_true(due != TIME_NEVER);
		now = RTE_MAX(now, due);
		(void)sent();
	}
	assert_int_equal(ask(5001), EXT_KNOWN_ASKED);
	assert_true(stats.ext_queries <= EXT_QUERY_TRIES * (EXT_QUERY_OPEN + 1));
	ext_query_destroy(q);
}

/* The host that has been known for longest makes room; one that is asked does not. */
TEST(oldest_answer_makes_room)
{
	struct gsi_msg answer;

	open_agent(false);
	assert_int_equal(ask(0), EXT_KNOWN_ASKED);
	assert_true(sent());
	answer = answer_to(&out);
	for (unsigned i = 1; i <= EXT_QUERY_HOSTS; i++) {
		struct gsi_msg more;

		now += NS_PER_MS;
		assert_int_equal(ask(i), EXT_KNOWN_ASKED);
		while (memcmp(out.dgid, host(i), 16) != 0)
			assert_true(sent());
		more = answer_to(&out);
		arrives(&more);
	}
	/* Host 1 was replaced by the last. */
	assert_int_equal(
		ext_query_find(q, ours, host(1), now, &extensions), EXT_KNOWN_NOT);
	for (unsigned i = 2; i <= EXT_QUERY_HOSTS; i++)
		assert_int_equal(ask(i), EXT_KNOWN);
	assert_int_equal(ask(0), EXT_KNOWN_ASKED);
	arrives(&answer);
	assert_int_equal(ask(0), EXT_KNOWN);
	assert_int_equal(extensions, EXT_SACK);
	ext_query_destroy(q);
}

/* Two addresses of this host know different things of another one. */
TEST(own_address_counts)
{
	static const uint8_t second[16] = {0xfd, [15] = 2};
	struct gsi_msg answer;

	open_agent(false);
	assert_int_equal(ask(1), EXT_KNOWN_ASKED);
	assert_true(sent());
	answer = answer_to(&out);
	arrives(&answer);
	assert_int_equal(ask(1), EXT_KNOWN);
	assert_int_equal(
		ext_query_ask(q, second, host(1), now, &extensions), EXT_KNOWN_ASKED);
	assert_true(sent());
	assert_memory_equal(out.sgid, second, 16);
	ext_query_destroy(q);
}
