/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of "the application", net_ring0 with four pairs of queues, which gives back what is
 * sent: on receive queue N what was sent on transmit queue N. */
#ifndef ROCADE_TEST_DRIVERS_SHARED_FIXTURE_H
#define ROCADE_TEST_DRIVERS_SHARED_FIXTURE_H

#include "ethdev/shared_port.h"

#define APP_QUEUES 4

enum frame_kind { KIND_ROCE, KIND_TCP, KIND_ARP_FOR_ALL, KIND_GROUP };

extern char warning[200];        /* the driver's last warning */
extern struct rte_mempool *pool; /* of the application */
extern uint16_t app_port;

/* Of the group: starts EAL and the application's port; ends EAL. */
int shared_start(void **state);
int shared_end(void **state);
struct shared_open_conf shared_defaults(void);
/* Opens a port with the address 192.0.2.1. */
struct port shared_opened(const struct shared_open_conf *conf);
struct shared_queue *queue_of(const struct port *port, unsigned index);
/* As shared_input(). */
uint16_t frames_input(struct shared_queue *q, struct rte_mbuf **frames, uint16_t n);
extern bool input_queued; /* as shared_input() has said last */
/* A frame of the application's pool with this number in its last byte. */
struct rte_mbuf *frame_of(enum frame_kind kind, unsigned number);
unsigned number_of(const struct rte_mbuf *m);
unsigned pool_used(void);

/* The calls of rte_flow are the fixture's: it keeps the rules. No virtual PMD has them. */
struct flow_rule {
	bool used, ipv6;
	uint8_t addr[16];
	uint16_t port;
	uint16_t queue; /* the first one */
	uint16_t queues;
};
extern struct flow_rule rules[8];
extern bool flows_fail;
unsigned rules_in_use(void);

#endif
