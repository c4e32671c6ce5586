/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. Receive interrupts of a queue. */
#ifndef ROCADE_ETHDEV_ETHDEV_INTERRUPT_H
#define ROCADE_ETHDEV_ETHDEV_INTERRUPT_H

#include "ethdev/burst.h"

/* Sets q->wait_fd. The port is started, with rxq of rte_eth_intr_conf. Returns 0 or -errno. */
int ethdev_interrupt_open(struct ethdev_queue *q);
void ethdev_interrupt_close(struct ethdev_queue *q);

/* For struct port_ops. */
void ethdev_rx_arm(void *queue, bool on);

#endif
