/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "wire/hdr.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

#include "cover.h"
#include "link.h"
#include "print.h"

static struct frame *free_frames;

struct frame *
frame_get(void)
{
	struct frame *f = free_frames;

	if (f != NULL) {
		free_frames = f->next;
	} else {
		f = aligned_alloc(LINE_SIZE, sizeof(*f));
		CHECK(f != NULL, "no memory for frames");
	}
	memset(f, 0, offsetof(struct frame, data));
	return f;
}

void
frame_put(struct frame *f)
{
	free(f->exact);
	f->next = free_frames;
	free_frames = f;
}

const struct bth *
frame_bth(const uint8_t *data, uint32_t len)
{
	uint16_t type;
	uint32_t l4;

	if (len < 14 + 40)
		return NULL;
	memcpy(&type, data + 12, 2);
	if (type == RTE_BE16(RTE_ETHER_TYPE_IPV4) && data[23] == IPPROTO_UDP)
		l4 = 14 + (data[14] & 15) * 4;
	else if (type == RTE_BE16(RTE_ETHER_TYPE_IPV6) && data[20] == IPPROTO_UDP)
		l4 = 14 + 40;
	else
		return NULL;
	if (len < l4 + 8 + sizeof(struct bth) || data[l4 + 2] != ROCE_UDP_PORT >> 8 ||
		data[l4 + 3] != (ROCE_UDP_PORT & 0xFF))
		return NULL;
	return (const struct bth *)(data + l4 + 8);
}

/* Frames in flight: a heap by arrival time */

static bool
frame_is_before(const struct frame *a, const struct frame *b)
{
	return a->when != b->when ? a->when < b->when : a->order < b->order;
}

static void
heap_up(struct link *l, uint32_t i)
{
	struct frame *f = l->heap[i];

	for (; i != 0 && frame_is_before(f, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
		l->heap[i] = l->heap[(i - 1) / 2];
	l->heap[i] = f;
}

static void
heap_down(struct link *l, uint32_t i)
{
	struct frame *f = l->heap[i];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= l->count)
			break;
		if (child + 1 < l->count &&
			frame_is_before(l->heap[child + 1], l->heap[child]))
			child++;
		if (!frame_is_before(l->heap[child], f))
			break;
		l->heap[i] = l->heap[child];
		i = child;
	}
	l->heap[i] = f;
}

static void
heap_put(struct link *l, struct frame *f)
{
	if (l->count == l->room) {
		l->room = l->room != 0 ? 2 * l->room : 1024;
		l->heap = realloc(l->heap, l->room * sizeof(l->heap[0]));
		CHECK(l->heap != NULL, "no memory for the wire");
	}
	f->order = l->orders++;
	l->heap[l->count++] = f;
	heap_up(l, l->count - 1);
}

static struct frame *
heap_get(struct link *l)
{
	struct frame *f = l->heap[0];

	l->heap[0] = l->heap[--l->count];
	if (l->count != 0)
		heap_down(l, 0);
	return f;
}

uint64_t
link_deadline(const struct link *l)
{
	return l->count != 0 ? l->heap[0]->when : TIME_NEVER;
}

uint64_t
link_oldest(const struct link *l)
{
	uint64_t oldest = TIME_NEVER;

	for (uint32_t i = 0; i < l->count; i++)
		oldest = RTE_MIN(oldest, l->heap[i]->sent);
	for (unsigned p = 0; p < LINK_PORTS; p++) {
		for (unsigned q = 0; q < PORT_QUEUES; q++) {
			const struct link_queue *queue = &l->ports[p].queues[q];

			for (uint32_t i = queue->head; i != queue->tail; i++)
				oldest = RTE_MIN(oldest, queue->rx[i % RX_FRAMES]->sent);
		}
	}
	return oldest;
}

/* Returns whether the frame is sent to this QPN, or is a datagram from it. */
static bool
frame_is_of(const struct frame *f, uint32_t qpn)
{
	const struct bth *bth = frame_bth(f->data, f->len);

	if (bth == NULL)
		return false;
	return be24_get(bth->dest_qpn) == qpn ||
	       (op_rows[bth->opcode].service == SERVICE_UD &&
		       be24_get(((const struct deth *)(bth + 1))->src_qpn) == qpn);
}

static void
queue_purge(struct link_queue *q, uint32_t qpn)
{
	uint32_t tail = q->head;

	for (uint32_t i = q->head; i != q->tail; i++) {
		struct frame *f = q->rx[i % RX_FRAMES];

		if (frame_is_of(f, qpn))
			frame_put(f);
		else
			q->rx[tail++ % RX_FRAMES] = f;
	}
	q->tail = tail;
}

void
link_purge(struct link *l, uint32_t qpn)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		struct frame *f = l->heap[i];

		if (frame_is_of(f, qpn))
			frame_put(f);
		else
			l->heap[kept++] = f;
	}
	l->count = kept;
	for (uint32_t i = kept / 2; i-- > 0;)
		heap_down(l, i);
	for (unsigned p = 0; p < LINK_PORTS; p++) {
		for (unsigned i = 0; i < PORT_QUEUES; i++)
			queue_purge(&l->ports[p].queues[i], qpn);
	}
}

