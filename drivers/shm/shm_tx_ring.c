/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
#include "base/no_cancel.h"
#include "shm/shm_tx_ring.h"

void
shm_tx_reclaim(struct shm *shm)
{
	if (!ring_prod_refresh(&shm->tx))
		return;
	for (; shm->tx_reclaimed != shm->tx.cons_seen; shm->tx_reclaimed++) {
		shm->free[shm->free_count++] =
			shm->slot_buf[shm->tx_reclaimed & shm->tx.mask];
	}
}

static void
daemon_wake(const struct shm *shm)
{
	const uint64_t one = 1;
	ssize_t written = no_cancel_write(shm->daemon_wake_fd, &one, sizeof(one));

	(void)written; /* full: the daemon is awake */
}

void
shm_tx_put(struct shm *shm, const struct pkt *pkt)
{
	uint32_t buf = (uint32_t)(uintptr_t)pkt->owner;

	shm->slot_buf[shm->tx.prod & shm->tx.mask] = buf;
	ring_put(&shm->tx,
		&(struct ring_desc){.buf = buf, .qpn = PKT_TX_QPN(pkt), .len = pkt->len});
}

void
shm_tx_show(struct shm *shm)
{
	ring_publish(&shm->tx);
	if (asleep_wake_wanted(&shm->region.daemon->tx_asleep, &shm->daemon_woken))
		daemon_wake(shm);
}
