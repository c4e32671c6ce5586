/* SPDX-License-Identifier: BSD-3-Clause */
/* send, write, read: as many messages as possible. Counts receives polled by the server
 * (send) or requests that completed (write, read), never posts. */
#include <string.h>

#include <rte_prefetch.h>

#include "perf_context.h"
#include "result.h"

#define TURN_POSTS 64  /* requests posted per pass */
#define TURN_VISITS 64 /* QPs visited per pass */
#define FLOWS_AHEAD 16 /* QPs prefetched: skipping a full one takes only a moment */
#define END_S 5        /* time that the server has to report */

enum phase { PHASE_WARM, PHASE_WINDOW, PHASE_END };

struct window {
	enum phase phase;
	uint64_t next_tsc; /* when the next phase begins */
	uint64_t from_tsc, from;
	uint64_t done; /* requests completed since the start */
	bool over;
};

/* Posts one list per QP, round robin. */
static int
push(struct bed *bed, uint64_t *turn)
{
	uint64_t burst = bed->plan.burst, depth = bed->plan.sq_depth;
	unsigned visits =
		bed->plan.qps < TURN_VISITS ? (unsigned)bed->plan.qps : TURN_VISITS;
	unsigned posts = 0;

	for (unsigned i = 0; i < visits && posts < TURN_POSTS; i++) {
		struct flow *flow = &bed->flows[*turn];

		rte_prefetch0(flow + FLOWS_AHEAD);
		if (++*turn == bed->plan.qps)
			*turn = 0;
		if (depth - flow_outstanding(flow) < burst)
			continue;
		if (unlikely(!bed_post(bed, flow, (unsigned)burst)))
			return -1;
		posts += (unsigned)burst;
	}
	return 0;
}

/* Advances the phase by the clock. */
static void
window_step(struct bed *bed, struct window *w, struct result *result)
{
	uint64_t now = rte_rdtsc(), hz = rte_get_tsc_hz();
	struct msg msg = {.kind = w->phase == PHASE_WARM ? MSG_BEGIN : MSG_END};

	if (now < w->next_tsc)
		return;
	if (w->phase == PHASE_END) {
		bed_blame(bed, "the server did not report its result");
		bed->gone = true;
		return;
	}
	if (w->phase == PHASE_WARM) {
		w->from_tsc = now;
		w->from = w->done;
		w->next_tsc = now + bed->plan.seconds * hz;
	} else {
		result->client.messages = w->done - w->from;
		result->client.seconds = (double)(now - w->from_tsc) / (double)hz;
		w->next_tsc = now + END_S * hz;
	}
	w->phase++;
	bed->gone |= link_send(bed->link, &msg) != 0;
}

int
rate_client(struct bed *bed, struct result *result)
{
	struct window w = {
		.next_tsc = rte_rdtsc() + bed->plan.warmup_ms * rte_get_tsc_hz() / 1000};
	uint64_t turn = 0;
	struct msg msg;

	while (!bed->gone) {
		bed_poll(bed);
		int64_t done = bed_reap(bed);

		if (unlikely(done < 0 || push(bed, &turn) != 0))
			return -1;
		w.done += (uint64_t)done;
		if (unlikely(bed->turns % 64 == 0))
			window_step(bed, &w, result);
		if (unlikely(bed_turn(bed, &msg)) && msg.kind == MSG_TALLY)
			break;
	}
	if (bed->gone) {
		bed_blame(bed, "the server disconnected");
		return -1;
	}
	result->server = msg.tally;
	bed_tally(bed, &result->client);
	result->tally = bed->plan.mode == MODE_SEND ? result->server : result->client;
	return 0;
}

struct mark {
	uint64_t tsc, count;
};

/* Measures between MSG_BEGIN and MSG_END. Returns true after MSG_END, when the result was
 * sent. */
static bool
server_window(struct bed *bed, const struct msg *msg, struct mark *mark)
{
	struct mark now = {.tsc = rte_rdtsc(), .count = bed->progress};
	struct msg answer = {.kind = MSG_TALLY};

	if (msg->kind == MSG_BEGIN)
		*mark = now;
	if (msg->kind != MSG_END)
		return false;
	answer.tally.messages = now.count - mark->count;
	answer.tally.seconds = (double)(now.tsc - mark->tsc) / (double)rte_get_tsc_hz();
	bed_tally(bed, &answer.tally);
	link_send(bed->link, &answer);
	return true;
}

int
rate_server(struct bed *bed)
{
	struct ibv_wc wc[POLL_MAX];
	struct mark mark = {0, 0};
	struct msg msg;
	bool said;

	while (!bed->gone) {
		bed_poll(bed);
		int n = bed_poll_cq(bed, bed->recv_cq, POLL_MAX, wc);

		if (n != 0 && unlikely(n < 0 || bed_repost(bed, wc, n) != 0))
			return -1;
		said = bed_turn(bed, &msg);
		if (n == 0 && bed->channel != NULL && !said)
			said = events_wait(bed, &msg);
		if (unlikely(said) && server_window(bed, &msg, &mark))
			return 0;
	}
	bed_blame(bed, "the client disconnected");
	return -1;
}
