/* SPDX-License-Identifier: BSD-3-Clause */
/* The victims and the adversary's port. Its packets are built in adversary_packet.c. */
#include <errno.h>
#include <string.h>

#include "cover.h"
#include "adversary_packet.h"
#include "adversary.h"

#define DEPTH 8
#define ZONE_BYTES 9000

struct adversary adversary;

#define ACCESS                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |     \
		IBV_ACCESS_REMOTE_ATOMIC)

/* The adversary's port */

static void
adversary_rx(void *arg, struct frame *f)
{
	struct pkt pkt = {.data = f->data, .len = f->len, .room = FRAME_ROOM};
	struct frame *reply = frame_get();
	struct pkt out = {.data = reply->data, .room = FRAME_ROOM};
	enum drop_reason why;

	(void)arg;
	if (frame_bth(f->data, f->len) != NULL) {
		adversary_rx_roce(f->data, f->len);
	} else if (f->len > 14 && net_rx(adversary.net, &pkt, &out, &why, sim.now)) {
		reply->len = out.len;
		link_send(adversary.port, reply);
		reply = NULL;
	}
	if (reply != NULL)
		frame_put(reply);
	frame_put(f);
}

static void
adversary_net_open(void)
{
	struct net_conf conf = {.addr_count = 2};

	adversary.port = link_attach(&world.link, ADVERSARY_PORT, 1, 1024);
	adversary.port->take = adversary_rx;
	memcpy(conf.mac, adversary.port->port.mac, 6);
	CHECK(gid_parse("10.0.0.100/24", conf.addr[0].gid, &conf.addr[0].prefix_len) == 0,
		"gid_parse");
	CHECK(gid_parse("fd00::100/64", conf.addr[1].gid, &conf.addr[1].prefix_len) == 0,
		"gid_parse");
	memcpy(adversary.gid[0].raw, conf.addr[0].gid, 16);
	memcpy(adversary.gid[1].raw, conf.addr[1].gid, 16);
	CHECK(net_create(&conf, &adversary.net) == 0, "net_create");
}

/* ---- Victims ---- */

void
adversary_plan(void)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	memset(&adversary, 0, sizeof(adversary));
	if (!chance(300))
		return;
	adversary.victims = 1 + (unsigned)draw(ADVERSARY_VICTIMS);
	for (unsigned i = 0; i < adversary.victims; i++) {
		struct victim *v = &adversary.victim[i];
		struct host *h = &world.host[draw(world.hosts)];

		v->host = h;
		v->type = DRAW_OF(types);
		v->pd = (unsigned)draw(HOST_PDS);
		v->cq = &h->cq[draw(h->conf.cqs)];
		v->ipv6 = chance(500);
		v->mtu = IBV_MTU_256 + (unsigned)draw(5);
		if (h->conf.srqs != 0 && chance(500))
			v->srq = &h->srq[draw(h->conf.srqs)];
		v->cq->size += 2 * DEPTH;
	}
}

void
adversary_open(void)
{
	if (adversary.victims == 0)
		return;
	adversary_net_open();
	for (unsigned i = 0; i < adversary.victims; i++) {
		struct victim *v = &adversary.victim[i];
		struct ibv_qp_init_attr attr = {
			.send_cq = v->cq->cq,
			.recv_cq = v->cq->cq,
			.srq = v->srq != NULL ? v->srq->srq : NULL,
			.cap = {.max_send_wr = DEPTH,
				.max_send_sge = 1,
				.max_recv_wr = DEPTH,
				.max_recv_sge = 1},
			.qp_type = v->type,
			.sq_sig_all = 1,
		};

		CHECK(arena_get(&v->host->arena, ZONE_BYTES, true, &v->zone), "no room");
		v->mr = ibv_reg_mr(v->host->pd[v->pd], v->zone.data, ZONE_BYTES, ACCESS);
		CHECK(v->mr != NULL, "ibv_reg_mr: %s", strerror(errno));
		v->qp = ibv_create_qp(v->host->pd[v->pd], &attr);
		CHECK(v->qp != NULL, "ibv_create_qp: %s", strerror(errno));
		TRACE("victim %" PRIu64 ": host %" PRIu64 " qp 0x%" PRIx64
		      " type %" PRIu64,
			i, v->host->index, v->qp->qp_num, (uint64_t)v->type);
	}
}

static void
victim_modify(
	struct victim *v, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	int err;

	attr->qp_state = state;
	err = ibv_modify_qp(v->qp, attr, mask | IBV_QP_STATE);
	CHECK(err == 0, "victim 0x%x to state %u: %s", v->qp->qp_num, state,
		strerror(err));
}

