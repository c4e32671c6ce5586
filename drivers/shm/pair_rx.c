/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Packets that come by the pairs. The headers of each packet are copied, and the copy is checked. */
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "shm/pair_slots.h"
#include "shm/shm.h"
#include "wire/hdr.h"

#define MIN_LEN                                                                          \
	(RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr) +  \
		sizeof(struct bth))
#define IPV6_MORE (sizeof(struct rte_ipv6_hdr) - sizeof(struct rte_ipv4_hdr))

void
pairs_peek(struct shm *shm)
{
	struct shm_pairs *p = &shm->pairs;

	for (uint32_t i = 0; i < p->count; i++) {
		struct shm_pair *pair = &p->all[i];

		while (pair->peer != NULL && pair->ready < PKT_BURST) {
			uint32_t at = pair->cons + pair->ready;
			const struct pair_slot *slot = pair_slot_at(p, pair->peer, at);

			/* Pairs with the release in pair_show(). */
			if (__atomic_load_n(&slot->stamp, __ATOMIC_ACQUIRE) != at + 1)
				break;
			pair->ready++;
		}
	}
}

bool
pairs_have_packets(const struct shm *shm)
{
	const struct shm_pairs *p = &shm->pairs;

	for (uint32_t i = 0; i < p->count; i++) {
		const struct shm_pair *pair = &p->all[i];
		const struct pair_slot *slot;

		if (pair->peer == NULL)
			continue;
		slot = pair_slot_at(p, pair->peer, pair->cons);
		/* Pairs with the release in pair_show(). */
		if (__atomic_load_n(&slot->stamp, __ATOMIC_ACQUIRE) == pair->cons + 1)
			return true;
	}
	return false;
}

/* Returns the length of the IP header of a UDP packet, or 0. Only packets as the engine builds them
 * have one: no VLAN tag, no IP options. */
static uint32_t
ip_len_read(const uint8_t *bytes, uint32_t len)
{
	const uint8_t *ip = bytes + RTE_ETHER_HDR_LEN;
	uint32_t ether_type = (uint32_t)bytes[12] << 8 | bytes[13];

	if (ether_type == RTE_ETHER_TYPE_IPV4 && ip[0] == RTE_IPV4_VHL_DEF &&
		ip[offsetof(struct rte_ipv4_hdr, next_proto_id)] == IPPROTO_UDP)
		return sizeof(struct rte_ipv4_hdr);
	if (ether_type == RTE_ETHER_TYPE_IPV6 && len >= MIN_LEN + IPV6_MORE &&
		ip[offsetof(struct rte_ipv6_hdr, proto)] == IPPROTO_UDP)
		return sizeof(struct rte_ipv6_hdr);
	return 0;
}

/* Returns the DestQP of a RoCEv2 packet, or 0. */
static uint32_t
dest_qpn_read(const uint8_t *bytes, uint32_t len)
{
	uint32_t ip_len = len >= MIN_LEN ? ip_len_read(bytes, len) : 0;
	const uint8_t *udp = bytes + RTE_ETHER_HDR_LEN + ip_len;

	if (ip_len == 0 || (udp[2] << 8 | udp[3]) != ROCE_UDP_PORT)
		return 0;
	return be24_get(
		udp + sizeof(struct rte_udp_hdr) + offsetof(struct bth, dest_qpn));
}

/* Returns the QP of this number that accepts packets of the partner, or NULL. *later: the daemon has
 * not answered yet whether it does. */
static struct pair_qp *
qp_accepts(
	const struct shm_pairs *p, const struct shm_pair *pair, uint32_t qpn, bool *later)
{
	struct pair_qp *q = qpn > 1 ? pair_qp_of(p, qpn) : NULL;

	*later = q != NULL && q->registering;
	if (q == NULL || *later || q->partner != pair->partner)
		return NULL;
	/* The peer sends by the pair, so it accepts packets of the pair. */
	if (q->state == PAIR_QP_DAEMON)
		q->state = PAIR_QP_ACCEPTED;
	return q;
}

/* Copies the headers. The parser loads blocks of 16 bytes that begin 8 bytes before the IP header
 * (icrc.c): such a load gets its bytes from one store. */
static void
headers_copy(struct pkt_headers *to, const uint8_t *frame)
{
	const unsigned lead = RTE_ETHER_HDR_LEN - 8, block = 16;

	__builtin_memcpy(to->bytes, frame, block);
	for (unsigned at = lead; at + block <= PARSE_HEADERS; at += block)
		__builtin_memcpy(to->bytes + at, frame + at, block);
	__builtin_memcpy(
		to->bytes + PARSE_HEADERS - block, frame + PARSE_HEADERS - block, block);
	to->frame = frame;
}

/* Returns whether a copied packet ends where its UDP length says. After dest_qpn_read() has found a
 * RoCEv2 packet. */
static bool
has_udp_len(const uint8_t *bytes, uint32_t len)
{
	uint32_t at = RTE_ETHER_HDR_LEN + ip_len_read(bytes, len);
	const uint8_t *udp = bytes + at;

	return at + ((uint32_t)udp[4] << 8 | udp[5]) == len;
}

/* Copies the packet, or, if it is long, its headers. Its payload is then read where the partner can still
 * change it, and nothing depends on its bytes but what the application finds in its memory: the partner
 * could have sent these as well. Returns the flags of the packet. */
static uint32_t
packet_copy(const struct shm_pairs *p, uint8_t *buffer, const struct pair_slot *slot,
	uint32_t len)
{
	uint32_t flags = PKT_RX_IPV4_CKSUM_OK;

	if (len >= PAIR_LONG && !p->place_off) {
		headers_copy((struct pkt_headers *)buffer, slot->bytes);
		flags |= PKT_RX_HEADERS;
	} else {
		memcpy(buffer, slot->bytes, len);
	}
	/* The compiler may not read the slot again in place of the copy. */
	rte_compiler_barrier();
	return flags;
}

