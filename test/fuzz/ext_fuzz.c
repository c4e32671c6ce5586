/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent for extensions: hosts that are asked, messages of any content, answers with and
 * without errors, time. A step is an operation byte and its arguments. */
#include "base/base_stats.h"
#include "fuzz.h"
#include "port/ext_query.h"
#include "wire/ext_mad.h"
#include "wire/extensions.h"

#define STEPS 2000
#define KEPT 16 /* queries of which answers can be made */

struct world {
	struct ext_query *q;
	struct port_stats stats;
	struct gsi_msg kept[KEPT];
	unsigned kept_count;
	bool off;
	uint64_t now, from;
	uint64_t rx_queries;
};

static void
gids_take(struct input *in, uint8_t ours[16], uint8_t theirs[16])
{
	memset(ours, 0, 16);
	memset(theirs, 0, 16);
	ours[15] = take8(in) & 1;
	theirs[14] = take8(in) & 7;
	theirs[15] = take8(in);
}

static void
step_ask(struct world *w, struct input *in)
{
	uint8_t ours[16], theirs[16];
	uint32_t extensions = 99, before;
	enum ext_known known;

	gids_take(in, ours, theirs);
	known = ext_query_find(w->q, ours, theirs, w->now, &before);
	FUZZ_CHECK(ext_query_ask(w->q, ours, theirs, w->now, &extensions) != EXT_KNOWN ||
		   known == EXT_KNOWN);
	FUZZ_CHECK(extensions == before && (extensions & ~EXT_ALL) == 0);
	FUZZ_CHECK(extensions == 0 || (known == EXT_KNOWN && !w->off));
}

static void
message_rx(struct world *w, const struct gsi_msg *msg)
{
	struct ext_mad mad;

	w->rx_queries += ext_mad_read(msg->bytes, &mad) == EXT_MAD_QUERY;
	ext_query_rx(w->q, msg, &w->stats, w->now);
}

/* Any message, often of the class. */
static void
step_message(struct world *w, struct input *in, unsigned how)
{
	struct gsi_msg msg = {.answer = false};
	size_t len = how & 1 ? 44 : take8(in);
	const uint8_t *bytes;

	gids_take(in, msg.sgid, msg.dgid);
	bytes = take_bytes(in, &len);
	memcpy(msg.bytes, bytes, len);
	if (how & 1) {
		msg.bytes[0] = msg.bytes[2] = 1;
		msg.bytes[1] = EXT_MAD_CLASS;
		msg.bytes[3] = how & 2 ? 0x81 : 0x01;
		memcpy(msg.bytes + 16, "\0\1", 2);
		memcpy(msg.bytes + 37, "\x02\x52\x4f", 3);
	}
	message_rx(w, &msg);
}

/* An answer to a query that was sent, as it is or with a byte changed. The changed byte may
 * be the method, which makes it a query. */
static void
step_answer(struct world *w, struct input *in, unsigned how)
{
	struct gsi_msg msg = w->kept[take8(in) % KEPT];

	msg.bytes[3] = 0x81;
	if (how & 1)
		msg.bytes[take8(in) % 44] ^= take8(in);
	if (how & 2)
		msg.dgid[15] ^= take8(in);
	message_rx(w, &msg);
}

static void
step_send(struct world *w)
{
	bool due = ext_query_deadline(w->q) <= w->now;
	struct ext_mad mad;
	struct gsi_msg msg;

	while (ext_query_tx(w->q, &msg, &w->stats, w->now)) {
		enum ext_mad_kind kind = ext_mad_read(msg.bytes, &mad);

		FUZZ_CHECK(due);
		FUZZ_CHECK(kind == (msg.answer ? EXT_MAD_ANSWER : EXT_MAD_QUERY));
		FUZZ_CHECK(mad.extensions == (w->off ? 0 : EXT_ALL));
		if (kind == EXT_MAD_QUERY)
			w->kept[w->kept_count++ % KEPT] = msg;
		ext_query_tx_done(w->q, &msg, true, &w->stats, w->now);
	}
	FUZZ_CHECK(ext_query_deadline(w->q) > w->now);
}

static void
world_check(const struct world *w)
{
	uint64_t ms = (w->now - w->from) / NS_PER_MS;
	const struct port_stats *s = &w->stats;

	FUZZ_CHECK(s->ext_answers <= w->rx_queries);
	FUZZ_CHECK(s->ext_answers <= ms + EXT_QUERY_ANSWER_BURST + 1);
	FUZZ_CHECK(s->ext_queries <= ms + EXT_QUERY_SEND_BURST + 1);
	FUZZ_CHECK(s->ext_hosts_some + s->ext_hosts_none + s->ext_hosts_silent ==
		   ext_query_generation(w->q));
	FUZZ_CHECK(s->ext_hosts_some + s->ext_hosts_none <= s->ext_queries);
	FUZZ_CHECK(!w->off || s->ext_queries == 0);
}

static void
step_run(struct world *w, struct input *in)
{
	unsigned op = take8(in);

	switch (op % 6) {
	case 0:
	case 1:
		step_ask(w, in);
		break;
	case 2:
		step_message(w, in, op / 6);
		break;
	case 3:
		step_answer(w, in, op / 6);
		break;
	case 4:
		step_send(w);
		break;
	default:
		w->now += (uint64_t)take8(in) << (op / 6 % 32);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct random_key key = {{1, 2}};
	struct input in = {data, size};
	struct world w = {.off = (take8(&in) & 7) == 7, .now = NS_PER_SEC};

	w.from = w.now;
	FUZZ_CHECK(ext_query_create(&key, w.off, &w.q) == 0);
	for (unsigned i = 0; i < STEPS && in.left != 0; i++) {
		step_run(&w, &in);
		world_check(&w);
	}
	ext_query_destroy(w.q);
	return 0;
}
