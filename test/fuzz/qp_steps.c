/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps that may happen to the two QPs. */
#include "qp_world.h"

#include "wire/opcode.h"

/* Work requests */

static struct sge
zone_sge(const struct host *h, uint32_t zone, const struct step *s)
{
	uint32_t offset = s->y % ZONE, len = s->x % (ZONE + 1);

	if (len > ZONE - offset)
		len = ZONE - offset;
	return host_sge(h, zone + offset, len);
}

static enum ibv_wr_opcode
wr_opcode(const struct host *h, unsigned which)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};

	switch (h->qp.type) {
	case IBV_QPT_UD:
		return ops[which % 2];
	case IBV_QPT_UC:
		return ops[which % 4];
	default:
		return ops[which % 8];
	}
}

static void
request_aim(struct send_req *req, struct host *h, const struct step *s)
{
	/* Mostly inside of the granted zone, sometimes across one of its edges. */
	int32_t off = s->b & 0x80 ? (int32_t)s->y * 2 - ZONE : s->y % ZONE & ~7;

	req->remote_va = (uintptr_t)h->other->mem + GRANT_AT + (uint64_t)(int64_t)off;
	req->rkey = h->other->rkey ^ (s->b & 0x40 ? 1u << s->y % 32 : 0);
	req->compare_add = s->y & 1 ? s->x : 0;
	req->swap = s->x * UINT64_C(0x100010001);
	req->imm = s->x;
}

static void
step_post_send(struct world *w, struct host *h, const struct step *s)
{
	static const unsigned flags[] = {
		IBV_SEND_SIGNALED, IBV_SEND_FENCE, IBV_SEND_SOLICITED, IBV_SEND_INLINE};
	enum ibv_wr_opcode op = wr_opcode(h, s->a);
	bool lands = op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_CMP_AND_SWP ||
		     op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct ud_dest dest = host_dest(h);
	struct sge sge[2];
	struct send_req req = {
		.wr_id = w->wr_id++, .opcode = op, .sge = sge, .num_sge = 1};

	/* ibv_post_send(3) refuses these. */
	if (h->qp.state < IBV_QPS_RTS || h->qp.type == IBV_QPT_XRC_RECV)
		return;
	sge[0] = zone_sge(h, lands ? LANDING_AT : SOURCE_AT, s);
	if (lands && op != IBV_WR_RDMA_READ) {
		sge[0] = host_sge(h, LANDING_AT + s->y % (ZONE - 8), 8);
	} else if (h->qp.type == IBV_QPT_UD) {
		sge[0].len = RTE_MIN(sge[0].len, mtu_bytes(h->link->conf.mtu));
	}
	for (unsigned i = 0; i < RTE_DIM(flags); i++)
		req.flags |= s->b & 1 << i ? flags[i] : 0;
	if (lands || sge[0].len > h->qp.sq.max_inline)
		req.flags &= ~(unsigned)IBV_SEND_INLINE;
	if (s->c & 1 && sge[0].len > 8) { /* two SGEs */
		sge[1] = sge[0];
		sge[0].len /= 3;
		sge[1].len -= sge[0].len;
		sge[1].addr += sge[0].len;
		req.num_sge = 2;
	}
	if (s->c & 0x80)
		sge[req.num_sge - 1].lkey ^= 1u << s->c % 32;
	if (s->c == 0x42 && !lands)
		req.num_sge = 0;
	request_aim(&req, h, s);
	if (h->qp.type == IBV_QPT_UD) {
		req.dest = &dest;
		dest.qkey = s->c & 0x10 ? dest.qkey ^ s->x : dest.qkey;
	}
	(void)host_post_send(h, &req);
}

static void
step_post_recv(struct world *w, struct host *h, const struct step *s)
{
	struct sge sge = zone_sge(h, LANDING_AT, s);

	if (h->qp.type == IBV_QPT_XRC_SEND ||
		(h->qp.state == IBV_QPS_RESET && h->qp.rq != NULL))
		return;
	sge.lkey = h->recv_key;
	if (s->a & 0x80)
		sge.lkey ^= 1u << s->a % 32;
	/* Posts several, so that messages rarely fail for lack of receives. */
	for (unsigned i = 0; i <= s->b % 8u; i++)
		(void)host_post_recv(h, w->wr_id++, &sge, sge.len != 0);
}

/* The wire */

static void
step_wire(struct host *h, const struct step *s)
{
	unsigned index, to;

	if (h->wire_count == 0)
		return;
	index = s->b % h->wire_count;
	switch (s->a % 6) {
	case 0:
		wire_drop(h, index);
		break;
	case 1:
		if (h->wire_count < WIRE_MAX - 2)
			wire_dup(h, index);
		break;
	case 2:
		to = (unsigned)s->c % h->wire_count;
		wire_move(h, index, to);
		break;
	case 3:
		wire_corrupt(h, index, (uint32_t)s->y << 16 | s->x);
		break;
	case 4:
		wire_drop_all(h);
		break;
	default:
		wire_deliver(h, index);
		break;
	}
}

