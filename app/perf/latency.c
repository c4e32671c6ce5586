/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong, write-lat, read-lat: one message at a time on one QP. The latency is half of
 * a round trip, for READs the whole round trip. */
#include <string.h>

#include "perf_context.h"
#include "result.h"

/* Posts one message. Polls the send CQ once per signaled request, so that the send queue
 * does not fill up. */
static inline bool
ball_post(struct bed *bed)
{
	struct flow *flow = &bed->flows[0];

	if (unlikely(!bed_post(bed, flow, 1)))
		return false;
	if (likely(flow_outstanding(flow) < bed->plan.signal_every))
		return true;
	if (unlikely(bed_reap(bed) < 0))
		return false;
	while (unlikely(flow_outstanding(flow) >= bed->plan.sq_depth)) {
		struct msg msg;

		bed_poll(bed);
		if (bed_reap(bed) < 0 || (bed_turn(bed, &msg) && bed->gone))
			return false;
	}
	return true;
}

/* Polls until one message has been received. */
static inline bool
ball_receive(struct bed *bed, struct ibv_wc *wc)
{
	struct msg msg;
	int n;

	while ((n = bed_poll_cq(bed, bed->recv_cq, 1, wc)) == 0) {
		if (bed->channel != NULL && events_wait(bed, &msg) && bed->gone)
			return false;
		bed_poll(bed);
		if (unlikely(bed_turn(bed, &msg)) && bed->gone)
			return false;
	}
	return n > 0;
}

/* Sends a message and waits for the reply. The previous receive is reposted while the
 * message is in flight. */
static inline bool
ball_throw(struct bed *bed, struct ibv_wc *wc)
{
	if (!ball_post(bed) || (bed->caught && bed_repost(bed, wc, 1) != 0))
		return false;
	bed->caught = ball_receive(bed, wc);
	return bed->caught;
}

/* write-lat: polls the last byte of the target until it is want. */
static inline bool
byte_wait(struct bed *bed, uint8_t want)
{
	const volatile uint8_t *last = bed->target + bed->plan.size - 1;
	struct msg msg;

	while (*last != want) {
		bed_poll(bed);
		if (unlikely(bed_turn(bed, &msg)) && bed->gone)
			return false;
	}
	bed->progress++;
	return true;
}

static inline bool
completion_wait(struct bed *bed)
{
	int64_t done;
	struct msg msg;

	while ((done = bed_reap(bed)) == 0) {
		bed_poll(bed);
		if (unlikely(bed_turn(bed, &msg)) && bed->gone)
			return false;
	}
	return done > 0;
}

/* Counts from 1 to 255 and again from 1: 0 is the initial content of memory. */
static inline uint8_t
seq_next(uint8_t seq)
{
	return seq == 255 ? 1 : (uint8_t)(seq + 1);
}

static inline bool
round_trip(struct bed *bed, uint8_t seq, struct ibv_wc *wc)
{
	switch (bed->plan.mode) {
	case MODE_PINGPONG:
		return ball_throw(bed, wc);
	case MODE_WRITE_LAT:
		bed->source[bed->plan.size - 1] = seq;
		return ball_post(bed) && byte_wait(bed, seq);
	default:
		return bed_post(bed, &bed->flows[0], 1) && completion_wait(bed);
	}
}

static int
client_loop(struct bed *bed, struct result *result)
{
	uint64_t hz = rte_get_tsc_hz(), before = rte_rdtsc();
	uint64_t warm = before + bed->plan.warmup_ms * hz / 1000;
	uint64_t end = warm + bed->plan.seconds * hz;
	double ns = 1e9 / (double)hz / (bed->plan.mode == MODE_READ_LAT ? 1 : 2);
	struct ibv_wc wc;
	uint8_t seq = 0;

	hist_clear(&result->hist);
	while (before < end) {
		seq = seq_next(seq);
		if (unlikely(!round_trip(bed, seq, &wc)))
			return -1;
		uint64_t now = rte_rdtsc();

		if (before >= warm)
			hist_add(&result->hist, (uint64_t)((double)(now - before) * ns));
		before = now;
	}
	result->client.messages = result->hist.count;
	result->client.seconds = (double)bed->plan.seconds;
	return 0;
}

int
latency_client(struct bed *bed, struct result *result)
{
	struct msg msg = {.kind = MSG_END};

	/* Every READ is signaled: its completion ends the round trip. */
	if (bed->plan.mode == MODE_READ_LAT)
		bed->plan.signal_every = 1;
	if (client_loop(bed, result) != 0 || link_send(bed->link, &msg) != 0 ||
		link_wait(bed->link, MSG_TALLY, &msg) != 0) {
		bed_blame(bed, "the server disconnected");
		return -1;
	}
	result->server = msg.tally;
	bed_tally(bed, &result->client);
	result->tally = result->client;
	return 0;
}

/* One pass of the server. For read-lat it only polls the engines. */
static inline bool
server_turn(struct bed *bed, uint8_t *seq, struct msg *msg)
{
	struct ibv_wc wc;
	int n;

	bed_poll(bed);
	switch (bed->plan.mode) {
	case MODE_PINGPONG:
		n = bed_poll_cq(bed, bed->recv_cq, 1, &wc);
		if (n == 0 && bed->channel != NULL && events_wait(bed, msg))
			return false;
		if (n != 0 && (!ball_post(bed) || bed_repost(bed, &wc, n) != 0))
			return false;
		break;
	case MODE_WRITE_LAT:
		if (*(volatile uint8_t *)(bed->target + bed->plan.size - 1) !=
			seq_next(*seq))
			break;
		*seq = seq_next(*seq);
		bed->source[bed->plan.size - 1] = *seq;
		if (!ball_post(bed))
			return false;
		break;
	default:
		break;
	}
	return !unlikely(bed_turn(bed, msg));
}

int
latency_server(struct bed *bed)
{
	struct msg msg = {.kind = MSG_GONE};
	uint8_t seq = 0;

	while (server_turn(bed, &seq, &msg))
		;
	if (msg.kind != MSG_END) {
		bed_blame(bed, "the client disconnected");
		return -1;
	}
	msg = (struct msg){.kind = MSG_TALLY};
	bed_tally(bed, &msg.tally);
	return link_send(bed->link, &msg);
}
