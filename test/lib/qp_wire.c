/* SPDX-License-Identifier: BSD-3-Clause */
/* The wires between two hosts: queued frames, packets that the test builds, and time. */
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "qp_link.h"
#include "headers.h"
#include "qp/window.h"

#define FRAME_ROOM (18 + 40 + 8 + 12 + 32 + 4096 + 4)
#define PULL_BURST 32

static uint8_t pull_buffers[PULL_BURST][FRAME_ROOM];

static void
wire_put(struct host *from, unsigned index, const uint8_t *data, uint32_t len)
{
	struct frame *at = &from->wire[index];

	assert_true(from->wire_count < WIRE_MAX);
	memmove(at + 1, at, (from->wire_count - index) * sizeof(*at));
	from->wire_count++;
	at->data = malloc(len);
	assert_non_null(at->data);
	memcpy(at->data, data, len);
	at->len = len;
}

static struct frame
wire_get(struct host *from, unsigned index)
{
	struct frame frame;

	assert_true(index < from->wire_count);
	frame = from->wire[index];
	from->wire_count--;
	memmove(&from->wire[index], &from->wire[index + 1],
		(from->wire_count - index) * sizeof(frame));
	return frame;
}

unsigned
host_pull(struct host *h, unsigned n)
{
	unsigned total = 0, got;

	do {
		struct pkt pkts[PULL_BURST];
		unsigned want = RTE_MIN(n - total, PULL_BURST + 0u);
		uint32_t most_sent, most_read;

		for (unsigned i = 0; i < want; i++)
			pkts[i] =
				(struct pkt){.data = pull_buffers[i], .room = FRAME_ROOM};
		h->shared.now = h->link->now;
		peer_window_set(&h->peer.send, h->link->now);
		peer_window_set(&h->peer.read, h->link->now);
		most_sent = RTE_MAX(h->peer.send.inflight, h->peer.send.window);
		most_read = RTE_MAX(h->peer.read.inflight, h->peer.read.window);
		got = qp_tx(&h->qp, pkts, want, h->link->now);
		assert_true(got <= want);
		for (unsigned i = 0; i < got; i++)
			wire_put(h, h->wire_count, pkts[i].data, pkts[i].len);
		total += got;
		/* Congestion control may have cut the window below what is in flight, or
		 * widened it after a pause. A READ request may ask for up to QP_MAX_UNACKED
		 * packets more than the window has left. */
		assert_true(
			h->peer.send.inflight <= RTE_MAX(most_sent, h->peer.send.window));
		assert_true(h->peer.read.inflight <
			    RTE_MAX(most_read, h->peer.read.window) + QP_MAX_UNACKED);
	} while (got != 0 && total < n);
	return total;
}

void
host_rx(struct host *h, const uint8_t *data, uint32_t len)
{
	uint8_t *frame = malloc(len);
	struct pkt pkt = {.data = frame, .len = (uint16_t)len, .room = (uint16_t)len};
	struct pkt_headers *headers = NULL;
	struct pkt_view view;
	unsigned why;

	h->shared.now = h->link->now;
	assert_non_null(frame);
	memcpy(frame, data, len);
	/* Each second one that is long enough comes with a copy of its headers: that makes no
	 * difference. */
	if (len >= PARSE_HEADERS && h->rx_number++ % 2 != 0) {
		headers = headers_make(frame);
		headers_use(&pkt, headers);
	}
	why = pkt_parse_headers(&pkt, h->vlan, &view);
	assert_int_not_equal(why, PARSE_OTHER);
	if (why == DROP_none && !qp_icrc_check(&h->qp, &view))
		why = DROP_icrc;
	if (why != DROP_none)
		h->stats.drop[why]++;
	else if (view.dest_qpn != h->qp.qpn &&
		 (h->qp.type != IBV_QPT_UD || view.dest_qpn != PSN_MASK))
		h->stats.drop[DROP_qpn]++;
	else
		qp_rx(&h->qp, &view, h->link->now);
	free(frame);
	free(headers);
}

void
wire_deliver(struct host *from, unsigned index)
{
	struct frame frame = wire_get(from, index);

	host_rx(from->other, frame.data, frame.len);
	free(frame.data);
}

void
wire_deliver_all(struct host *from)
{
	while (from->wire_count != 0)
		wire_deliver(from, 0);
}

void
wire_drop(struct host *from, unsigned index)
{
	free(wire_get(from, index).data);
}

void
wire_drop_all(struct host *from)
{
	while (from->wire_count != 0)
		wire_drop(from, from->wire_count - 1);
}

void
wire_dup(struct host *from, unsigned index)
{
	const struct frame *frame = &from->wire[index];

	assert_true(index < from->wire_count);
	wire_put(from, index + 1, frame->data, frame->len);
}

void
wire_move(struct host *from, unsigned index, unsigned to)
{
	struct frame frame = wire_get(from, index);

	wire_put(from, RTE_MIN(to, from->wire_count), frame.data, frame.len);
	free(frame.data);
}

