/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <sched.h>
#include <string.h>

#include "ethdev/shared_port.h"

#define HEADERS 128 /* bytes; hold every header that frame_owner() reads */
#define READS_BEFORE_YIELD 1000
#define WORDS (sizeof(struct frame_addrs) / sizeof(uint64_t))

static_assert(
	sizeof(struct frame_addrs) % sizeof(uint64_t) == 0, "it is copied in words");

/* ---- Addresses ---- */

/* A sequence lock: the writer makes the number odd, changes the words, and makes it even. A
 * reader that saw an odd number, or not the same one twice, reads again. */

void
shared_addrs_set(struct shared_port *port, const struct frame_addrs *addrs)
{
	uint64_t *to = (uint64_t *)&port->addrs;
	uint64_t words[WORDS];

	memcpy(words, addrs, sizeof(words));
	__atomic_store_n(
		&port->addrs_sequence, port->addrs_sequence + 1, __ATOMIC_RELAXED);
	/* Pairs with the acquire fence in addrs_read(): a reader of a new word sees the odd
	 * number. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (unsigned i = 0; i < WORDS; i++)
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
	/* Pairs with the acquire in addrs_read(): a reader of the number sees the words. */
	__atomic_store_n(
		&port->addrs_sequence, port->addrs_sequence + 1, __ATOMIC_RELEASE);
}

