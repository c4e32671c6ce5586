/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ports that the application owns, joined by net_memif in this process, with a verbs device
 * and an RC QP each. */
#ifndef ROCADE_TEST_VERBS_SHARED_PAIR_H
#define ROCADE_TEST_VERBS_SHARED_PAIR_H

#include <rocade/shared.h>

struct rocade_srq_mbufs;

#define DEPTH 64
#define MSG_BYTES 3000

/* How frames reach Rocade and leave it, and who answers ARP requests. */
enum how { HOW_FRAMES, HOW_QUEUES, HOW_FUNCTION, HOW_APP_ANSWERS, HOWS };

struct side {
	uint16_t ethdev;
	const char *address;
	struct rocade_port *port;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* NULL: the QP has a receive queue of its own */
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t mem[DEPTH * MSG_BYTES];
	unsigned others;   /* frames of the other application that have arrived */
	unsigned answered; /* ARP requests */
	/* Frames that Rocade has taken, in calls of rocade_engine_input() that have returned. Atomic. */
	uint64_t taken;
	uint8_t timeout; /* code of the ACK timeout; 0: 17, 537 ms */
	/* The QP has an SRQ that hands over mbufs; NULL: a receive queue of its own. */
	const struct rocade_srq_mbufs *mbufs;
};

extern struct side sides[2];
extern struct rte_mempool *pool; /* of the application */

/* Starts EAL and the application's ports: the setup of a group of tests. */
int app_start(void **state);
/* Stops the ports. Fails if frames of the application are left. */
int app_end(void **state);
/* Sends a frame that is none of Rocade's. */
void other_frame_send(struct side *s);
/* Receives a burst, and passes it to Rocade. */
void side_input(struct side *s);
/* One pass of the application's loop. */
void side_pass(struct side *s, enum how how);
void sides_pass(enum how how);

void side_open(struct side *s, enum how how);
void side_connect(struct side *s, const struct side *peer);
void side_close(struct side *s);
/* Returns a counter of the port. */
uint64_t side_stat(const struct side *s, const char *name);
/* Slots of mem: 0 to DEPTH - 1. */
void recv_post(struct side *s, unsigned slot);
/* Sends MSG_BYTES with the value number % 251, signaled, from slot number % DEPTH. */
void send_post(struct side *s, unsigned number);

#endif