void
wire_corrupt(struct host *from, unsigned index, uint32_t where)
{
	struct frame *frame = &from->wire[index];
	uint32_t bth = from->link->conf.ipv6 ? 14 + 40 + 8 : 14 + 20 + 8;
	uint32_t at;

	assert_true(index < from->wire_count);
	/* From the BTH on, except its byte 4, which routers may change. */
	at = bth + where % (frame->len - bth - 1);
	if (at >= bth + 4)
		at++;
	frame->data[at] ^= 1u << where % 7;
}

struct pkt_view
wire_view(const struct host *from, unsigned index)
{
	const struct frame *frame = &from->wire[index];
	struct pkt pkt = {.data = frame->data, .len = (uint16_t)frame->len};
	struct pkt_view view;

	assert_true(index < from->wire_count);
	assert_int_equal(pkt_parse(&pkt, from->vlan, &view), DROP_none);
	return view;
}

/* The time until which congestion control lets the host send nothing; TIME_NEVER: it lets
 * it, or there is nothing to send. */
static uint64_t
host_waits_until(const struct host *h)
{
	if (!qp_wants_tx(&h->qp) || !qp_window_blocked(&h->qp))
		return TIME_NEVER;
	return peer_opens_at(qp_next_window(&h->qp), h->link->now);
}

void
qp_link_drain(struct qp_link *p)
{
	unsigned moved;

	do {
		uint64_t next;

		moved = host_pull(&p->a, PULL_ALL) + host_pull(&p->b, PULL_ALL);
		moved += p->a.wire_count + p->b.wire_count;
		wire_deliver_all(&p->a);
		wire_deliver_all(&p->b);
		next = RTE_MIN(host_waits_until(&p->a), host_waits_until(&p->b));
		if (moved == 0 && next != TIME_NEVER) {
			p->now = next;
			moved = 1;
		}
	} while (moved != 0);
}

void
qp_link_advance(struct qp_link *p, uint64_t ns)
{
	uint64_t end = p->now + ns;

	for (;;) {
		uint64_t a = qp_deadline(&p->a.qp), b = qp_deadline(&p->b.qp);
		uint64_t next = RTE_MIN(a, b);
		struct host *h = a <= b ? &p->a : &p->b;

		if (next > end)
			break;
		p->now = RTE_MAX(p->now, next);
		h->shared.now = p->now;
		qp_timeout(&h->qp, p->now);
	}
	p->now = end;
}

/* ---- Packets that the test builds ---- */

static void
pkt_spec_path(const struct host *to, const struct pkt_spec *c, struct path_hdr *hdr)
{
	struct path_addr addr = {
		.udp_sport = 0xC123, .hop_limit = 9, .tclass = c->tclass};

	/* A UD QP has no path. */
	memcpy(addr.src_gid,
		to->qp.type == IBV_QPT_UD ? to->other->gid[0] : to->qp.path.dgid, 16);
	memcpy(addr.dst_gid, to->qp.type == IBV_QPT_UD ? to->gid[0] : to->qp.path.sgid,
		16);
	if (c->other_version) {
		static const uint8_t v4[12] = {[10] = 0xFF, [11] = 0xFF};

		memcpy(addr.src_gid, v4, 12);
		memcpy(addr.dst_gid, v4, 12);
		addr.src_gid[0] = addr.dst_gid[0] = to->link->conf.ipv6 ? 0 : 0xFD;
	}
	addr.src_gid[15] = (uint8_t)(addr.src_gid[15] + c->src_ip_change);
	addr.dst_gid[15] = (uint8_t)(addr.dst_gid[15] + c->dst_ip_change);
	path_hdr_init(hdr, &addr);
}

static void
pkt_spec_rdma(const struct pkt_spec *c, const struct op_row *op, uint8_t *ext)
{
	uint64_t value = rte_cpu_to_be_64(c->value);

	if (op->hdrs & HDR_RETH) {
		struct reth *reth = (struct reth *)(ext + op->main_off);

		reth->va = rte_cpu_to_be_64(c->va);
		reth->rkey = rte_cpu_to_be_32(c->rkey);
		reth->len = rte_cpu_to_be_32(c->dma_len);
	}
	if (op->hdrs & HDR_ATOMIC) {
		struct atomic_eth *eth = (struct atomic_eth *)(ext + op->main_off);

		eth->va = rte_cpu_to_be_64(c->va);
		eth->rkey = rte_cpu_to_be_32(c->rkey);
		eth->swap_add = rte_cpu_to_be_64(c->swap_add);
		eth->compare = rte_cpu_to_be_64(c->compare);
	}
	if (op->hdrs & HDR_ATOMIC_ACK)
		memcpy(ext + sizeof(struct aeth), &value, sizeof(value));
}

