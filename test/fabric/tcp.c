/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cubic.h"
#include "numbers.h"
#include "random.h"
#include "tcp.h"

#define SEGMENT_LEN                                                                      \
	1514 /* of a frame: Ethernet, IPv4, TCP with time stamps, 1,448 bytes */
#define ACK_LEN 86
#define NAMED 32  /* segments that an acknowledgement names: the last ones that arrived */
#define ROOM 4096 /* segments from the oldest one: the receiver's buffer */
#define SENT 16384  /* transmissions about which nothing is known yet */
#define OWN_QUEUE 8 /* frames that a host has in its own queue */
#define LATER 3     /* segments sent later that must have arrived */
#define RTO_MIN (200 * PS_PER_MS)
#define RTO_MAX (60000 * PS_PER_MS)
#define RTT_UNKNOWN PS_PER_MS /* a probe before the first round trip waits twice this */
#define SPREAD (10 * PS_PER_US)

enum state {
	FLYING,
	HELD, /* the receiver has it */
	LOST,
};

struct segment {
	uint64_t sent;
	uint32_t serial; /* of its last transmission */
	uint8_t state;   /* enum state */
	bool again;      /* it was sent more than once */
};

struct connection {
	uint32_t index;
	struct outq queue; /* of its host */
	struct cubic cubic;
	/* Segments by number: all before una were acknowledged, those from next on not sent. */
	uint32_t una, next;
	struct segment segment[ROOM];
	uint32_t flying, lost;
	uint32_t resend; /* no segment before it is lost */
	/* Transmissions in their order: the serial of the oldest one that is not judged, and of the
	 * next one; the newest one that has arrived. */
	uint32_t order[SENT]; /* numbers */
	uint32_t judged, serial, newest;
	uint64_t newest_sent;
	bool arrived; /* any */
	/* The recovery ends when the segments before this one have arrived. */
	bool recovering;
	uint32_t recover;
	uint64_t srtt, rttvar;
	unsigned backoff;
	bool probed;
	uint64_t deadline;
	struct event timer, room; /* room: there is some in its own queue again */
	/* The receiver: all segments before `expected` have arrived. */
	uint32_t expected;
	bool got[ROOM];
	uint32_t last[NAMED];
	/* Counters, and that of segments received at the begin of the measurement. */
	uint64_t sent, resent, before;
};

struct tcp {
	struct sw sw;
	struct outq answers; /* of the receiver */
	struct connection *connection;
	unsigned count;
};

/* In the bytes of a frame. */
struct note {
	uint32_t connection;
	uint32_t
		number; /* data: of the segment; acknowledgement: all before it have arrived */
	uint32_t last[NAMED]; /* acknowledgement */
};

/* ---- The sender ---- */

static void
timer_set(struct connection *c)
{
	uint64_t srtt = c->srtt != 0 ? c->srtt : RTT_UNKNOWN;
	uint64_t wait = RTE_MAX(srtt + 4 * c->rttvar, RTO_MIN) << c->backoff;

	if (!c->probed)
		wait = 2 * srtt;
	c->deadline = clock_ps + RTE_MIN(wait, RTO_MAX);
	/* A timer that ends early is set again when it ends. */
	if (!event_is_scheduled(&c->timer) || c->timer.when > c->deadline)
		event_at(&c->timer, c->deadline);
}

static void
transmit(struct connection *c, uint32_t number)
{
	struct segment *s = &c->segment[number % ROOM];
	struct note note = {.connection = c->index, .number = number};
	struct frame *f = frame_get();

	CHECK(c->serial - c->judged < SENT, "TCP: too many transmissions");
	s->again = number != c->next;
	s->state = FLYING;
	s->sent = clock_ps;
	s->serial = c->serial;
	c->order[c->serial++ % SENT] = number;
	c->flying++;
	c->sent++;
	c->resent += s->again;
	if (number == c->next)
		c->next++;
	f->len = SEGMENT_LEN;
	f->src = (uint16_t)(1 + c->index);
	f->dst = 0;
	f->sport = (uint16_t)(0xC000 + c->index);
	f->payload = true;
	memcpy(f->data, &note, sizeof(note));
	outq_send(&c->queue, f);
}

/* Sends what is lost, and then what is new, as far as the window allows it. */
static void
segments_send(struct connection *c)
{
	while ((double)c->flying + 1 <= c->cubic.cwnd && c->queue.count < OWN_QUEUE) {
		if (c->lost == 0) {
			if (c->next - c->una == ROOM)
				break;
			transmit(c, c->next);
			continue;
		}
		while (c->segment[c->resend % ROOM].state != LOST)
			c->resend++;
		c->lost--;
		transmit(c, c->resend++);
	}
	if (c->queue.count == OWN_QUEUE)
		event_at(&c->room, clock_ps + (SEGMENT_LEN + FRAME_L1_BYTES) *
						      c->queue.conf.ps_per_byte);
	timer_set(c);
}