static void
victim_bring_up(struct victim *v)
{
	bool rc = v->type == IBV_QPT_RC, ud = v->type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = chance(900) ? ACCESS : 0,
		.qkey = ADVERSARY_QKEY,
		.path_mtu = v->mtu,
		.rq_psn = (uint32_t)draw(1 << 24),
		.sq_psn = (uint32_t)draw(1 << 24),
		.dest_qp_num = ADVERSARY_QPN,
		.max_dest_rd_atomic = (uint8_t)draw(5),
		.max_rd_atomic = 1 + (uint8_t)draw(4),
		.min_rnr_timer = 1 + (uint8_t)draw(12),
		.timeout = 8 + (uint8_t)draw(6),
		.retry_cnt = (uint8_t)draw(8),
		.rnr_retry = (uint8_t)draw(8),
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.hop_limit = 64,
				.sgid_index = v->ipv6,
				.dgid = adversary.gid[v->ipv6]}},
	};

	to_qp(v->qp)->qp->extensions = v->qp->qp_num & 1 ? EXT_SACK : 0;
	victim_modify(v, &attr, IBV_QPS_INIT,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	victim_modify(v, &attr, IBV_QPS_RTR,
		(ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			(rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	victim_modify(v, &attr, IBV_QPS_RTS,
		IBV_QP_SQ_PSN |
			(rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						IBV_QP_MAX_QP_RD_ATOMIC
			    : 0));
}

static void
victim_reset(struct victim *v)
{
	struct ibv_qp_attr attr = {0};
	const struct qp *qp = to_qp(v->qp)->qp;

	cq_poll(v->cq, UINT32_MAX);
	host_events(v->host);
	if (v->srq != NULL && qp->resp.wqe_held)
		recv_done(v->srq, recv_find(v->srq, qp->wqe->wr_id), UINT32_MAX);
	victim_modify(v, &attr, IBV_QPS_RESET, 0);
	v->sends = v->receives = 0;
}

static struct ibv_sge
victim_sge_choose(const struct victim *v)
{
	uint32_t at = (uint32_t)draw(ZONE_BYTES / 2);

	return (struct ibv_sge){.addr = (uintptr_t)v->zone.data + at,
		.length = (uint32_t)draw(ZONE_BYTES / 2),
		.lkey = v->mr->lkey};
}

static void
victim_post_send(struct victim *v)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_IMM};
	struct ibv_sge sge = victim_sge_choose(v);
	struct ibv_send_wr wr = {.wr_id = ID_MAKE(ID_ADVERSARY, 0, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = v->type == IBV_QPT_RC ? DRAW_OF(ops) : IBV_WR_SEND};
	struct ibv_send_wr *bad;
	int err;

	if (v->type == IBV_QPT_UD || v->sends == DEPTH)
		return;
	wr.wr.rdma.remote_addr = 0x1000;
	wr.wr.rdma.rkey = 0x1234;
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = 0x1000;
	}
	err = ibv_post_send(v->qp, &wr, &bad);
	CHECK(err == 0, "victim: ibv_post_send: %s", strerror(err));
	v->sends++;
}

static void
victim_post_receive(struct victim *v)
{
	struct ibv_sge sge = victim_sge_choose(v);
	struct ibv_recv_wr wr = {
		.wr_id = ID_MAKE(ID_ADVERSARY, 1, 0), .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	/* Each receive makes a completion, and the CQ has room for DEPTH of them. */
	if (v->srq != NULL || v->receives == DEPTH)
		return;
	sge.length += sge.length == 0;
	if (ibv_post_recv(v->qp, &wr, &bad) == 0)
		v->receives++;
}

bool
adversary_active(void)
{
	return adversary.victims != 0;
}

bool
adversary_op(void)
{
	struct victim *v;
	enum ibv_qp_state state;

	if (adversary.victims == 0)
		return false;
	v = &adversary.victim[draw(adversary.victims)];
	state = qp_state(to_qp(v->qp)->qp);
	if (state == IBV_QPS_RESET)
		victim_bring_up(v);
	else if (state != IBV_QPS_RTS ? chance(200) : chance(5))
		victim_reset(v);
	else if (state == IBV_QPS_RTS && chance(150))
		victim_post_send(v);
	else if (chance(200))
		victim_post_receive(v);
	else
		adversary_send(v, 1 + (unsigned)draw(6));
	return true;
}

bool
adversary_wc(struct cq_model *cq, const struct ibv_wc *wc)
{
	struct victim *v = NULL;

	for (unsigned i = 0; i < adversary.victims; i++) {
		if (adversary.victim[i].host == cq->host &&
			adversary.victim[i].qp->qp_num == wc->qp_num)
			v = &adversary.victim[i];
	}
	if (v == NULL)
		return false;
	CHECK(v->cq == cq, "a victim's completion in the wrong CQ");
	if (ID_KIND(wc->wr_id) == ID_SRQ)
		recv_done(v->srq, recv_find(v->srq, wc->wr_id), UINT32_MAX);
	else if (ID_OWNER(wc->wr_id) == 1)
		v->receives--;
	else
		v->sends--;
	cq->possible = true;
	cq_note(cq, wc->status != IBV_WC_SUCCESS);
	return true;
}

uint32_t
adversary_held(const struct recv_model *m)
{
	uint32_t held = 0;

	for (unsigned i = 0; i < adversary.victims; i++)
		held += adversary.victim[i].srq == m &&
			to_qp(adversary.victim[i].qp)->qp->resp.wqe_held;
	return held;
}

void
adversary_close(void)
{
	for (unsigned i = 0; i < adversary.victims; i++) {
		struct victim *v = &adversary.victim[i];

		victim_reset(v);
		CHECK(ibv_destroy_qp(v->qp) == 0, "ibv_destroy_qp");
		CHECK(ibv_dereg_mr(v->mr) == 0, "ibv_dereg_mr");
		pattern_fill(v->zone.data, ZONE_BYTES);
		arena_put(&v->host->arena, &v->zone);
	}
	if (adversary.victims != 0)
		net_destroy(adversary.net);
	adversary.victims = 0;
}