static void
step_deliver(struct host *h, const struct step *s)
{
	for (unsigned i = 0; i <= s->a && h->wire_count != 0; i++)
		wire_deliver(h, 0);
}

/* A PSN that is significant to the receiving QP. */
static uint32_t
psn_base(const struct host *to, unsigned which)
{
	switch (which % 4) {
	case 1:
		return to->qp.req.una_psn;
	case 2:
		return to->qp.req.sent_psn;
	case 3:
		return to->qp.req.next_psn;
	default:
		return to->qp.resp.epsn;
	}
}

static uint8_t
service_opcode(const struct host *to, uint8_t low, uint8_t any)
{
	switch (any ? IBV_QPT_RAW_PACKET : (int)to->qp.type) {
	case IBV_QPT_RC:
		return low % 0x1F == 0x1E ? OPCODE_SACK : low % 0x1F;
	case IBV_QPT_UC:
		return (uint8_t)(0x20 + low % 0x0C);
	case IBV_QPT_UD:
		return (uint8_t)(OPCODE_UD_SEND_ONLY + low % 2);
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return (uint8_t)(OPCODE_XRC_SEND_FIRST + low % 0x18);
	default:
		return low;
	}
}

/* A packet with every field chosen. Fields for memory come from the next step. */
static void
step_packet(struct host *to, const struct step *s, struct input *in)
{
	uint8_t how = take8(in), syndrome = take8(in), second = take8(in);
	uint16_t va = take16(in), len = take16(in), third = take8(in);
	uint32_t mtu = mtu_bytes(to->link->conf.mtu);
	struct pkt_spec c = {
		.opcode = service_opcode(to, s->a, how & 1),
		.psn = psn_add(psn_base(to, s->b), (uint32_t)(int32_t)(int8_t)s->c),
		.payload_len = s->y & 0x8000 ? mtu : s->y % (mtu + 8),
		.payload_key = s->x,
		.ack_req = s->x & 1,
		.solicited = s->x & 2,
		.syndrome = syndrome,
		.msn = to->qp.req.una_idx + second,
		.imm = s->x & 0x100 ? to->rkey : s->x,
		.va = (uintptr_t)to->mem + GRANT_AT +
		      (uint64_t)(int64_t)(how & 2 ? (int32_t)va - ZONE : va % ZONE & ~7),
		.rkey = to->rkey ^ (how & 4 ? 1u << third % 32 : 0),
		.dma_len = how & 8 ? (uint32_t)len << third % 17 : s->y % (mtu + 8),
		.swap_add = va,
		.compare = how & 0x10 ? va : 0,
		.value = len,
		.qkey = QKEY ^ (how & 0x20 ? 1u << third % 32 : 0),
		.src_qpn = to->other->qp.qpn,
		.srqn = how & 0x80 ? to->srq.srqn + third % 2 : 0,
	};

	if (op_rows[c.opcode].kind == OP_UNKNOWN)
		return;
	c.seth.version = how & 0x10 ? third : SETH_VERSION << 4;
	be24_put(c.seth.echo, c.psn + second % 16);
	memcpy(c.seth.map, &s->x, sizeof(s->x));
	memcpy(c.seth.map + 2, &s->y, sizeof(s->y));
	if (how & 0x40) {
		c.pkey = (uint16_t)(third & 1 ? 0x7FFF : 0x1234);
		c.src_ip_change = third & 2;
		c.dst_ip_change = third & 4;
		c.other_version = third & 8;
		c.dest_qpn = third & 16 ? PSN_MASK : 0;
	}
	inject(to, &c);
}

/* BTH and payload as another implementation sent them. Addresses, QPNs and keys are ours
 * unless the step says otherwise. */
static void
step_replay(struct host *to, const struct step *s, struct input *in)
{
	size_t len = s->y % 4500;
	const uint8_t *bytes = take_bytes(in, &len);
	struct path_addr addr = {.udp_sport = 0xC123, .hop_limit = 9};
	uint64_t va = (uintptr_t)to->mem + GRANT_AT + (s->x % ZONE & ~7u);
	struct path_hdr hdr;
	uint8_t frame[8192], *bth;
	const struct op_row *op;

	if (len < sizeof(struct bth))
		return;
	memcpy(addr.src_gid, to->qp.path.dgid, 16);
	memcpy(addr.dst_gid, to->qp.path.sgid, 16);
	path_hdr_init(&hdr, &addr);
	memcpy(frame, hdr.bytes, hdr.len);
	bth = frame + hdr.len;
	memcpy(bth, bytes, len);
	op = &op_rows[bth[0]];
	if (!(s->a & 1))
		be24_put(bth + 5, to->qp.qpn);
	if (!(s->a & 2))
		be24_put(bth + 9,
			psn_add(psn_base(to, s->b), (uint32_t)(int32_t)(int8_t)s->c));
	if (!(s->a & 8) && op->hdrs & HDR_XRCETH && len >= sizeof(struct bth) + 4)
		be24_put(bth + sizeof(struct bth) + 1, to->srq.srqn);
	if (!(s->a & 4) && op->hdrs & (HDR_RETH | HDR_ATOMIC) &&
		len >= sizeof(struct bth) + op->ext_len) {
		uint8_t *at = bth + sizeof(struct bth) + op->main_off;

		for (unsigned i = 0; i < 8; i++)
			at[i] = (uint8_t)(va >> 8 * (7 - i));
		for (unsigned i = 0; i < 4; i++)
			at[8 + i] = (uint8_t)(to->rkey >> 8 * (3 - i));
	}
	memset(bth + len, 0, ICRC_LEN);
	len = hdr.len + len + ICRC_LEN;
	frame_fix(frame, len, FIX_LENGTHS | FIX_CHECKSUMS | FIX_ICRC);
	host_rx(to, frame, (uint32_t)len);
}

