/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of the application, which Rocade shares. include/rocade/shared.h has the rules. */
#ifndef ROCADE_ETHDEV_SHARED_PORT_H
#define ROCADE_ETHDEV_SHARED_PORT_H

#include <rocade/shared.h>

#include "base/ringmem.h"
#include "ethdev/burst.h"
#include "ethdev/frame_owner.h"
#include "ethdev/steer.h"

#define SHARED_GROUP_BITS 4096

struct shared_port;

struct shared_queue {
	struct ethdev_queue
		eth; /* transmission; first, for the calls of ethdev/burst.h */
	struct shared_port *port;
	struct rte_ring *input; /* frames for Rocade, from rocade_engine_input() */
	struct rte_ring
		*exceptions; /* frames for the application; NULL: no receive queue */
	uint16_t index;      /* of the engine */
	uint16_t rx_queue;
	bool input_first; /* in the next burst; the engine's */
	/* any thread */
	uint64_t input_full, exceptions_full, no_copy;
} LINE_ALIGNED;

struct shared_port {
	uint16_t port_id;
	uint16_t queue_count;
	uint32_t input_room; /* frames of an input ring */
	struct rocade_shared_conf conf;
	uint32_t mtu;
	bool own_pool;
	bool set_all_multicast; /* by Rocade: to be undone */
	bool mtu_warned;
	bool gone; /* the application has closed the port; any thread */
	struct rte_mempool *pool;
	struct steer steer;
	/* Odd while addrs changes; see addrs_read(). */
	uint32_t addrs_sequence;
	struct frame_addrs addrs __attribute__((aligned(8)));
	/* A bit for the MACs of each group that Rocade is in; any thread reads it. */
	uint64_t groups[SHARED_GROUP_BITS / 64];
	LIST_ENTRY(shared_port) link; /* of all shared ports */
	void **queues;
	struct shared_queue queue[];
};

struct shared_open_conf {
	uint16_t port_id;
	uint16_t queues;
	uint16_t input_room; /* frames; 0: 1024 */
	uint32_t mtu;        /* IP MTU */
	bool no_cksum_offload;
	struct rocade_shared_conf shared;
};

/* Fills in port. Returns 0 or -errno, and then writes one sentence to err. */
int shared_open(const struct shared_open_conf *conf, struct port *port, char *err,
	size_t err_size);

/* shared_pool.c. One thread at a time. number: of this pool. */
int shared_pool_create(
	struct shared_port *port, unsigned number, char *err, size_t err_size);
/* Frees the pool, at once or when its last frame has come back. */
void shared_pool_release(struct shared_port *port);

/* shared_burst.c */
unsigned shared_rx_burst(void *queue, struct pkt *pkts, unsigned n);
unsigned shared_tx_burst(void *queue, struct pkt *pkts, unsigned n);
/* *queued: the engine has to be woken. */
uint16_t shared_input(
	struct shared_queue *q, struct rte_mbuf **frames, uint16_t n, bool *queued);
uint16_t shared_exceptions(struct shared_queue *q, struct rte_mbuf **frames, uint16_t n);
/* Publish addresses and the MACs of groups for the calls above. One thread at a time. */
void shared_groups_set(struct shared_port *port, const uint8_t (*macs)[6], unsigned n);
void shared_addrs_set(struct shared_port *port, const struct frame_addrs *addrs);

/* NULL: not a queue of a shared port. */
struct shared_queue *shared_queue_of(const struct port *port, unsigned index);

#endif