/* The partner may write the slots again that were taken. */
static void
taken_show(const struct shm_pair *pair)
{
	/* Pairs with the acquire in taken_refresh(). */
	__atomic_store_n(&pair->own->cons, pair->cons, __ATOMIC_RELEASE);
}

static void
answered_show(const struct shm_pair *pair)
{
	/* Pairs with the acquire in pair_is_unanswered(): the answers are shown. */
	__atomic_store_n(&pair->own->answered, pair->cons, __ATOMIC_RELEASE);
}

void
pairs_rx_answered(const struct shm_pairs *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->all[i].peer != NULL)
			answered_show(&p->all[i]);
}

void
pairs_rx_release(struct shm_pairs *p, uint8_t index)
{
	struct shm_pair *pair = p->lender[index];

	p->free[p->free_count++] = index;
	if (pair == NULL)
		return;
	p->lender[index] = NULL;
	if (--pair->lent == 0)
		taken_show(pair);
}

enum taken {
	TAKEN_PACKET,
	TAKEN_NOTHING, /* the slot is dealt with */
	TAKEN_LATER,   /* it stays */
};

static enum taken
packet_take(struct shm *shm, struct shm_pair *pair, const struct pair_slot *slot,
	struct pkt *pkt, uint64_t owner)
{
	struct shm_pairs *p = &shm->pairs;
	uint32_t len = __atomic_load_n(&slot->len, __ATOMIC_RELAXED);
	uint32_t index, flags;
	uint8_t *buffer;
	bool later;

	if (unlikely(p->free_count == 0))
		return TAKEN_LATER;
	if (unlikely(len > p->geom.buf_size)) {
		shm->dev_stats->pair_malformed++;
		return TAKEN_NOTHING;
	}
	index = p->free[p->free_count - 1];
	buffer = p->buffers + (size_t)index * p->geom.buf_size;
	flags = packet_copy(p, buffer, slot, len);
	if (unlikely(qp_accepts(p, pair, dest_qpn_read(buffer, len), &later) == NULL)) {
		if (later)
			return TAKEN_LATER;
		shm->dev_stats->pair_not_connected++;
		return TAKEN_NOTHING;
	}
	if (flags & PKT_RX_HEADERS) {
		if (unlikely(!has_udp_len(buffer, len))) {
			shm->dev_stats->pair_malformed++;
			return TAKEN_NOTHING;
		}
		shm->dev_stats->pair_rx_placed++;
		p->lender[index] = pair;
		pair->lent++;
	}
	p->free_count--;
	*pkt = (struct pkt){.data = buffer,
		.len = (uint16_t)len,
		.room = (uint16_t)p->geom.buf_size,
		.flags = flags,
		.owner = (void *)(uintptr_t)(owner | index)};
	return TAKEN_PACKET;
}

static enum taken
slot_take(struct shm *shm, struct shm_pair *pair, struct pkt *pkt, uint64_t owner)
{
	const struct pair_slot *slot = pair_slot_at(&shm->pairs, pair->peer, pair->cons);
	uint16_t kind = __atomic_load_n(&slot->kind, __ATOMIC_RELAXED);
	bool later;

	if (likely(kind == PAIR_PACKET))
		return packet_take(shm, pair, slot, pkt, owner);
	if (kind != PAIR_CONNECTED) {
		shm->dev_stats->pair_malformed++;
		return TAKEN_NOTHING;
	}
	if (qp_accepts(&shm->pairs, pair, __atomic_load_n(&slot->qpn, __ATOMIC_RELAXED),
		    &later) == NULL) {
		if (later)
			return TAKEN_LATER;
		shm->dev_stats->pair_not_connected++;
	}
	return TAKEN_NOTHING;
}

static unsigned
pair_rx(struct shm *shm, struct shm_pair *pair, struct pkt *pkts, unsigned n,
	uint64_t owner)
{
	struct region_client *counters = shm->region.client;
	uint32_t cons = pair->cons;
	uint64_t bytes = 0;
	unsigned got = 0;

	while (pair->ready != 0 && got < n) {
		enum taken taken = slot_take(shm, pair, &pkts[got], owner);

		if (unlikely(taken == TAKEN_LATER))
			break;
		if (likely(taken == TAKEN_PACKET))
			bytes += pkts[got++].len;
		pair->cons++;
		pair->ready--;
	}
	if (pair->cons == cons)
		return 0;
	if (pair->lent == 0)
		taken_show(pair);
	/* The engine gets nothing that it would answer. */
	if (unlikely(got == 0) && pair->own->answered == cons)
		answered_show(pair);
	__atomic_store_n(
		&counters->pair_packets, counters->pair_packets + got, __ATOMIC_RELAXED);
	__atomic_store_n(
		&counters->pair_bytes, counters->pair_bytes + bytes, __ATOMIC_RELAXED);
	return got;
}

unsigned
pairs_rx(struct shm *shm, struct pkt *pkts, unsigned n, uint64_t owner)
{
	struct shm_pairs *p = &shm->pairs;
	unsigned got = 0;

	if (++p->next >= p->count)
		p->next = 0;
	for (uint32_t i = 0; i < p->count && got < n; i++) {
		uint32_t at = p->next + i;
		struct shm_pair *pair = &p->all[at < p->count ? at : at - p->count];

		if (pair->ready != 0)
			got += pair_rx(shm, pair, pkts + got, n - got, owner);
	}
	return got;
}
