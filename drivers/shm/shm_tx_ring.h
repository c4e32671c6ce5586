/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring to the daemon: for shm_port.c, with the engine lock held. */
#ifndef ROCADE_SHM_TX_RING_H
#define ROCADE_SHM_TX_RING_H

#include "shm/shm.h"

/* Takes the buffers back that the daemon has released. */
void shm_tx_reclaim(struct shm *shm);
/* Puts a packet into the ring, which has room. */
void shm_tx_put(struct shm *shm, const struct pkt *pkt);
/* Shows the daemon what is in the ring, and wakes it if it sleeps. */
void shm_tx_show(struct shm *shm);

#endif
