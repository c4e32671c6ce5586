/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. Receive interrupts of a queue. */
#ifndef ROCADE_ETHDEV_ETHDEV_INTERRUPT_H
#define ROCADE_ETHDEV_ETHDEV_INTERRUPT_H

#include "ethdev/burst.h"

/* Sets wait_fd of the queues of a started port, which was configured with rxq of struct
 * rte_eth_intr_conf, if it has interrupts. name: of the port, for the log. */
void ethdev_interrupts_open(struct ethdev_queue *queues, unsigned n, const char *name);
/* Before the port is stopped. */
void ethdev_interrupts_close(struct ethdev_queue *queues, unsigned n);

/* Stops and closes a port, and waits until EAL's interrupt thread has left its handlers. driver: the name of
 * its PMD. */
void ethdev_port_close(uint16_t port_id, const char *driver);

/* For struct port_ops. */
void ethdev_rx_arm(void *queue, bool on);

#endif