static void
room_came(struct event *event)
{
	segments_send(container_of(event, struct connection, room));
}

static void
mark_lost(struct connection *c, uint32_t number)
{
	c->segment[number % ROOM].state = LOST;
	c->flying--;
	c->lost++;
	if ((int32_t)(number - c->resend) < 0)
		c->resend = number;
}

static void
rtt_take(struct connection *c, uint64_t rtt)
{
	uint64_t error = rtt > c->srtt ? rtt - c->srtt : c->srtt - rtt;

	if (c->srtt == 0) {
		c->srtt = rtt;
		c->rttvar = rtt / 2;
		return;
	}
	c->rttvar = c->rttvar - c->rttvar / 4 + error / 4;
	c->srtt = c->srtt - c->srtt / 8 + rtt / 8;
}

/* The segment has arrived. Returns whether that is news. */
static bool
segment_arrived(struct connection *c, uint32_t number)
{
	struct segment *s = &c->segment[number % ROOM];

	if ((int32_t)(number - c->una) < 0 || s->state == HELD)
		return false;
	if (s->state == FLYING)
		c->flying--;
	else
		c->lost--;
	s->state = HELD;
	if (!s->again)
		rtt_take(c, clock_ps - s->sent);
	if (!c->arrived || (int32_t)(s->serial - c->newest) > 0) {
		c->newest = s->serial;
		c->newest_sent = s->sent;
		c->arrived = true;
	}
	return true;
}

/* Judges the transmissions that are old enough. Returns whether one is lost. */
static bool
losses_find(struct connection *c)
{
	bool found = false;

	while (c->arrived && (int32_t)(c->newest - c->judged) >= 0) {
		uint32_t number = c->order[c->judged % SENT];
		struct segment *s = &c->segment[number % ROOM];

		/* It is that one, and not another one in its place. */
		if ((int32_t)(number - c->una) >= 0 && s->state == FLYING &&
			s->serial == c->judged) {
			if (c->newest - c->judged < LATER &&
				s->sent + c->srtt / 4 >= c->newest_sent)
				break;
			mark_lost(c, number);
			found = true;
		}
		c->judged++;
	}
	return found;
}

static void
ack_take(struct connection *c, const struct note *note)
{
	double flight = c->flying;
	uint32_t news = 0;
	/* A window of which not all was in use says nothing about a larger one. */
	bool full = c->cubic.cwnd < c->cubic.ssthresh ? c->cubic.cwnd < 2 * flight
						      : c->cubic.cwnd <= flight + 1;

	for (uint32_t n = c->una; n != note->number; n++)
		news += segment_arrived(c, n);
	c->una = note->number;
	if ((int32_t)(c->resend - c->una) < 0)
		c->resend = c->una;
	for (unsigned i = 0; i < NAMED; i++) {
		if (note->last[i] < c->next)
			news += segment_arrived(c, note->last[i]);
	}
	if (news == 0)
		return;
	c->probed = false;
	c->backoff = 0;
	if (c->recovering && (int32_t)(c->una - c->recover) >= 0)
		c->recovering = false;
	if (losses_find(c) && !c->recovering) {
		c->recovering = true;
		c->recover = c->next;
		cubic_lost(&c->cubic);
	} else if (!c->recovering && full) {
		cubic_acked(&c->cubic, news, c->srtt, clock_ps);
	}
	segments_send(c);
}

/* A probe is a new segment, or the last one again. */
static void
probe(struct connection *c)
{
	uint32_t last = c->next - 1;
	struct segment *s = &c->segment[last % ROOM];

	c->probed = true;
	if (c->next - c->una < ROOM) {
		transmit(c, c->next);
	} else if (s->state != HELD) {
		if (s->state == FLYING)
			c->flying--;
		else
			c->lost--;
		transmit(c, last);
	}
	timer_set(c);
}

static void
timer_ended(struct event *event)
{
	struct connection *c = container_of(event, struct connection, timer);

	if (clock_ps < c->deadline) {
		event_at(&c->timer, c->deadline);
		return;
	}
	if (c->next == c->una) { /* the connection begins */
		segments_send(c);
		return;
	}
	if (!c->probed) {
		probe(c);
		return;
	}
	for (uint32_t n = c->una; n != c->next; n++) {
		if (c->segment[n % ROOM].state == FLYING)
			mark_lost(c, n);
	}
	c->judged = c->serial;
	cubic_timeout(&c->cubic);
	c->recovering = true;
	c->recover = c->next;
	c->backoff += c->backoff < 8;
	segments_send(c);
}

/* ---- The receiver ---- */