/* ---- Onto the wire ---- */

static void
frame_corrupt(struct frame *f)
{
	if (chance(250)) {
		f->len = (uint16_t)(1 + draw(f->len));
		return;
	}
	for (unsigned n = 1 + (unsigned)draw(3); n != 0; n--)
		f->data[14 + draw(f->len - 14)] ^= (uint8_t)(1 << draw(8));
	f->flags = 0;
}

/* Marks the frame "congestion experienced" and updates the IPv4 header checksum, like a
 * router. */
static void
ecn_mark(struct frame *f)
{
	uint8_t *ip = f->data + 14;

	if (ip[0] >> 4 == 6) {
		ip[1] |= 0x30;
	} else if (ip[0] >> 4 == 4) {
		struct rte_ipv4_hdr *ip4 = (struct rte_ipv4_hdr *)ip;

		ip4->type_of_service |= 3;
		ip4->hdr_checksum = 0;
		ip4->hdr_checksum = rte_ipv4_cksum(ip4);
	}
}

/* Chooses the queue by the UDP source port, which is constant for a QP pair, like a
 * NIC. */
static uint8_t
queue_choose(const struct frame *f, unsigned queues)
{
	const struct bth *bth;

	if (queues == 1)
		return 0;
	bth = frame_bth(f->data, f->len);
	if (bth == NULL)
		return 0;
	return (uint8_t)((((const uint8_t *)bth)[-8] * 31u + ((const uint8_t *)bth)[-7]) %
			 queues);
}

/* Returns which route a frame takes. Those of one flow take the same. */
static unsigned
route_choose(const struct frame *f)
{
	const uint8_t *bth = (const uint8_t *)frame_bth(f->data, f->len);

	return bth != NULL ? (bth[-8] * 7u + bth[-7]) % LINK_ROUTES : 0;
}

static uint64_t
arrival_time(struct link_port *from, const struct link_port *to, const struct frame *f)
{
	struct link *l = from->link;
	const struct link_conf *c = &l->conf;
	uint64_t start = RTE_MAX(sim.now, from->busy_until), when;
	unsigned index = (unsigned)(to - l->ports), route = route_choose(f);

	from->busy_until = start + (f->len + 24) * 8 * UINT64_C(1000) / c->bits_per_us;
	when = from->busy_until + c->delay_ns + route * c->route_ns;
	if (c->jitter_ns != 0)
		when += draw(c->jitter_ns);
	if (chance(c->reorder))
		return when + draw(1 + c->delay_ns + 16 * (from->busy_until - start));
	when = RTE_MAX(when, from->last[index][route]);
	from->last[index][route] = when;
	return when;
}

static bool
is_lost(struct link_port *from, const struct frame *f)
{
	struct link *l = from->link;

	if (sim.now < from->outage_until &&
		(from->outage_route == LINK_ROUTES ||
			from->outage_route == route_choose(f)))
		return true;
	if (l->conf.outage != 0 && draw(1000000) < l->conf.outage) {
		from->outage_until = sim.now + draw(20 * (l->conf.delay_ns + 10000));
		from->outage_route = (unsigned)draw(LINK_ROUTES + 1);
		TRACE("port %" PRIu64 " has an outage until %" PRIu64,
			(uint64_t)(from - l->ports), from->outage_until);
		return true;
	}
	return chance(l->conf.loss);
}

/* UC and UD cannot detect duplicates: count the packets that may arrive twice. */
static void
count_dup(struct link *l, const struct frame *f)
{
	const struct bth *bth = frame_bth(f->data, f->len);

	if (bth != NULL && (op_rows[bth->opcode].service == SERVICE_UC ||
				   op_rows[bth->opcode].service == SERVICE_UD))
		l->dups++;
}

static void
icrc_redo(struct frame *f, struct bth *bth)
{
	uint8_t *udp = (uint8_t *)bth - sizeof(struct rte_udp_hdr);
	struct rte_udp_hdr *hdr = (struct rte_udp_hdr *)udp;
	uint8_t *end = udp + rte_be_to_cpu_16(hdr->dgram_len) - ICRC_LEN;
	uint16_t cksum = hdr->dgram_cksum;
	uint8_t ecn = bth->ecn;
	uint32_t crc;

	hdr->dgram_cksum = UINT16_MAX;
	bth->ecn = UINT8_MAX;
	crc = icrc_path(f->data + 14, f->data[14] >> 4);
	crc = rte_cpu_to_le_32(icrc_update(crc, udp + 4, (size_t)(end - (udp + 4))));
	memcpy(end, &crc, sizeof(crc));
	hdr->dgram_cksum = cksum;
	bth->ecn = ecn;
}

/* A peer that lies: its selective acknowledgement names what it does not hold, leaves out
 * what it holds, or names another PSN. */
