/* SPDX-License-Identifier: BSD-3-Clause */
#include "outq.h"
#include "random.h"

static void
leave_schedule(struct outq *q, const struct frame *f)
{
	event_at(&q->leave, clock_ps + (f->len + FRAME_L1_BYTES) * q->conf.ps_per_byte);
}

/* The first frame has been sent: it is on the wire now. */
static void
frame_left(struct event *event)
{
	struct outq *q = container_of(event, struct outq, leave);
	struct frame *f = STAILQ_FIRST(&q->waiting);

	STAILQ_REMOVE_HEAD(&q->waiting, link);
	q->bytes -= f->len;
	q->count--;
	q->sent_bytes += f->len + FRAME_L1_BYTES;
	if (q->conf.buffer != NULL)
		q->conf.buffer->used -= f->len;
	f->arrives = clock_ps + q->conf.delay;
	STAILQ_INSERT_TAIL(&q->flying, f, link);
	if (!event_is_scheduled(&q->arrive))
		event_at(&q->arrive, f->arrives);
	if (!STAILQ_EMPTY(&q->waiting))
		leave_schedule(q, STAILQ_FIRST(&q->waiting));
}

static void
frame_arrived(struct event *event)
{
	struct outq *q = container_of(event, struct outq, arrive);
	struct frame *f = STAILQ_FIRST(&q->flying);

	STAILQ_REMOVE_HEAD(&q->flying, link);
	if (!STAILQ_EMPTY(&q->flying))
		event_at(&q->arrive, STAILQ_FIRST(&q->flying)->arrives);
	q->conf.deliver(q->conf.to, f);
}

void
outq_init(struct outq *q, const struct outq_conf *conf)
{
	*q = (struct outq){
		.conf = *conf,
		.leave.run = frame_left,
		.arrive.run = frame_arrived,
	};
	STAILQ_INIT(&q->waiting);
	STAILQ_INIT(&q->flying);
}

static void
list_free(struct frame_list *list)
{
	struct frame *f;

	while ((f = STAILQ_FIRST(list)) != NULL) {
		STAILQ_REMOVE_HEAD(list, link);
		frame_put(f);
	}
}

void
outq_fini(struct outq *q)
{
	event_cancel(&q->leave);
	event_cancel(&q->arrive);
	list_free(&q->waiting);
	list_free(&q->flying);
}

bool
outq_admits(const struct outq *q, uint32_t len)
{
	const struct buffer *b = q->conf.buffer;

	if (q->conf.limit != 0 && q->bytes + len > q->conf.limit)
		return false;
	if (q->conf.frames != 0 && q->count >= q->conf.frames)
		return false;
	if (b == NULL)
		return true;
	return b->used + len <= b->size &&
	       (double)(q->bytes + len) <= b->alpha * (double)(b->size - b->used);
}

double
red_probability(const struct red *red, uint64_t bytes)
{
	if (red->kmax == 0 || bytes <= red->kmin)
		return 0;
	if (bytes >= red->kmax)
		return 1;
	return red->pmax * (double)(bytes - red->kmin) / (double)(red->kmax - red->kmin);
}

bool
outq_send(struct outq *q, struct frame *f)
{
	double mark;

	q->offered += f->payload;
	if (q->dead || !outq_admits(q, f->len)) {
		q->dropped += f->payload;
		frame_put(f);
		return false;
	}
	mark = red_probability(&q->conf.red, q->bytes);
	if (mark > 0 && random_unit() < mark)
		q->marked += frame_mark_ce(f);
	q->bytes += f->len;
	q->count++;
	if (q->conf.buffer != NULL)
		q->conf.buffer->used += f->len;
	STAILQ_INSERT_TAIL(&q->waiting, f, link);
	if (q->count == 1)
		leave_schedule(q, f);
	return true;
}