static void
segment_rx(struct tcp *tcp, const struct note *data)
{
	struct connection *c = &tcp->connection[data->connection];
	struct note note = {.connection = data->connection};
	struct frame *f = frame_get();

	if ((int32_t)(data->number - c->expected) >= 0)
		c->got[data->number % ROOM] = true;
	while (c->got[c->expected % ROOM])
		c->got[c->expected++ % ROOM] = false;
	memmove(c->last + 1, c->last, sizeof(c->last) - sizeof(c->last[0]));
	c->last[0] = data->number;
	note.number = c->expected;
	memcpy(note.last, c->last, sizeof(note.last));
	f->len = ACK_LEN;
	f->src = 0;
	f->dst = (uint16_t)(1 + data->connection);
	f->sport = (uint16_t)(0xC000 + data->connection);
	f->payload = false;
	memcpy(f->data, &note, sizeof(note));
	outq_send(&tcp->answers, f);
}

/* The deliver() of the links to hosts. */
static void
tcp_rx(void *to, struct frame *f)
{
	struct tcp *tcp = to;
	bool data = f->payload;
	struct note note;

	memcpy(&note, f->data, sizeof(note));
	frame_put(f);
	if (data)
		segment_rx(tcp, &note);
	else
		ack_take(&tcp->connection[note.connection], &note);
}

/* ---- The run ---- */

static void
tcp_init(struct tcp *tcp, const struct fabric_conf *conf)
{
	struct outq_conf up = {.ps_per_byte = conf->link_ps_per_byte,
		.delay = conf->delay,
		.deliver = sw_rx,
		.to = &tcp->sw};
	struct outq_conf down = up;

	down.deliver = tcp_rx;
	down.to = tcp;
	down.limit = conf->port_bytes;
	sw_init(&tcp->sw, (uint16_t)conf->hosts, conf->hosts, 1);
	tcp->sw.loss = conf->loss;
	tcp->sw.buffer = (struct buffer){conf->shared_bytes, 0, conf->alpha};
	policer_init(&tcp->sw.policer, conf->police_mbit_per_s, conf->police_burst);
	if (conf->shared_bytes != 0)
		down.buffer = &tcp->sw.buffer;
	outq_init(&tcp->answers, &up);
	for (unsigned i = 0; i < conf->hosts; i++) {
		outq_init(&tcp->sw.queues[i], &down);
		tcp->sw.routes[i] = (struct route){(uint16_t)i, 1};
	}
	tcp->count = conf->hosts - 1;
	tcp->connection = calloc(tcp->count, sizeof(*tcp->connection));
	CHECK(tcp->connection != NULL, "no memory");
	for (unsigned i = 0; i < tcp->count; i++) {
		struct connection *c = &tcp->connection[i];

		c->index = i;
		cubic_init(&c->cubic);
		outq_init(&c->queue, &up);
		c->timer.run = timer_ended;
		c->room.run = room_came;
		memset(c->last, 0xff, sizeof(c->last)); /* no segment has this number */
		event_at(&c->timer, clock_ps + random_between(0, SPREAD));
	}
}

static void
tcp_fini(struct tcp *tcp)
{
	for (unsigned i = 0; i < tcp->count; i++) {
		event_cancel(&tcp->connection[i].timer);
		event_cancel(&tcp->connection[i].room);
		outq_fini(&tcp->connection[i].queue);
	}
	outq_fini(&tcp->answers);
	sw_fini(&tcp->sw);
	free(tcp->connection);
}

static void
tcp_measure(const struct tcp *tcp, const struct fabric_conf *conf, uint64_t length,
	struct tcp_result *result)
{
	double *part = calloc(tcp->count, sizeof(*part));
	uint64_t sent = 0, resent = 0;

	CHECK(part != NULL, "no memory");
	*result = (struct tcp_result){0};
	for (unsigned i = 0; i < tcp->count; i++) {
		const struct connection *c = &tcp->connection[i];

		part[i] = (double)(c->expected - c->before) *
			  (SEGMENT_LEN + FRAME_L1_BYTES) *
			  (double)conf->link_ps_per_byte / (double)length;
		result->goodput += part[i];
		sent += c->sent;
		resent += c->resent;
	}
	result->jain = jain_index(part, tcp->count);
	result->resends = (double)resent / (double)RTE_MAX(sent, UINT64_C(1));
	free(part);
}

void
tcp_run(const struct fabric_conf *conf, uint64_t seed, uint64_t warm, uint64_t length,
	struct tcp_result *result)
{
	struct tcp *tcp = calloc(1, sizeof(*tcp));

	CHECK(tcp != NULL && conf->shape == SHAPE_STAR && conf->hosts > 1,
		"TCP needs hosts at one switch");
	random_state = seed;
	clock_reset(NS_PER_SEC * PS_PER_NS);
	tcp_init(tcp, conf);
	events_run(clock_ps + warm);
	for (unsigned i = 0; i < tcp->count; i++)
		tcp->connection[i].before = tcp->connection[i].expected;
	events_run(clock_ps + length);
	tcp_measure(tcp, conf, length, result);
	tcp_fini(tcp);
	free(tcp);
	clock_reset(0);
	CHECK(frames_in_use() == 0, "TCP keeps %u frames", frames_in_use());
}
