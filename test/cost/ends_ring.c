/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ports of net_ring: a frame is passed on as the mbuf that it is. Both have one mempool of the
 * application. */
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <rocade/mbuf.h>

#include "ends.h"

#define RING_ROOM 1024
#define POOL_SIZE 16383
#define POOL_CACHE 256
#define MTU 4184

static struct rte_mempool *pool;

static struct rte_ring *
ring_create(const char *name)
{
	struct rte_ring *ring =
		rte_ring_create(name, RING_ROOM, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);

	must(ring != NULL, "rte_ring_create");
	return ring;
}

void
ends_ports_open(struct rocade_port_conf conf[2], struct rocade_port *port[2])
{
	char *args[] = {"ring_cost", "--no-huge", "--no-pci", "--no-shconf",
		"--no-telemetry", "-m", "256", "-l", "0", "--log-level=error"};
	struct rte_ring *there, *back;
	int id[2];

	must(rte_eal_init(sizeof(args) / sizeof(args[0]), args) >= 0, "rte_eal_init");
	pool = rte_pktmbuf_pool_create(
		"frames", POOL_SIZE, POOL_CACHE, 0, RTE_PKTMBUF_HEADROOM + 5120, 0);
	must(pool != NULL, "rte_pktmbuf_pool_create");
	there = ring_create("there");
	back = ring_create("back");
	id[0] = rte_eth_from_rings("client", &back, 1, &there, 1, 0);
	id[1] = rte_eth_from_rings("server", &there, 1, &back, 1, 0);
	for (unsigned i = 0; i < 2; i++) {
		must(id[i] >= 0, "rte_eth_from_rings");
		conf[i].ethdev = (uint16_t)id[i];
		conf[i].mtu = MTU;
		conf[i].pool = pool;
		must(rocade_open_port(&conf[i], &port[i]) == 0, rocade_error());
	}
}

void
ends_port_close(struct rocade_port *port)
{
	must(rocade_close_port(port) == 0, "rocade_close_port");
}

void
ends_pass(struct end *end)
{
	rocade_engine_poll(end->engine);
}

void
ends_srq_prepare(struct end *end)
{
	const struct rocade_srq_mbufs mbufs = {
		.size = sizeof(mbufs), .pool = pool, .max_message = ENDS_SLOT};

	if (end->mbufs)
		must(rocade_srq_set_mbufs(end->srq, &mbufs) == 0, rocade_error());
}

unsigned
ends_message_take(struct end *end, const struct ibv_wc *wc)
{
	if (!end->mbufs)
		return (unsigned)wc->wr_id;
	rte_pktmbuf_free(rocade_wc_mbuf(wc));
	return end->next_recv++ % ENDS_RECEIVES;
}

void
ends_mbuf_post(struct ibv_qp *qp, struct ibv_send_wr *wr, bool copy)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	struct ibv_send_wr *bad;

	must(m != NULL && rte_pktmbuf_append(m, ENDS_SLOT) != NULL, "an mbuf to send");
	if (!copy) {
		wr->num_sge = 0;
		must(rocade_post_send_mbuf(qp, wr, m) == 0, rocade_error());
		return;
	}
	memcpy((void *)(uintptr_t)wr->sg_list->addr, rte_pktmbuf_mtod(m, void *),
		ENDS_SLOT);
	rte_pktmbuf_free(m);
	must(ibv_post_send(qp, wr, &bad) == 0, "ibv_post_send");
}
