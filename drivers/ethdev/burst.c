/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path over rte_ethdev: packets are views of mbufs, one segment each. */
#include "ethdev/internal.h"

static inline uint32_t
rx_flags(uint64_t ol_flags)
{
	switch (ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) {
	case RTE_MBUF_F_RX_IP_CKSUM_GOOD:
		return PKT_RX_IPV4_CKSUM_OK;
	case RTE_MBUF_F_RX_IP_CKSUM_BAD:
		return PKT_RX_IPV4_CKSUM_BAD;
	default:
		return 0;
	}
}

static inline void
pkt_from_mbuf(struct pkt *pkt, struct rte_mbuf *m, uint32_t flags)
{
	*pkt = (struct pkt){
		.data = rte_pktmbuf_mtod(m, uint8_t *),
		.len = m->data_len,
		.room = (uint16_t)(m->buf_len - m->data_off),
		.flags = flags,
		.owner = m,
	};
}

unsigned
ethdev_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	const struct ethdev_queue *q = queue;
	struct rte_mbuf *mbufs[PKT_BURST];
	unsigned got = rte_eth_rx_burst(
		q->port_id, q->queue_id, mbufs, (uint16_t)RTE_MIN(n, PKT_BURST + 0u));
	unsigned kept = 0;

	for (unsigned i = 0; i < got; i++) {
		struct rte_mbuf *m = mbufs[i];
		uint32_t flags = rx_flags(m->ol_flags);

		if (unlikely(m->nb_segs > 1)) {
			/* The pool's room holds the largest frame, so this fails for
			 * what the port should not have taken. */
			if (rte_pktmbuf_linearize(m) != 0) {
				rte_pktmbuf_free(m);
				continue;
			}
			flags |= PKT_RX_LINEARISED;
		}
		pkt_from_mbuf(&pkts[kept++], m, flags);
	}
	return kept;
}

void
ethdev_release(void *queue, struct pkt *pkts, unsigned n)
{
	struct rte_mbuf *mbufs[PKT_BURST];

	(void)queue;
	while (n != 0) {
		unsigned run = RTE_MIN(n, PKT_BURST + 0u);

		for (unsigned i = 0; i < run; i++)
			mbufs[i] = pkts[i].owner;
		rte_pktmbuf_free_bulk(mbufs, run);
		pkts += run;
		n -= run;
	}
}

unsigned
ethdev_tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	const struct ethdev_queue *q = queue;
	struct rte_mbuf *mbufs[PKT_BURST];

	n = RTE_MIN(n, PKT_BURST + 0u);
	if (unlikely(rte_pktmbuf_alloc_bulk(q->pool, mbufs, n) != 0)) {
		/* Nearly empty: one is better than none. */
		n = 1;
		mbufs[0] = rte_pktmbuf_alloc(q->pool);
		if (mbufs[0] == NULL)
			return 0;
	}
	for (unsigned i = 0; i < n; i++)
		pkt_from_mbuf(&pkts[i], mbufs[i], 0);
	return n;
}

static inline void
tx_flags(struct rte_mbuf *m, const struct pkt *pkt)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)pkt->data;
	bool tagged = eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);

	m->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
	m->l2_len = sizeof(*eth) + (tagged ? sizeof(struct rte_vlan_hdr) : 0);
	m->l3_len = sizeof(struct rte_ipv4_hdr);
}

unsigned
ethdev_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	const struct ethdev_queue *q = queue;
	struct rte_mbuf *mbufs[2 * PKT_BURST];

	n = RTE_MIN(n, RTE_DIM(mbufs));
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i].owner;

		m->data_len = pkts[i].len;
		m->pkt_len = pkts[i].len;
		if (pkts[i].flags & PKT_TX_IPV4_CKSUM)
			tx_flags(m, &pkts[i]);
		mbufs[i] = m;
	}
	return rte_eth_tx_burst(q->port_id, q->queue_id, mbufs, (uint16_t)n);
}

int
ethdev_wait_fd(void *queue)
{
	(void)queue;
	return -1;
}