static void
sack_falsify(struct frame *f)
{
	struct bth *bth = (struct bth *)frame_bth(f->data, f->len);
	struct seth *seth = (struct seth *)(bth + 1);

	if (bth == NULL || bth->opcode != OPCODE_SACK)
		return;
	switch (draw(4)) {
	case 0:
		memset(seth->map, 0xFF, 1 + draw(sizeof(seth->map)));
		break;
	case 1:
		seth->map[draw(sizeof(seth->map))] ^= (uint8_t)draw(256);
		break;
	case 2:
		be24_put(seth->echo, be24_get(seth->echo) + (uint32_t)draw(9) - 4);
		break;
	default:
		be24_put(bth->psn, be24_get(bth->psn) + (uint32_t)draw(5) - 2);
		break;
	}
	icrc_redo(f, bth);
}

static void
frame_send_to(struct link_port *from, struct link_port *to, struct frame *f)
{
	struct link *l = from->link;

	if (is_lost(from, f)) {
		l->lost++;
		frame_put(f);
		return;
	}
	f->to = to;
	f->sent = sim.now;
	f->when = arrival_time(from, to, f);
	f->queue = queue_choose(f, to->port.queue_count);
	if (chance(l->conf.lie))
		sack_falsify(f);
	if (chance(l->conf.dup)) {
		struct frame *copy = frame_get();

		copy->to = to;
		copy->sent = f->sent;
		copy->len = f->len;
		copy->queue = f->queue;
		copy->flags = f->flags;
		memcpy(copy->data, f->data, f->len);
		copy->when = arrival_time(from, to, f);
		count_dup(l, f);
		heap_put(l, copy);
	}
	if (chance(l->conf.ecn))
		ecn_mark(f);
	if (chance(l->conf.corrupt))
		frame_corrupt(f);
	heap_put(l, f);
}

void
link_send(struct link_port *from, struct frame *f)
{
	struct link *l = from->link;
	bool group = f->data[0] & 1;

	f->home = NULL;
	for (unsigned i = 0; i < LINK_PORTS; i++) {
		struct link_port *to = &l->ports[i];

		if (!to->attached || (group && to == from))
			continue;
		if (group) {
			struct frame *copy = frame_get();

			copy->len = f->len;
			memcpy(copy->data, f->data, f->len);
			frame_send_to(from, to, copy);
		} else if (memcmp(f->data, to->port.mac, 6) == 0) {
			frame_send_to(from, to, f);
			return;
		}
	}
	frame_put(f);
}

void
link_trace(const char *what, const struct frame *f, const struct link_port *port)
{
	const struct bth *bth = frame_bth(f->data, f->len);

	if (bth == NULL)
		return;
	TRACE("      %s%" PRIu64 " %s qp 0x%" PRIx64 " psn 0x%" PRIx64 " %" PRIu64
	      " bytes aeth 0x%" PRIx64,
		TRACE_S(what), (uint64_t)(port - port->link->ports),
		TRACE_S(op_rows[bth->opcode].kind != OP_UNKNOWN ? opcode_name(bth->opcode)
								: "unknown opcode"),
		be24_get(bth->dest_qpn), be24_get(bth->psn), f->len,
		op_rows[bth->opcode].hdrs & HDR_AETH
			? ((const struct aeth *)(bth + 1))->syndrome
			: 0x100u);
}

static void
frame_arrive(struct link *l, struct frame *f)
{
	struct link_port *to = f->to;
	struct link_queue *q = &to->queues[f->queue];

	cover_frame(f->data, f->len);
	link_trace("-> ", f, to);
	if (to->take != NULL) {
		to->take(to->arg, f);
		return;
	}
	if (q->tail - q->head == RX_FRAMES || to->closed) {
		l->lost++;
		l->lossy = true;
		frame_put(f);
		return;
	}
	q->rx[q->tail++ % RX_FRAMES] = f;
}

void
link_run(struct link *l)
{
	while (l->count != 0 && l->heap[0]->when <= sim.now)
		frame_arrive(l, heap_get(l));
}

void
link_init(struct link *l, const struct link_conf *conf)
{
	struct frame **heap = l->heap;
	uint32_t room = l->room;

	memset(l, 0, sizeof(*l));
	l->heap = heap;
	l->room = room;
	l->conf = *conf;
	l->corrupts = conf->corrupt != 0;
	l->lossy = conf->loss + conf->corrupt + conf->outage != 0;
}

void
link_fini(struct link *l)
{
	while (l->count != 0)
		frame_put(heap_get(l));
	for (unsigned i = 0; i < LINK_PORTS; i++) {
		struct link_port *p = &l->ports[i];

		CHECK(p->lent == 0, "host %u holds %u frames at the end", i, p->lent);
		for (unsigned q = 0; q < PORT_QUEUES; q++) {
			while (!link_queue_empty(&p->queues[q]))
				frame_put(
					p->queues[q].rx[p->queues[q].head++ % RX_FRAMES]);
		}
	}
}