struct frame
pkt_spec_build(const struct host *to, const struct pkt_spec *c)
{
	const struct op_row *op = &op_rows[c->opcode];
	struct bth_fields bth = {
		.dest_qpn = c->dest_qpn != 0 ? c->dest_qpn : to->qp.qpn,
		.psn = c->psn,
		.pkey = c->pkey != 0 || c->pkey_zero ? c->pkey : PKEY_DEFAULT,
		.opcode = c->opcode,
		.solicited = c->solicited,
		.ack_req = c->ack_req,
	};
	uint8_t *room = malloc(FRAME_ROOM + c->payload_len);
	struct pkt pkt = {.data = room, .room = FRAME_ROOM};
	uint8_t *ext, *payload;
	struct path_hdr hdr;

	assert_non_null(room);
	pkt_spec_path(to, c, &hdr);
	ext = frame_begin(&hdr, &pkt, &bth, c->payload_len);
	memset(ext, 0, op->ext_len);
	if (op->hdrs & HDR_XRCETH)
		be24_put(ext + 1, c->srqn != 0 ? c->srqn : to->srq.srqn);
	if (op->hdrs & HDR_AETH) {
		struct aeth *aeth = (struct aeth *)(ext + op->main_off);

		aeth->syndrome = c->syndrome;
		be24_put(aeth->msn, c->msn);
	}
	if (op->hdrs & HDR_DETH) {
		struct deth *deth = (struct deth *)(ext + op->main_off);

		deth->qkey = rte_cpu_to_be_32(c->qkey);
		be24_put(deth->src_qpn, c->src_qpn);
	}
	if (op->hdrs & (HDR_IMM | HDR_IETH))
		memcpy(ext + op->ext_len - 4, &c->imm, 4);
	if (op->hdrs & HDR_FETH)
		memcpy(ext, &c->imm, 4);
	if (op->hdrs & HDR_SETH)
		memcpy(ext, &c->seth, sizeof(c->seth));
	pkt_spec_rdma(c, op, ext);
	payload = frame_payload(&hdr, &pkt, c->opcode);
	bytes_fill(payload, c->payload_len, c->payload_key);
	frame_end(&hdr, &pkt, c->payload_len);
	assert_ptr_equal(pkt.data, room);
	return (struct frame){pkt.data, pkt.len};
}

void
inject(struct host *to, const struct pkt_spec *c)
{
	struct frame frame = pkt_spec_build(to, c);

	host_rx(to, frame.data, frame.len);
	free(frame.data);
}

void
inject_request(struct host *to, uint8_t opcode, uint32_t psn, uint32_t payload_len)
{
	inject(to, &(struct pkt_spec){.opcode = opcode,
			   .psn = psn,
			   .payload_len = payload_len,
			   .ack_req = true});
}

void
inject_ack(struct host *to, uint8_t syndrome, uint32_t psn)
{
	inject(to, &(struct pkt_spec){.opcode = OPCODE_RC_ACKNOWLEDGE | to->qp.op_base,
			   .psn = psn,
			   .syndrome = syndrome});
}

/* ---- Expectations ---- */

#define EQUAL(a, b) _assert_int_equal((uintmax_t)(a), (uintmax_t)(b), file, line)

void
expect_frame_at(struct host *from, unsigned index, uint8_t opcode, uint32_t psn,
	int ack_req, const char *file, int line)
{
	struct pkt_view view;

	if (index >= from->wire_count) {
		print_error("frame %u of %u\n", index, from->wire_count);
		_fail(file, line);
	}
	view = wire_view(from, index);
	EQUAL(view.opcode, opcode);
	EQUAL(view.psn, psn);
	if (ack_req >= 0)
		EQUAL(view.ack_req, ack_req);
	EQUAL(view.dest_qpn, from->other->qp.qpn);
}

void
expect_ack_at(struct host *from, unsigned index, uint8_t syndrome, uint32_t psn,
	uint32_t msn, const char *file, int line)
{
	struct pkt_view view;

	expect_frame_at(from, index, OPCODE_RC_ACKNOWLEDGE | from->qp.op_base, psn, 0,
		file, line);
	view = wire_view(from, index);
	EQUAL(view_aeth(&view)->syndrome, syndrome);
	EQUAL(be24_get(view_aeth(&view)->msn), msn);
	EQUAL(view.payload_len, 0);
	EQUAL(view.solicited, 0);
}

void
expect_response_at(struct host *from, unsigned index, uint8_t opcode, uint32_t psn,
	uint32_t msn, uint64_t len_or_value, const char *file, int line)
{
	bool atomic = opcode == OPCODE_RC_ATOMIC_ACKNOWLEDGE;
	struct pkt_view view;
	uint64_t value;

	expect_frame_at(from, index, opcode | from->qp.op_base, psn, 0, file, line);
	view = wire_view(from, index);
	EQUAL(view.solicited, 0);
	EQUAL(view.payload_len, atomic ? 0 : len_or_value);
	if (view.op->hdrs & HDR_AETH) {
		EQUAL(view_aeth(&view)->syndrome, AETH_ACK);
		EQUAL(be24_get(view_aeth(&view)->msn), msn);
	}
	if (atomic) {
		memcpy(&value, view.ext + sizeof(struct aeth), sizeof(value));
		EQUAL(rte_be_to_cpu_64(value), len_or_value);
	}
}
