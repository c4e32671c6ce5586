/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* For shm_port.c. */
#ifndef ROCADE_SHM_ANSWER_H
#define ROCADE_SHM_ANSWER_H

#include "shm/shm.h"

/* As in port_ops. */
bool shm_tx_waits(void *queue, uint32_t qpn, struct answer_wait *wait, uint64_t now);
void shm_rx_answered(void *queue);

/* The daemon has replied to a question of a QP. */
void shm_ask_replied(struct shm *shm, const struct ring_desc *reply);

#endif
