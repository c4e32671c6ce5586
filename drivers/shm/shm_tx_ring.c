/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include <unistd.h>

#include "shm/shm_tx_ring.h"

/* in slot_buf: the descriptor has no buffer */
#define NO_BUF UINT32_MAX

void
shm_tx_reclaim(struct shm *shm)
{
	if (!ring_prod_refresh(&shm->tx))
		return;
	for (; shm->tx_reclaimed != shm->tx.cons_seen; shm->tx_reclaimed++) {
		uint32_t buf = shm->slot_buf[shm->tx_reclaimed & shm->tx.mask];

		if (likely(buf != NO_BUF))
			shm->free[shm->free_count++] = buf;
	}
}

static void
daemon_wake(const struct shm *shm)
{
	const uint64_t one = 1;
	ssize_t written = write(shm->daemon_wake_fd, &one, sizeof(one));

	(void)written; /* full: the daemon is awake */
}

static void
tx_desc_put(struct shm *shm, const struct ring_desc *desc, uint32_t buf)
{
	shm->slot_buf[shm->tx.prod & shm->tx.mask] = buf;
	ring_put(&shm->tx, desc);
}

void
shm_tx_put(struct shm *shm, const struct pkt *pkt)
{
	uint32_t buf = (uint32_t)(uintptr_t)pkt->owner;

	tx_desc_put(shm,
		&(struct ring_desc){.buf = buf, .qpn = PKT_TX_QPN(pkt), .len = pkt->len},
		buf);
}

void
shm_tx_show(struct shm *shm)
{
	ring_publish(&shm->tx);
	if (asleep_wake_wanted(&shm->region.daemon->tx_asleep, &shm->daemon_woken))
		daemon_wake(shm);
}

bool
shm_request_wake(struct shm *shm, uint32_t qpn)
{
	if (ring_room(&shm->tx) == 0)
		shm_tx_reclaim(shm);
	if (ring_room(&shm->tx) == 0)
		return false;
	tx_desc_put(shm, &(struct ring_desc){.qpn = qpn, .flags = RING_WAKE}, NO_BUF);
	shm_tx_show(shm);
	return true;
}