/* Time and state */

static void
step_time(struct world *w, const struct step *s)
{
	uint64_t a = qp_deadline(&w->link.a.qp), b = qp_deadline(&w->link.b.qp);
	uint64_t next = RTE_MIN(a, b);

	if (s->a & 0x80)
		qp_link_advance(&w->link, (uint64_t)s->x << s->b % 20);
	else if (next != TIME_NEVER && next > w->link.now)
		qp_link_advance(&w->link, next - w->link.now - (s->a == 1));
}

static void
events_discard(struct host *h)
{
	world_poll(h);
	event_purge(&h->qp.events);
}

static void
reconnect(struct host *h, const struct step *s)
{
	FUZZ_CHECK(host_modify(h, IBV_QPS_RESET) == 0);
	events_discard(h);
	h->link->conf.psn[h == &h->link->b] = s->x | (uint32_t)s->c << 16;
	host_connect(h);
}

/* Modifies to any state with any attributes: must be refused or take effect. */
static void
modify_any(struct host *h, const struct step *s)
{
	struct qp_attr attr = host_attr(h);
	int mask = (s->x | s->y << 16) & 0x1FFFFF;

	attr.state = (enum ibv_qp_state)(s->b % 7);
	attr.cur_state = (enum ibv_qp_state)(s->b / 7 % 7);
	attr.max_rd_atomic = s->c % (QP_MAX_RD_ATOMIC + 2);
	attr.max_dest_rd_atomic = s->c / 8 % (QP_MAX_RD_ATOMIC + 2);
	attr.en_sqd_async_notify = s->c & 1;
	attr.timeout = s->c % 33;
	(void)qp_modify(&h->qp, &attr, mask, IBV_MTU_4096);
	qp_query(&h->qp, &attr);
}

static void
step_modify(struct world *w, struct host *h, const struct step *s)
{
	switch (s->a % 8) {
	case 0:
		reconnect(h, s);
		break;
	case 1:
		reconnect(h, s);
		reconnect(h->other, s);
		break;
	case 2:
		(void)host_modify(h, IBV_QPS_ERR);
		break;
	case 3:
		(void)host_modify(h, IBV_QPS_SQD);
		break;
	case 4:
		(void)host_modify(h, IBV_QPS_RTS);
		break;
	case 5:
		world_revoke(w, h);
		break;
	case 6:
		world_grant(w, h);
		break;
	default:
		modify_any(h, s);
		break;
	}
}

static void
step_srq(struct host *h, const struct step *s)
{
	struct srq_attr attr = {.max_wr = s->x, .max_sge = s->b % 18, .limit = s->y};

	if (h->qp.srq == NULL)
		return;
	(void)srq_modify(h->qp.srq, &attr, s->a % 4);
}

/* A time of undisturbed work. */
static void
step_drain(struct world *w, const struct step *s)
{
	for (unsigned i = 0; i <= s->a % 16u; i++) {
		world_pull(&w->link.a, 64);
		step_deliver(&w->link.a, &(struct step){.a = 255});
		world_pull(&w->link.b, 64);
		step_deliver(&w->link.b, &(struct step){.a = 255});
	}
}

void
world_step(struct world *w, const struct step *s, struct input *in)
{
	struct host *h = s->op & 0x80 ? &w->link.b : &w->link.a;

	switch ((s->op & 0x7F) % 13) {
	case 0:
		step_post_send(w, h, s);
		break;
	case 1:
		step_post_recv(w, h, s);
		break;
	case 2:
		world_pull(h, s->a);
		break;
	case 3:
		step_deliver(h, s);
		break;
	case 4:
		step_wire(h, s);
		break;
	case 5:
	case 6:
		step_packet(h, s, in);
		break;
	case 7:
		step_replay(h, s, in);
		break;
	case 8:
		step_time(w, s);
		break;
	case 9:
		world_poll(h);
		break;
	case 10:
		step_modify(w, h, s);
		break;
	case 11:
		step_srq(h, s);
		break;
	default:
		step_drain(w, s);
		break;
	}
}
