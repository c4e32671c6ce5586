/* SPDX-License-Identifier: BSD-3-Clause */
/* pingpong, write-lat, read-lat: one message at a time on one QP. The latency is half of
 * a round trip, for READs the whole round trip. */
#include <string.h>

#include "perf_context.h"
#include "result.h"

/* Posts one message. Polls the send CQ once per signaled request, so that the send queue
 * does not fill up. */
static inline bool
message_post(struct perf_context *ctx)
{
	struct conn *conn = &ctx->conns[0];

	if (unlikely(!perf_post(ctx, conn, 1)))
		return false;
	if (likely(conn_outstanding(conn) < ctx->plan.signal_every))
		return true;
	if (unlikely(perf_reap(ctx) < 0))
		return false;
	while (unlikely(conn_outstanding(conn) >= ctx->plan.sq_depth)) {
		struct msg msg;

		perf_poll_engines(ctx);
		if (perf_reap(ctx) < 0 || (perf_tick(ctx, &msg) && ctx->disconnected))
			return false;
	}
	return true;
}

/* Polls until one message has been received. */
static inline bool
message_receive(struct perf_context *ctx, struct ibv_wc *wc)
{
	struct msg msg;
	int n;

	while ((n = perf_poll_cq(ctx, ctx->verbs.recv_cq, 1, wc)) == 0) {
		if (ctx->verbs.channel != NULL && events_sleep(ctx, &msg) &&
			ctx->disconnected)
			return false;
		perf_poll_engines(ctx);
		if (unlikely(perf_tick(ctx, &msg)) && ctx->disconnected)
			return false;
	}
	return n > 0;
}

/* Sends a message and waits for the reply. The previous receive is reposted while the
 * message is in flight. */
static inline bool
message_exchange(struct perf_context *ctx, struct ibv_wc *wc)
{
	if (!message_post(ctx) || (ctx->repost_pending && perf_repost(ctx, wc, 1) != 0))
		return false;
	ctx->repost_pending = message_receive(ctx, wc);
	return ctx->repost_pending;
}

/* write-lat: polls the last byte of the target until it is want. */
static inline bool
byte_wait(struct perf_context *ctx, uint8_t want)
{
	const volatile uint8_t *last = ctx->buffers.target + ctx->plan.size - 1;
	struct msg msg;

	while (*last != want) {
		perf_poll_engines(ctx);
		if (unlikely(perf_tick(ctx, &msg)) && ctx->disconnected)
			return false;
	}
	ctx->watch.progress++;
	return true;
}

static inline bool
completion_wait(struct perf_context *ctx)
{
	struct msg msg;

	while (conn_outstanding(&ctx->conns[0]) != 0) {
		perf_poll_engines(ctx);
		if (unlikely(perf_reap(ctx) < 0) ||
			(unlikely(perf_tick(ctx, &msg)) && ctx->disconnected))
			return false;
	}
	return true;
}

/* Counts from 1 to 255 and again from 1: 0 is the initial content of memory. */
static inline uint8_t
seq_next(uint8_t seq)
{
	return seq == 255 ? 1 : (uint8_t)(seq + 1);
}

static inline bool
round_trip(struct perf_context *ctx, uint8_t seq, struct ibv_wc *wc)
{
	switch (ctx->plan.mode) {
	case MODE_PINGPONG:
		return message_exchange(ctx, wc);
	case MODE_WRITE_LAT:
		ctx->buffers.source[ctx->plan.size - 1] = seq;
		return message_post(ctx) && byte_wait(ctx, seq);
	default:
		return perf_post(ctx, &ctx->conns[0], 1) && completion_wait(ctx);
	}
}

static int
latency_client_loop(struct perf_context *ctx, struct result *result)
{
	uint64_t hz = rte_get_tsc_hz(), before = rte_rdtsc();
	uint64_t warm = before + ctx->plan.warmup_ms * hz / 1000;
	uint64_t end = warm + ctx->plan.seconds * hz;
	double ns = 1e9 / (double)hz / (ctx->plan.mode == MODE_READ_LAT ? 1 : 2);
	struct ibv_wc wc;
	uint8_t seq = 0;

	hist_clear(&result->hist);
	while (before < end) {
		seq = seq_next(seq);
		if (unlikely(!round_trip(ctx, seq, &wc)))
			return -1;
		uint64_t now = rte_rdtsc();

		if (before >= warm)
			hist_add(&result->hist, (uint64_t)((double)(now - before) * ns));
		before = now;
	}
	result->client.messages = result->hist.count;
	result->client.seconds = (double)ctx->plan.seconds;
	return 0;
}

int
latency_client(struct perf_context *ctx, struct result *result)
{
	struct msg msg = {.kind = MSG_END};

	/* Every READ is signaled: its completion ends the round trip. */
	if (ctx->plan.mode == MODE_READ_LAT)
		ctx->plan.signal_every = 1;
	if (latency_client_loop(ctx, result) != 0 || link_send(ctx->link, &msg) != 0 ||
		link_recv(ctx->link, MSG_TALLY, &msg) != 0)
		return perf_set_error(ctx, "the server disconnected");
	result->server = msg.tally;
	perf_fill_tally(ctx, &result->client);
	result->tally = result->client;
	return 0;
}

/* One pass of the server. For read-lat it only polls the engines. */
static inline bool
latency_server_pass(struct perf_context *ctx, uint8_t *seq, struct msg *msg)
{
	struct ibv_wc wc;
	int n;

	perf_poll_engines(ctx);
	switch (ctx->plan.mode) {
	case MODE_PINGPONG:
		n = perf_poll_cq(ctx, ctx->verbs.recv_cq, 1, &wc);
		if (n == 0 && ctx->verbs.channel != NULL && events_sleep(ctx, msg))
			return false;
		if (n != 0 && (!message_post(ctx) || perf_repost(ctx, &wc, n) != 0))
			return false;
		break;
	case MODE_WRITE_LAT:
		if (*(volatile uint8_t *)(ctx->buffers.target + ctx->plan.size - 1) !=
			seq_next(*seq))
			break;
		*seq = seq_next(*seq);
		ctx->buffers.source[ctx->plan.size - 1] = *seq;
		if (!message_post(ctx))
			return false;
		break;
	default:
		break;
	}
	return !unlikely(perf_tick(ctx, msg));
}

int
latency_server(struct perf_context *ctx)
{
	struct msg msg = {.kind = MSG_DISCONNECTED};
	uint8_t seq = 0;

	while (latency_server_pass(ctx, &seq, &msg))
		;
	if (msg.kind != MSG_END)
		return perf_set_error(ctx, "the client disconnected");
	return perf_send_tally(ctx, &(struct tally){0});
}
