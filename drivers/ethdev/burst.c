/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_ether.h>
#include <rte_ip.h>

#include "ethdev/burst.h"

/* Returns a copy in one segment, and frees the chain. NULL: there is no buffer, or it is
 * too small. */
static struct rte_mbuf *
mbuf_linearise(struct ethdev_queue *q, struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_alloc(q->pool);
	uint32_t len = rte_pktmbuf_pkt_len(m);
	char *at = copy != NULL && len <= UINT16_MAX
			   ? rte_pktmbuf_append(copy, (uint16_t)len)
			   : NULL;

	if (at == NULL) {
		rte_pktmbuf_free(copy);
		rte_pktmbuf_free(m);
		return NULL;
	}
	for (const struct rte_mbuf *s = m; s != NULL; s = s->next) {
		memcpy(at, rte_pktmbuf_mtod(s, const void *), s->data_len);
		at += s->data_len;
	}
	/* The copy is neither a clone, nor does it have external memory. */
	copy->ol_flags |= m->ol_flags & ~(RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
	copy->vlan_tci = m->vlan_tci;
	rte_pktmbuf_free(m);
	return copy;
}

static inline uint32_t
rx_flags(uint64_t ol_flags)
{
	switch (ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) {
	case RTE_MBUF_F_RX_IP_CKSUM_GOOD:
	/* the packet's field is not valid, but the checksum is right */
	case RTE_MBUF_F_RX_IP_CKSUM_NONE:
		return PKT_RX_IPV4_CKSUM_OK;
	case RTE_MBUF_F_RX_IP_CKSUM_BAD:
		return PKT_RX_IPV4_CKSUM_BAD;
	default:
		return 0;
	}
}

/* Rare cases: several segments, or a VLAN tag that was stripped although not requested
 * (net_af_packet: by the kernel). Copies a frame that it cannot change. Returns NULL if the
 * frame was dropped. */
static struct rte_mbuf *
rx_mbuf_normalise(struct ethdev_queue *q, struct rte_mbuf *m)
{
	if (m->nb_segs > 1 || !RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) > 1 ||
		rte_pktmbuf_headroom(m) < sizeof(struct rte_vlan_hdr))
		m = mbuf_linearise(q, m);
	if (m != NULL && (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) &&
		rte_vlan_insert(&m) != 0) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	return m;
}

unsigned
ethdev_rx_wrap(struct ethdev_queue *q, struct rte_mbuf *const *mbufs, struct pkt *pkts,
	unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = mbufs[i];
		uint32_t flags = rx_flags(m->ol_flags);

		if (unlikely(m->nb_segs > 1 ||
			     (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED))) {
			flags |= m->nb_segs > 1 ? PKT_RX_LINEARISED : 0;
			m = rx_mbuf_normalise(q, m);
			if (m == NULL)
				continue;
		}
		pkts[kept++] = (struct pkt){
			.data = rte_pktmbuf_mtod(m, uint8_t *),
			.len = m->data_len,
			.room = (uint16_t)(m->buf_len - m->data_off),
			.flags = flags,
			.owner = m,
		};
	}
	return kept;
}

unsigned
ethdev_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct rte_mbuf *mbufs[PKT_BURST];
	struct ethdev_queue *q = queue;

	n = RTE_MIN(n, (unsigned)PKT_BURST);
	n = rte_eth_rx_burst(q->port_id, q->queue_id, mbufs, (uint16_t)n);
	return ethdev_rx_wrap(q, mbufs, pkts, n);
}

/* rte_pktmbuf_free_bulk() sorts by pool. One PKT_BURST at a time limits the use of the
 * stack. */
void
ethdev_release(void *queue, struct pkt *pkts, unsigned n)
{
	struct rte_mbuf *mbufs[PKT_BURST];

	(void)queue;
	while (n > 0) {
		unsigned some = RTE_MIN(n, (unsigned)PKT_BURST);

		for (unsigned i = 0; i < some; i++)
			mbufs[i] = pkts[i].owner;
		rte_pktmbuf_free_bulk(mbufs, some);
		pkts += some;
		n -= some;
	}
}

/* Allocates in bulk, or one by one if the pool runs low. */
static unsigned
mbufs_alloc(struct rte_mempool *pool, struct rte_mbuf **mbufs, unsigned n)
{
	unsigned got = 0;

	if (likely(rte_pktmbuf_alloc_bulk(pool, mbufs, n) == 0))
		return n;
	while (got < n && (mbufs[got] = rte_pktmbuf_alloc(pool)) != NULL)
		got++;
	return got;
}

unsigned
ethdev_tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	struct rte_mbuf *mbufs[PKT_BURST];
	struct ethdev_queue *q = queue;
	unsigned got;

	n = RTE_MIN(n, (unsigned)PKT_BURST);
	got = mbufs_alloc(q->pool, mbufs, n);
	for (unsigned i = 0; i < got; i++) {
		struct rte_mbuf *m = mbufs[i];

		pkts[i] = (struct pkt){
			.data = rte_pktmbuf_mtod(m, uint8_t *),
			.room = (uint16_t)(m->buf_len - m->data_off),
			.owner = m,
		};
	}
	return got;
}

/* Describes the frame in its mbuf. */
static inline struct rte_mbuf *
tx_fill(const struct pkt *pkt)
{
	struct rte_mbuf *m = pkt->owner;
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)pkt->data;

	m->data_len = pkt->len;
	m->pkt_len = pkt->len;
	m->ol_flags = 0;
	if (!(pkt->flags & PKT_TX_IPV4_CKSUM))
		return m;
	m->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
	m->l2_len = sizeof(*eth);
	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_VLAN))
		m->l2_len += sizeof(struct rte_vlan_hdr);
	m->l3_len = sizeof(struct rte_ipv4_hdr);
	return m;
}

void
ethdev_tx_unwrap(const struct pkt *pkts, struct rte_mbuf **mbufs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		mbufs[i] = tx_fill(&pkts[i]);
}

unsigned
ethdev_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct ethdev_queue *q = queue;
	unsigned sent = 0;

	while (sent < n) {
		struct rte_mbuf *mbufs[PKT_BURST];
		unsigned some = RTE_MIN(n - sent, (unsigned)PKT_BURST), took;

		ethdev_tx_unwrap(pkts + sent, mbufs, some);
		took = rte_eth_tx_burst(q->port_id, q->queue_id, mbufs, (uint16_t)some);
		sent += took;
		if (took < some)
			break;
	}
	return sent;
}

int
ethdev_wait_fd(void *queue)
{
	return ((const struct ethdev_queue *)queue)->wait_fd;
}
