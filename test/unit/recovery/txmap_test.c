/* SPDX-License-Identifier: BSD-3-Clause */
/* The record of missing packets against a plain model, which numbers all transmissions:
 * each sequence of a few events over a few packets. */
#include <stddef.h>
#include <string.h>

#include "case.h"
#include "recovery/txmap.h"

#define PACKETS 4
#define EVENTS 6

struct model {
	unsigned una, sent; /* packets before these are acknowledged, and sent */
	unsigned end;
	unsigned clock;             /* counts transmissions */
	unsigned new_at[PACKETS];   /* the first transmission of each */
	unsigned sent_at[PACKETS];  /* the last transmission of each */
	bool again[PACKETS];        /* it is recorded, */
	unsigned again_at[PACKETS]; /* with this time */
	bool arrived[PACKETS], lost[PACKETS];
};

static struct txmaps maps;
static struct txmap *map;
static uint32_t base; /* PSN of packet 0 */
static uint64_t sequences;

static uint32_t
psn_of(unsigned packet)
{
	return psn_add(base, packet);
}

/* A time that does not fit into 32 bits. */
static uint64_t
time_of(unsigned transmission)
{
	return transmission * UINT64_C(0x80000001);
}

static void
packet_check(const struct model *m, unsigned packet)
{
	const struct txmap_again *again = txmap_again_of(map, psn_of(packet));

	assert_int_equal(again != NULL, m->again[packet]);
	if (again != NULL)
		assert_int_equal(again->ns, (uint32_t)time_of(m->again_at[packet]));
	for (unsigned other = 0; other < m->sent; other++) {
		uint32_t a = psn_of(packet), b = psn_of(other);

		assert_int_equal(txmap_sent_before(map, a, b),
			m->sent_at[packet] < m->sent_at[other]);
		assert_int_equal(
			txmap_sent_by(map, a, b), m->sent_at[packet] <= m->new_at[other]);
		assert_int_equal(txmap_sent_together(map, a, b),
			m->again[packet] && m->again[other] &&
				m->again_at[packet] == m->again_at[other]);
	}
}

static void
check(const struct model *m)
{
	struct psn_bits missing = txmap_missing(map);
	unsigned arrived = 0, lost = 0;

	for (unsigned packet = 0; packet < m->sent; packet++)
		packet_check(m, packet);
	for (unsigned packet = m->una; packet < m->end; packet++) {
		uint32_t psn = psn_of(packet);

		assert_int_equal(psn_bit(&map->arrived, psn), m->arrived[packet]);
		assert_int_equal(psn_bit(&map->lost, psn), m->lost[packet]);
		assert_int_equal(
			psn_bit(&missing, psn), !m->arrived[packet] && !m->lost[packet]);
		assert_int_equal(txmap_is_missing(map, psn), psn_bit(&missing, psn));
		arrived += m->arrived[packet];
		lost += m->lost[packet];
	}
	assert_int_equal(map->end, psn_of(m->end));
	assert_false(txmap_is_missing(map, psn_of(m->end)));
	/* and none outside */
	assert_int_equal(psn_bits_count(&map->arrived), arrived);
	assert_int_equal(psn_bits_count(&map->lost), lost);
}

/* ---- Events: each returns false if it cannot happen now ---- */

static void
model_known(struct model *m, unsigned packet)
{
	if (packet >= m->end)
		m->end = packet + 1;
}

static bool
new_packet(struct model *m)
{
	if (m->sent == PACKETS)
		return false;
	m->new_at[m->sent] = m->sent_at[m->sent] = ++m->clock;
	m->sent++;
	return true;
}

/* Several ones are sent by one READ request: with one time. */
static bool
sent_again(struct model *m, unsigned packet, unsigned n)
{
	unsigned at = m->clock + n;

	for (unsigned i = packet; i < packet + n; i++) {
		if (i < m->una || i >= m->sent || m->arrived[i])
			return false;
	}
	txmap_sent_again(map, psn_of(packet), n, psn_of(m->sent), time_of(at));
	for (unsigned i = packet; i < packet + n; i++) {
		m->sent_at[i] = ++m->clock;
		m->again[i] = true;
		m->again_at[i] = at;
		m->lost[i] = false;
	}
	return true;
}

static bool
has_arrived(struct model *m, unsigned packet)
{
	if (packet < m->una || packet >= m->sent)
		return false;
	assert_int_equal(txmap_set_arrived(map, psn_of(packet)), !m->arrived[packet]);
	m->arrived[packet] = true;
	m->lost[packet] = false;
	model_known(m, packet);
	return true;
}

static bool
is_lost(struct model *m, unsigned packet)
{
	if (packet < m->una || packet >= m->sent)
		return false;
	txmap_set_lost(map, psn_of(packet));
	if (m->arrived[packet])
		return true;
	m->lost[packet] = true;
	model_known(m, packet);
	return true;
}

