/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "base/base_alloc.h"
#include "switch/sw_client.h"
#include "switch/sw_dump.h"
#include "switch/sw_wait.h"
#include "wire/psn.h"

/* ---- Creation ---- */

static size_t
queues_size(const struct sw *sw)
{
	return ((size_t)sw->qpns.mask + 1) * sizeof(struct sw_wait_queue);
}

static int
thread_wait_create(struct sw_thread *t, uint32_t buf_size)
{
	struct sw_wait *w = alloc_get(&alloc_plain, "waiting", sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	t->wait = w;
	w->buf_size = buf_size;
	account_limit_set(&w->packets, SW_WAIT_PACKETS, true);
	TAILQ_INIT(&w->waiting);
	TAILQ_INIT(&w->ready);
	STAILQ_INIT(&w->free);
	w->slots =
		alloc_get(&alloc_plain, "waiting", SW_WAIT_PACKETS * sizeof(w->slots[0]));
	/* Few daemons fill it. */
	w->bytes = alloc_get(
		&alloc_demand, "waiting packets", (size_t)SW_WAIT_PACKETS * buf_size);
	if (w->slots == NULL || w->bytes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < SW_WAIT_PACKETS; i++) {
		w->slots[i].bytes = w->bytes + i * buf_size;
		STAILQ_INSERT_TAIL(&w->free, &w->slots[i], link);
	}
	return 0;
}

int
sw_wait_create(struct sw *sw, uint32_t buf_size)
{
	sw->wait_queues = alloc_get(&alloc_demand, "waiting QPs", queues_size(sw));
	if (sw->wait_queues == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < sw->thread_count; i++) {
		int rc = thread_wait_create(sw->threads[i], buf_size);

		if (rc != 0)
			return rc;
	}
	return 0;
}

void
sw_wait_destroy(struct sw *sw)
{
	for (uint32_t i = 0; i < sw->thread_count; i++) {
		struct sw_wait *w = sw->threads[i]->wait;

		if (w == NULL)
			continue;
		alloc_put(&alloc_demand, w->bytes, (size_t)SW_WAIT_PACKETS * w->buf_size);
		alloc_put(&alloc_plain, w->slots, SW_WAIT_PACKETS * sizeof(w->slots[0]));
		alloc_put(&alloc_plain, w, sizeof(*w));
	}
	alloc_put(&alloc_demand, sw->wait_queues, queues_size(sw));
}

/* ---- Queues ---- */

static struct sw_wait_queue *
wait_queue_of(const struct sw_qp *qp)
{
	const struct sw *sw = qp->owner->sw;

	return &sw->wait_queues[qp->qpn & sw->qpns.mask];
}

static void
queue_begin(struct sw_wait_queue *q, struct sw_qp *qp, struct sw_qp *dest)
{
	struct sw_thread *t = qp->owner->thread;

	STAILQ_INIT(&q->packets);
	q->qp = qp;
	q->dest = dest;
	q->until_ns = t->now + SW_WAIT_NS;
	q->ready = false;
	TAILQ_INSERT_TAIL(&t->wait->waiting, q, link);
	qp->waiting = true;
	/* QPs of several threads may send to dest. */
	__atomic_store_n(&dest->awaited, true, __ATOMIC_RELAXED);
}

/* Frees the first packet, and ends the queue with its last one. */
static void
packet_free(struct sw_wait_queue *q)
{
	struct sw_wait_packet *packet = STAILQ_FIRST(&q->packets);
	struct sw_client *from = q->qp->owner;
	struct sw_wait *w = from->thread->wait;
	uint32_t *held = &from->user->waiting[from->thread->index];

	STAILQ_REMOVE_HEAD(&q->packets, link);
	STAILQ_INSERT_HEAD(&w->free, packet, link);
	account_limit_give(&w->packets, *held, 1);
	(*held)--;
	from->waiting--;
	if (--q->count != 0)
		return;
	if (q->ready)
		TAILQ_REMOVE(&w->ready, q, link);
	else
		TAILQ_REMOVE(&w->waiting, q, link);
	q->qp->waiting = false;
}

static void
queue_drop(struct sw_wait_queue *q, uint64_t *why)
{
	*why += q->count;
	for (uint32_t n = q->count; n != 0; n--)
		packet_free(q);
}

enum sw_sent
sw_wait_add(struct sw_packet *p, struct sw_qp *qp, struct sw_qp *dest)
{
	struct sw_client *from = p->from;
	struct sw_wait *w = p->thread->wait;
	struct sw_wait_queue *q = wait_queue_of(qp);
	uint32_t *held = &from->user->waiting[p->thread->index];
	struct sw_wait_packet *packet;

	/* Repeated, because there was no answer. */
	if (q->count != 0 && psn_diff(p->view.psn, q->last_psn) <= 0)
		return SW_WAITING;
	if (q->count == SW_WAIT_QP || from->waiting == SW_WAIT_CLIENT ||
		p->len > w->buf_size || !account_limit_take(&w->packets, *held, 1))
		return sw_drop(&p->stats->drop_not_ready);
	packet = STAILQ_FIRST(&w->free);
	STAILQ_REMOVE_HEAD(&w->free, link);
	if (q->count == 0)
		queue_begin(q, qp, dest);
	packet->len = p->len;
	memcpy(packet->bytes, p->head, p->head_len);
	memcpy(packet->bytes + p->head_len, p->rest, p->len - p->head_len);
	STAILQ_INSERT_TAIL(&q->packets, packet, link);
	q->last_psn = p->view.psn;
	q->count++;
	(*held)++;
	from->waiting++;
	p->stats->waited++;
	return SW_WAITING;
}

/* ---- Delivery ---- */

/* Delivers, or hands over to the thread of the receiver. Returns whether there was room. */
static bool
packet_put(struct sw_thread *t, struct sw_client *from, struct sw_client *to,
	const struct handed_bytes *bytes)
{
	if (to->thread != t)
		return !sw_client_holds(to) &&
		       handover_bytes(t, to->thread, HANDED_DELIVER, to, bytes);
	if (sw_client_backpressure(to, from))
		return false;
	sw_client_put(
		to, bytes->head, bytes->head_len, bytes->rest, bytes->len, RING_CKSUM_OK);
	return true;
}

/* Delivers while there is room. */
static void
queue_deliver(struct sw_wait_queue *q)
{
	struct sw_client *from = q->qp->owner;
	const struct sw_qp *dest = q->dest;
	struct sw_thread *t = from->thread;

	for (uint32_t n = q->count; n != 0; n--) {
		const struct sw_wait_packet *packet = STAILQ_FIRST(&q->packets);
		const struct handed_bytes bytes = {
			packet->bytes, packet->len, packet->bytes, packet->len};

		if (!packet_put(t, from, dest->owner, &bytes))
			return;
		sw_dump(t, from, q->qp->qpn, SW_DUMP_OUT, &bytes);
		sw_dump(t, dest->owner, dest->qpn, SW_DUMP_IN, &bytes);
		from->stats.tx_packets++;
		from->stats.tx_bytes += packet->len;
		packet_free(q);
	}
}

/* Its destination has registered a peer. */
static void
queue_serve(struct sw_wait_queue *q)
{
	if (q->dest->dest_serial == q->qp->serial)
		queue_deliver(q);
	else
		queue_drop(q, &q->qp->owner->stats.drop_not_connected);
}

void
sw_wait_pass(struct sw_thread *t)
{
	struct sw_wait *w = t->wait;
	struct sw_wait_queue *q, *next;

	for (q = TAILQ_FIRST(&w->ready); q != NULL; q = next) {
		next = TAILQ_NEXT(q, link);
		queue_serve(q);
	}
	while ((q = TAILQ_FIRST(&w->waiting)) != NULL && q->until_ns <= t->now)
		queue_drop(q, &q->qp->owner->stats.drop_not_ready);
}

/* ---- Control path ---- */

/* As a pass of the thread, whose lock is held. */
static void
thread_connected(struct sw_thread *t, const struct sw_qp *dest)
{
	struct sw *sw = t->sw;
	struct sw_wait *w = t->wait;
	struct sw_wait_queue *q, *next;

	t->now = RTE_MAX(t->now, sw->now);
	for (q = TAILQ_FIRST(&w->waiting); q != NULL; q = next) {
		next = TAILQ_NEXT(q, link);
		if (q->dest != dest)
			continue;
		TAILQ_REMOVE(&w->waiting, q, link);
		TAILQ_INSERT_TAIL(&w->ready, q, link);
		q->ready = true;
		queue_serve(q);
	}
	if (!TAILQ_EMPTY(&t->dirty))
		sw_publish(t, t->now);
	handover_publish(t);
	/* It may sleep. */
	if (sw_wait_pending(t) && t->index != 0 && sw->wake_thread != NULL)
		sw->wake_thread(sw->wake_thread_arg, t->index);
}

void
sw_wait_connected(struct sw_qp *dest)
{
	const struct sw *sw = dest->owner->sw;

	for (uint32_t i = 0; i < sw->thread_count && dest->awaited; i++)
		if (!TAILQ_EMPTY(&sw->threads[i]->wait->waiting))
			thread_connected(sw->threads[i], dest);
}

void
sw_wait_sender_ended(struct sw_qp *qp)
{
	if (qp->waiting)
		queue_drop(wait_queue_of(qp), &qp->owner->stats.drop_not_ready);
}

static void
dest_forget(struct sw_wait_queues *queues, const struct sw_qp *dest)
{
	struct sw_wait_queue *q, *next;

	for (q = TAILQ_FIRST(queues); q != NULL; q = next) {
		next = TAILQ_NEXT(q, link);
		if (q->dest == dest)
			queue_drop(q, &q->qp->owner->stats.drop_no_qp);
	}
}

void
sw_wait_dest_ended(struct sw_qp *dest)
{
	const struct sw *sw = dest->owner->sw;

	for (uint32_t i = 0; i < sw->thread_count && dest->awaited; i++) {
		dest_forget(&sw->threads[i]->wait->waiting, dest);
		dest_forget(&sw->threads[i]->wait->ready, dest);
	}
}

static void
client_forget(struct sw_wait_queues *queues, const struct sw_client *client)
{
	struct sw_wait_queue *q, *next;

	for (q = TAILQ_FIRST(queues); q != NULL; q = next) {
		next = TAILQ_NEXT(q, link);
		if (q->qp->owner == client)
			sw_wait_sender_ended(q->qp);
	}
}

void
sw_wait_forget(struct sw_client *client)
{
	if (client->waiting == 0)
		return;
	client_forget(&client->thread->wait->waiting, client);
	client_forget(&client->thread->wait->ready, client);
}
