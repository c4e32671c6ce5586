/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: the kernel driver's captured datagrams are delivered, and ours have
 * the same headers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "engine/engine_state.h"
#include "engine/next_hop.h"
#include "engine_link.h"
#include "pcap.h"

#define PD 1
#define QKEY 0x11111111

static struct engine_link fixture;

struct ud {
	struct link_side *side;
	struct qp *qp; /* &core */
	struct qp core;
	struct cq cq;
};

static void
ud_create(struct link_side *s, struct ud *u, int engine, uint32_t qkey)
{
	struct qp_conf conf = {.type = IBV_QPT_UD,
		.send_cq = &u->cq,
		.recv_cq = &u->cq,
		.pd = PD,
		.max_send_wr = 16,
		.max_send_sge = 1,
		.max_recv_wr = 16,
		.max_recv_sge = 1};
	struct qp_attr attr = {.state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey};

	u->side = s;
	assert_int_equal(cq_init(&u->cq, &s->link->mem, 64, &s->events, u), 0);
	u->qp = &u->core;
	assert_int_equal(dev_qp_init(s->dev, u->qp, &conf, engine, &s->events, u), 0);
	assert_int_equal(
		dev_qp_modify(s->dev, u->qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		0);
	attr.state = IBV_QPS_RTR;
	assert_int_equal(dev_qp_modify(s->dev, u->qp, &attr, IBV_QP_STATE), 0);
	attr.state = IBV_QPS_RTS;
	assert_int_equal(
		dev_qp_modify(s->dev, u->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void
ud_destroy(struct ud *u)
{
	dev_qp_stop(u->side->dev, u->qp, fixture.now);
	dev_qp_fini(u->side->dev, u->qp);
	cq_fini(&u->cq);
}

static void
ud_receive(struct ud *u, uint64_t wr_id)
{
	struct sge sge = {(uintptr_t)u->side->mem, 4200, u->side->lkey};

	assert_int_equal(ring_post(u->qp->rq, wr_id, &sge, 1), 0);
}

static void
ud_send(struct ud *u, const uint8_t gid[16], uint32_t len)
{
	struct send_wqe *wqe = sq_next(&u->qp->sq, u->qp->sq.prod);
	struct ud_dest dest = {.hop_limit = 1,
		.qpn = QPN_MULTICAST,
		.qkey = QKEY,
		.sgid_index = gid_is_ipv4(gid) ? 0 : 1};
	struct sge sge = {(uintptr_t)u->side->mem, len, u->side->lkey};

	assert_non_null(wqe);
	memset(wqe, 0, sizeof(*wqe));
	memcpy(dest.dgid, gid, 16);
	wqe->opcode = IBV_WR_SEND;
	wqe->len = len;
	wqe->num_sge = 1;
	memcpy(wqe->sge, &dest, sizeof(dest));
	memcpy(wqe->sge + UD_DEST_SGES, &sge, sizeof(sge));
	sq_publish(&u->qp->sq, u->qp->sq.prod + 1);
	engine_doorbell(u->qp);
}

static bool
ud_received(struct ud *u, struct cqe *cqe)
{
	return cq_take(&u->cq, &u->qp->sq, cqe);
}

static void
sent_frames_free(struct link_side *s)
{
	struct pkt frame;

	while (fake_sent(&s->port, &frame))
		free(frame.data);
}

/* Attaches a QP to the group of each captured datagram, which is then delivered. */
static void
capture_replay(const char *name, unsigned expected)
{
	struct pcap_file file;
	unsigned got = 0;

	engine_link_init(&fixture, NULL);
	assert_int_equal(pcap_file_load(&file, name), 0);
	for (size_t i = 0; i < file.count; i++) {
		struct pkt pkt = {.data = (uint8_t *)(uintptr_t)file.frames[i].data,
			.len = (uint16_t)file.frames[i].len};
		struct pkt_view view;
		struct cqe cqe;
		struct ud u;
		uint8_t gid[16] = {[10] = 0xff, [11] = 0xff}, mac[6];

		if (pkt_parse(&pkt, 0, &view) != DROP_none ||
			view.dest_qpn != QPN_MULTICAST)
			continue;
		memcpy(gid + 12, view.ip + 16, 4);
		assert_int_equal(
			net_resolve(fixture.b.dev->net, gid, mac, fixture.now), 0);
		assert_memory_equal(mac, pkt.data, 6);
		ud_create(&fixture.b, &u, 0, rte_be_to_cpu_32(view_deth(&view)->qkey));
		assert_int_equal(dev_qp_attach(fixture.b.dev, u.qp, gid), 0);
		ud_receive(&u, i);
		assert_true(fake_arrive(&fixture.b.port, 0, &pkt));
		engine_link_drain(&fixture);
		assert_true(ud_received(&u, &cqe));
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_int_equal(cqe.byte_len, 40 + view.payload_len);
		assert_memory_equal(fixture.b.mem + 40, view.payload, view.payload_len);
		assert_memory_equal(fixture.b.mem + 20, view.ip, 20);
		assert_int_equal(dev_qp_detach(fixture.b.dev, u.qp, gid), 0);
		ud_destroy(&u);
		got++;
	}
	assert_int_equal(got, expected);
	pcap_file_unload(&file);
	engine_link_fini(&fixture);
}

TEST(captured_group_datagrams_are_delivered)
{
	capture_replay(CAPTURES "/24-ud-mcast.pcap", 2);
	capture_replay(CAPTURES "/97-cm-mckey.pcap", 2);
}

/* A group's MAC is derived from its GID without ARP or ND. */
TEST(group_mac_needs_no_resolution)
{
	static const struct {
		const char *group;
		uint8_t mac[6];
	} rows[] = {
		{"239.129.2.3", {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03}},
		{"ff15::1:8199:203", {0x33, 0x33, 0x81, 0x99, 0x02, 0x03}},
	};
	struct ud u;

	engine_link_init(&fixture, NULL);
	engine_link_advance(&fixture, 10 * NS_PER_SEC);
	sent_frames_free(&fixture.a);
	ud_create(&fixture.a, &u, 0, QKEY);
	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct pkt_view view;
		struct pkt frame;
		uint8_t gid[16];

		assert_int_equal(gid_parse(rows[i].group, gid, NULL), 0);
		ud_send(&u, gid, 100);
		while (engine_run(fixture.a.dev->engines[0], fixture.now) != 0)
			;
		assert_true(fake_sent(&fixture.a.port, &frame));
		assert_memory_equal(frame.data, rows[i].mac, 6);
		frame.flags = 0; /* no checksum offload: the header has its checksum */
		assert_int_equal(pkt_parse(&frame, 0, &view), DROP_none);
		assert_int_equal(view.dest_qpn, QPN_MULTICAST);
		assert_int_equal(view.payload_len, 100);
		free(frame.data);
		assert_int_equal(fake_sent_count(&fixture.a.port), 0);
	}
	ud_destroy(&u);
	engine_link_fini(&fixture);
}

/* A datagram that arrives at one engine is delivered once to the group's QPs of all. */
TEST(group_datagram_reaches_qps_of_all_engines)
{
	struct engine_link_conf conf = {.engines = {1, 3}};
	uint8_t gid[16];
	struct ud tx, rx[6];
	struct cqe cqe;

	engine_link_init(&fixture, &conf);
	assert_int_equal(gid_parse("224.0.1.1", gid, NULL), 0);
	ud_create(&fixture.a, &tx, 0, QKEY);
	for (unsigned i = 0; i < RTE_DIM(rx); i++) {
		ud_create(&fixture.b, &rx[i], (int)(i % 3), QKEY);
		assert_int_equal(dev_qp_attach(fixture.b.dev, rx[i].qp, gid), 0);
	}
	for (unsigned queue = 0; queue < 3; queue++) {
		struct port_stats stats;
		uint64_t crossed;

		dev_stats(fixture.b.dev, &stats);
		crossed = stats.rx_handoff;
		fixture.b.queue = queue;
		for (unsigned i = 0; i < RTE_DIM(rx); i++) {
			ud_receive(&rx[i], 2 * queue);
			ud_receive(&rx[i], 2 * queue + 1);
		}
		ud_send(&tx, gid, 200);
		ud_send(&tx, gid, 200);
		engine_link_drain(&fixture);
		for (unsigned i = 0; i < RTE_DIM(rx); i++) {
			for (unsigned k = 0; k < 2; k++) {
				assert_true(ud_received(&rx[i], &cqe));
				assert_int_equal(cqe.wr_id, 2 * queue + k);
				assert_int_equal(cqe.status, IBV_WC_SUCCESS);
			}
			assert_false(ud_received(&rx[i], &cqe));
		}
		dev_stats(fixture.b.dev, &stats);
		assert_int_equal(stats.rx_handoff - crossed, 2 * 2);
	}
	for (unsigned i = 0; i < RTE_DIM(rx); i++) {
		assert_int_equal(dev_qp_detach(fixture.b.dev, rx[i].qp, gid), 0);
		ud_destroy(&rx[i]);
	}
	ud_destroy(&tx);
	engine_link_fini(&fixture);
}

/* A UD QP may be served with nothing posted, when its doorbell was rung for a request that
 * had left already. Another thread may post then. The request waits until the headers are
 * those of its destination. */
TEST(posted_while_served_waits_for_its_headers)
{
	struct engine_link_conf conf = {.engines = {1, 1}};
	struct engine *e;
	uint8_t first[16], second[16];
	struct pkt frame;
	struct ud u;

	engine_link_init(&fixture, &conf);
	e = fixture.a.dev->engines[0];
	assert_int_equal(gid_parse("224.0.1.1", first, NULL), 0);
	assert_int_equal(gid_parse("224.0.1.2", second, NULL), 0);
	ud_create(&fixture.a, &u, 0, QKEY);
	ud_send(&u, first, 100);
	while (engine_run(e, fixture.now) != 0)
		;
	sent_frames_free(&fixture.a);
	assert_int_equal(next_hop_resolve(e, u.qp, fixture.now), -ENOMSG);
	engine_doorbell(u.qp);
	assert_int_equal(engine_run(e, fixture.now), 0);
	ud_send(&u, second, 100);
	assert_int_equal(next_hop_resolve(e, u.qp, fixture.now), ROUTE_GROUP);
	assert_memory_equal(u.qp->path.dgid, second, 16);
	while (engine_run(e, fixture.now) != 0)
		;
	assert_true(fake_sent(&fixture.a.port, &frame));
	assert_int_equal(frame.data[5], 2);
	free(frame.data);
	ud_destroy(&u);
	engine_link_fini(&fixture);
}

static void
address_set(struct link_side *s, const char *address)
{
	struct net_conf conf = {.addr_count = 1};

	assert_int_equal(
		gid_parse(address, conf.addr[0].gid, &conf.addr[0].prefix_len), 0);
	assert_int_equal(dev_set_net(s->dev, &conf), 0);
	engine_link_advance(&fixture, 10 * NS_PER_SEC); /* the announcements */
	sent_frames_free(s);
}

/* Posts a datagram, after which nothing is left to send in any case. Returns how many frames
 * were sent. */
static unsigned
datagram_try(struct ud *u, const uint8_t gid[16])
{
	struct pkt frame;
	unsigned n = 0;

	ud_send(u, gid, 100);
	while (engine_run(u->side->dev->engines[0], fixture.now) != 0)
		;
	for (; fake_sent(&u->side->port, &frame); n++)
		free(frame.data);
	assert_false(qp_wants_tx(u->qp));
	return n;
}

/* The address that a handle's index names has been replaced by one of the other IP version,
 * or removed. */
TEST(handle_without_its_source_sends_nothing)
{
	const struct port_stats *stats;
	uint8_t ipv4[16], ipv6[16];
	struct ud u;

	engine_link_init(&fixture, NULL);
	assert_int_equal(gid_parse("239.1.2.3", ipv4, NULL), 0);
	assert_int_equal(gid_parse("ff15::4711", ipv6, NULL), 0);
	stats = engine_stats(fixture.a.dev->engines[0]);
	address_set(&fixture.a, "192.0.2.1/24");
	ud_create(&fixture.a, &u, 0, QKEY);
	assert_int_equal(datagram_try(&u, ipv4), 1);
	address_set(&fixture.a, "2001:db8::1/64");
	assert_int_equal(datagram_try(&u, ipv4), 0);
	assert_int_equal(stats->tx_no_neighbour, 1);
	assert_int_equal(datagram_try(&u, ipv6), 1);
	memset(fixture.a.dev->gids[1], 0, 16);
	assert_int_equal(datagram_try(&u, ipv6), 0);
	assert_int_equal(stats->tx_no_neighbour, 2);
	/* It sends as before once the address is back. */
	address_set(&fixture.a, "192.0.2.1/24");
	assert_int_equal(datagram_try(&u, ipv4), 1);
	assert_int_equal(datagram_try(&u, ipv6), 1);
	assert_int_equal(stats->tx_no_neighbour, 2);
	ud_destroy(&u);
	engine_link_fini(&fixture);
}