static void
addrs_read(const struct shared_port *port, struct frame_addrs *out)
{
	const uint64_t *from = (const uint64_t *)&port->addrs;
	uint32_t before, after;
	uint64_t words[WORDS];
	unsigned tries = 0;

	do {
		/* The writer may have lost its core. */
		if (unlikely(++tries % READS_BEFORE_YIELD == 0))
			sched_yield();
		before = __atomic_load_n(&port->addrs_sequence, __ATOMIC_ACQUIRE);
		for (unsigned i = 0; i < WORDS; i++)
			words[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		after = __atomic_load_n(&port->addrs_sequence, __ATOMIC_RELAXED);
	} while (unlikely(before != after || before % 2 != 0));
	memcpy(out, words, sizeof(*out));
}

/* ---- Groups ---- */

/* MACs that a bit stands for: some more frames are copied, and Rocade drops them. */
static unsigned
group_bit(const uint8_t mac[6])
{
	return ((unsigned)mac[4] << 8 | mac[5]) % SHARED_GROUP_BITS;
}

void
shared_groups_set(struct shared_port *port, const uint8_t (*macs)[6], unsigned n)
{
	uint64_t bits[SHARED_GROUP_BITS / 64] = {0};

	for (unsigned i = 0; i < n; i++)
		bits[group_bit(macs[i]) / 64] |= UINT64_C(1) << group_bit(macs[i]) % 64;
	for (unsigned i = 0; i < RTE_DIM(bits); i++)
		__atomic_store_n(&port->groups[i], bits[i], __ATOMIC_RELAXED);
}

static bool
group_joined(const struct shared_port *port, const uint8_t mac[6])
{
	uint64_t bits =
		__atomic_load_n(&port->groups[group_bit(mac) / 64], __ATOMIC_RELAXED);

	return (bits >> group_bit(mac) % 64 & 1) != 0;
}

/* ---- Frames ---- */

static enum frame_owner
mbuf_owner_slow(const struct frame_addrs *addrs, const struct rte_mbuf *m)
{
	int tci = m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED ? m->vlan_tci : -1;
	uint32_t len = rte_pktmbuf_pkt_len(m);
	uint8_t headers[HEADERS];

	if (m->ol_flags & RTE_MBUF_F_RX_QINQ_STRIPPED)
		return FRAME_APP;
	if (likely(m->nb_segs == 1 || m->data_len >= HEADERS))
		return frame_owner(
			addrs, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, tci);
	len = RTE_MIN(len, (uint32_t)HEADERS);
	return frame_owner(addrs, rte_pktmbuf_read(m, 0, len, headers), len, tci);
}

static inline enum frame_owner
mbuf_owner(const struct frame_addrs *addrs, const struct rte_mbuf *m)
{
	const uint64_t stripped =
		RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED;

	if (likely((m->ol_flags & stripped) == 0 &&
		    frame_is_roce_ipv4(
			    addrs, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len)))
		return FRAME_ROCADE;
	return mbuf_owner_slow(addrs, m);
}

static void
count_add(uint64_t *count, unsigned n)
{
	if (unlikely(n != 0))
		__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

/* Returns how many frames wait, or more if the engine takes some meanwhile. rte_ring_count() reads the
 * indices without atomics, which is a data race. */
static uint32_t
frames_waiting(const struct rte_ring *ring)
{
	/* Before the other index, which is never behind it. */
	uint32_t out = __atomic_load_n(&ring->cons.tail, __ATOMIC_ACQUIRE);

	return (__atomic_load_n(&ring->prod.tail, __ATOMIC_RELAXED) - out) & ring->mask;
}

/* Copies take at most half of the ring, so that they do not displace frames for Rocade. NULL:
 * there is no room, or no buffer. */
static struct rte_mbuf *
frame_copy(const struct shared_queue *q, const struct rte_mbuf *m)
{
	return frames_waiting(q->input) < rte_ring_get_capacity(q->input) / 2
		       ? rte_pktmbuf_copy(m, q->eth.pool, 0, UINT32_MAX)
		       : NULL;
}

/* Moves the frames for Rocade to ours, with copies of those for both, and the others to the
 * front. Returns the number of the latter. */
static unsigned
frames_split(struct shared_queue *q, struct rte_mbuf **frames, unsigned n,
	struct rte_mbuf **ours, unsigned *our_count)
{
	struct frame_addrs addrs;
	unsigned kept = 0;

	*our_count = 0;
	addrs_read(q->port, &addrs);
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = frames[i];
		enum frame_owner owner = mbuf_owner(&addrs, m);

		if (likely(owner == FRAME_ROCADE)) {
			ours[(*our_count)++] = m;
			continue;
		}
		frames[kept++] = m;
		if (owner == FRAME_GROUP &&
			group_joined(q->port, rte_pktmbuf_mtod(m, const uint8_t *)))
			owner = FRAME_BOTH;
		if (owner != FRAME_BOTH)
			continue;
		m = frame_copy(q, m);
		count_add(&q->no_copy, m == NULL);
		if (m != NULL)
			ours[(*our_count)++] = m;
	}
	return kept;
}

uint16_t
shared_input(struct shared_queue *q, struct rte_mbuf **frames, uint16_t n, bool *queued)
{
	unsigned kept = 0;

	*queued = false;
	if (unlikely(__atomic_load_n(&q->port->gone, __ATOMIC_RELAXED)))
		return n;
	for (unsigned at = 0; at < n;) {
		struct rte_mbuf *ours[PKT_BURST];
		unsigned some = RTE_MIN(n - at, (unsigned)PKT_BURST), took, others;
		unsigned our_count;

		others = frames_split(q, frames + at, some, ours, &our_count);
		if (kept != at)
			memmove(frames + kept, frames + at, others * sizeof(frames[0]));
		kept += others;
		at += some;
		if (our_count == 0)
			continue;
		took = rte_ring_enqueue_burst(q->input, (void **)ours, our_count, NULL);
		*queued = true;
		if (unlikely(took < our_count)) {
			count_add(&q->input_full, our_count - took);
			rte_pktmbuf_free_bulk(ours + took, our_count - took);
		}
	}
	return (uint16_t)kept;
}

uint16_t
shared_exceptions(struct shared_queue *q, struct rte_mbuf **frames, uint16_t n)
{
	if (q->exceptions == NULL)
		return 0;
	return (uint16_t)rte_ring_dequeue_burst(q->exceptions, (void **)frames, n, NULL);
}

/* ---- Bursts ---- */

static unsigned
queue_rx(struct shared_queue *q, struct rte_mbuf **ours, unsigned n)
{
	struct rte_mbuf *frames[PKT_BURST];
	unsigned got, others, our_count, took;

	if (q->exceptions == NULL || n == 0)
		return 0;
	got = rte_eth_rx_burst(q->eth.port_id, q->rx_queue, frames, (uint16_t)n);
	if (got == 0)
		return 0;
	others = frames_split(q, frames, got, ours, &our_count);
	if (likely(others == 0))
		return our_count;
	took = rte_ring_enqueue_burst(q->exceptions, (void **)frames, others, NULL);
	if (took < others) {
		count_add(&q->exceptions_full, others - took);
		rte_pktmbuf_free_bulk(frames + took, others - took);
	}
	return our_count;
}

static unsigned
input_rx(struct shared_queue *q, struct rte_mbuf **ours, unsigned n)
{
	return n == 0 ? 0 : rte_ring_dequeue_burst(q->input, (void **)ours, n, NULL);
}

/* The queue and the ring take turns in being first, so that neither waits for ever. */
unsigned
shared_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct rte_mbuf *mbufs[PKT_BURST];
	struct shared_queue *q = queue;
	unsigned got;

	if (unlikely(__atomic_load_n(&q->port->gone, __ATOMIC_RELAXED)))
		return 0;
	n = RTE_MIN(n, (unsigned)PKT_BURST);
	q->input_first = !q->input_first;
	if (q->input_first) {
		got = input_rx(q, mbufs, n);
		got += queue_rx(q, mbufs + got, n - got);
	} else {
		got = queue_rx(q, mbufs, n);
		got += input_rx(q, mbufs + got, n - got);
	}
	return ethdev_rx_wrap(&q->eth, mbufs, pkts, got);
}

static unsigned
mbufs_send(struct shared_queue *q, struct rte_mbuf **mbufs, unsigned n)
{
	const struct rocade_shared_conf *conf = &q->port->conf;

	return conf->tx != NULL ? conf->tx(conf->tx_arg, q->index, mbufs, (uint16_t)n)
				: rte_eth_tx_burst(q->eth.port_id, q->eth.queue_id, mbufs,
					  (uint16_t)n);
}

unsigned
shared_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct shared_queue *q = queue;
	unsigned sent = 0;

	if (unlikely(__atomic_load_n(&q->port->gone, __ATOMIC_RELAXED)))
		return 0;
	while (sent < n) {
		struct rte_mbuf *mbufs[PKT_BURST];
		unsigned some = RTE_MIN(n - sent, (unsigned)PKT_BURST), took;

		ethdev_tx_unwrap(pkts + sent, mbufs, some);
		took = RTE_MIN(mbufs_send(q, mbufs, some), some);
		sent += took;
		if (took < some)
			break;
	}
	return sent;
}