/* Another QP takes the record: what was sent again before is forgotten. */
static void
taken_anew(struct model *m)
{
	txmap_put(&maps, map);
	map = txmap_get(&maps, psn_of(m->una), false);
	m->end = m->una;
	m->clock = PACKETS;
	memset(m->again, false, sizeof(m->again));
	memset(m->arrived, false, sizeof(m->arrived));
	memset(m->lost, false, sizeof(m->lost));
	for (unsigned i = 0; i < PACKETS; i++)
		m->new_at[i] = m->sent_at[i] = i;
}

static bool
acknowledged(struct model *m, unsigned una)
{
	unsigned before = m->una;

	if (una <= before || una > m->sent)
		return false;
	m->una = una;
	if (una >= m->end)
		taken_anew(m);
	else
		txmap_advanced(map, psn_of(before), una - before);
	return true;
}

#define KINDS 6
static bool
event(struct model *m, unsigned kind, unsigned packet)
{
	switch (kind) {
	case 0:
		return packet == 0 && new_packet(m);
	case 1:
		return sent_again(m, packet, 1);
	case 2:
		return sent_again(m, packet, 2);
	case 3:
		return has_arrived(m, packet);
	case 4:
		return is_lost(m, packet);
	default:
		return acknowledged(m, packet + 1);
	}
}

/* ---- All sequences ---- */

struct saved {
	uint8_t head[offsetof(struct txmap, again)];
	struct txmap_again again[PACKETS];
};

static void
save(struct saved *s)
{
	memcpy(s->head, map, sizeof(s->head));
	for (unsigned i = 0; i < PACKETS; i++)
		s->again[i] = map->again[psn_of(i) % PSN_BITS];
}

static void
restore(const struct saved *s)
{
	memcpy(map, s->head, sizeof(s->head));
	for (unsigned i = 0; i < PACKETS; i++)
		map->again[psn_of(i) % PSN_BITS] = s->again[i];
}

static void
sequences_check(const struct model *m, unsigned left)
{
	struct saved saved;

	check(m);
	sequences++;
	if (left == 0)
		return;
	save(&saved);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		for (unsigned packet = 0; packet < PACKETS; packet++) {
			struct model next = *m;

			if (!event(&next, kind, packet))
				continue;
			sequences_check(&next, left - 1);
			restore(&saved);
		}
	}
}

/* From two sent packets on, around the end of the PSNs and of a word. */
TEST(all_sequences_of_events)
{
	static const uint32_t bases[] = {PSN_MASK - 1, 62};

	for (unsigned i = 0; i < RTE_DIM(bases); i++) {
		struct model m = {0};

		base = bases[i];
		sequences = 0;
		assert_int_equal(txmaps_init(&maps), 0);
		map = txmap_get(&maps, base, false);
		assert_true(new_packet(&m) && new_packet(&m));
		sequences_check(&m, EVENTS);
		assert_int_equal(sequences, 867796);
		txmap_put(&maps, map);
		txmaps_fini(&maps);
	}
}

/* A record says nothing of what the QP had that took it before, however often it sent
 * packets again. */
TEST(numbers_wrap_around)
{
	assert_int_equal(txmaps_init(&maps), 0);
	map = txmap_get(&maps, 0, false);
	map->number = map->number_before = UINT32_MAX - 1;
	for (unsigned i = 0; i < 4; i++)
		txmap_sent_again(map, i, 1, 4, i);
	for (unsigned i = 1; i < 4; i++) {
		assert_true(txmap_sent_before(map, i - 1, i));
		assert_false(txmap_sent_before(map, i, i - 1));
	}
	txmap_put(&maps, map);
	map = txmap_get(&maps, 0, true);
	assert_true(map->reads);
	for (unsigned i = 0; i < 4; i++)
		assert_null(txmap_again_of(map, i));
	/* Of another packet with its place. */
	txmap_sent_again(map, PSN_BITS + 1, 1, PSN_BITS + 2, 0);
	assert_null(txmap_again_of(map, 1));
	txmap_put(&maps, map);
	txmaps_fini(&maps);
}

TEST(records_are_limited)
{
	struct txmap *taken[TXMAPS];

	assert_int_equal(txmaps_init(&maps), 0);
	/* The memory of a record is touched when the record is first taken. */
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(maps.touched, i != 0);
		txmap_put(&maps, txmap_get(&maps, 0, false));
	}
	for (unsigned i = 0; i < TXMAPS; i++) {
		taken[i] = txmap_get(&maps, i, false);
		assert_non_null(taken[i]);
	}
	assert_null(txmap_get(&maps, 0, false));
	for (unsigned i = 0; i < TXMAPS; i++)
		txmap_put(&maps, taken[i]);
	txmaps_fini(&maps);
}
