/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Which extensions the peers of an engine understand: asks the agent of the device, which all
 * its engines share. Only after a packet was lost is there anything to do here. */
#include "engine/pass.h"

#define LOOK_MAX 16             /* peers that one pass asks about */
#define LOOK_NS (1 * NS_PER_MS) /* interval of asking about peers again */

static struct ext_query *
ext_take(struct gsi *gsi)
{
	pthread_mutex_lock(&gsi->ext_lock);
	return gsi->ext;
}

static void
ext_give(struct gsi *gsi)
{
	__atomic_store_n(&gsi->ext_due, ext_query_deadline(gsi->ext), __ATOMIC_RELAXED);
	__atomic_store_n(
		&gsi->ext_generation, ext_query_generation(gsi->ext), __ATOMIC_RELAXED);
	pthread_mutex_unlock(&gsi->ext_lock);
}

void
engine_ext_rx(struct engine *e, const struct gsi_msg *msg, uint64_t now)
{
	struct gsi *gsi = e->dev->gsi;

	ext_query_rx(ext_take(gsi), msg, &e->stats, now);
	ext_give(gsi);
}

bool
engine_ext_tx(struct engine *e, struct gsi_msg *msg, uint64_t now)
{
	struct gsi *gsi = e->dev->gsi;
	bool more = ext_query_tx(ext_take(gsi), msg, &e->stats, now);

	ext_give(gsi);
	return more;
}

void
engine_ext_tx_done(struct engine *e, const struct gsi_msg *msg, bool sent, uint64_t now)
{
	struct gsi *gsi = e->dev->gsi;

	ext_query_tx_done(ext_take(gsi), msg, sent, &e->stats, now);
	ext_give(gsi);
}

/* The first peer of the list leaves it if it is known, else it goes to the end. Returns
 * whether it leaves. */
static bool
peer_look(struct peers *peers, struct ext_query *ext, uint64_t now)
{
	struct peer *peer = TAILQ_FIRST(&peers->asking);
	uint32_t extensions;

	if (ext_query_ask(ext, peer->ext_sgid, peer->gid, now, &extensions) !=
		EXT_KNOWN) {
		TAILQ_REMOVE(&peers->asking, peer, ext_link);
		TAILQ_INSERT_TAIL(&peers->asking, peer, ext_link);
		peer->ext_asked = true;
		return false;
	}
	peer_ext_unlink(peers, peer);
	peer->extensions |= (uint8_t)extensions; /* beside those that ECE has found */
	peer->ext_state = extensions != 0 ? PEER_EXT_KNOWN : PEER_EXT_NONE;
	return true;
}

/* Peers that were not asked about yet stand first. The others are looked at again when a query
 * has ended, and now and then: too many queries may have been open. */
void
engine_ext_ask(struct engine *e, uint64_t now)
{
	struct gsi *gsi = e->dev->gsi;
	uint32_t generation = __atomic_load_n(&gsi->ext_generation, __ATOMIC_RELAXED);
	bool all = generation != e->ext_generation || now >= e->ext_look_ns;
	const struct peer *peer, *first_back = NULL;
	struct ext_query *ext;

	if (!all && TAILQ_FIRST(&e->peers.asking)->ext_asked)
		return;
	ext = ext_take(gsi);
	for (unsigned i = 0; i < LOOK_MAX; i++) {
		peer = TAILQ_FIRST(&e->peers.asking);
		if (peer == NULL || peer == first_back || (!all && peer->ext_asked))
			break;
		if (!peer_look(&e->peers, ext, now) && first_back == NULL)
			first_back = peer;
	}
	ext_give(gsi);
	if (all) {
		e->ext_generation = generation;
		e->ext_look_ns = now + LOOK_NS;
	}
	/* A query that is due now leaves in this pass. */
	if (e->gsi != NULL && gsi_due(gsi) > now)
		e->earliest_ns = RTE_MIN(e->earliest_ns, gsi_due(gsi));
}
