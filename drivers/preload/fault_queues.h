/* SPDX-License-Identifier: BSD-3-Clause */
/* The queues whose requests rocade-run --faults counts: QPs and SRQs of Rocade's devices, in the order in which the
 * process has created them. */
#ifndef ROCADE_PRELOAD_FAULT_QUEUES_H
#define ROCADE_PRELOAD_FAULT_QUEUES_H

#include <stdbool.h>

#include <infiniband/verbs.h>

#include "faults/faults.h"
#include "verbs/fault_hooks.h"

struct rdma_cm_id;

struct counted_queue {
	struct counted_queue *next; /* in its bucket */
	const void *handle;         /* the object of the program; NULL: it is gone */
	bool leaving; /* it is being destroyed: not to be used for another one */
	struct fault_queue name;
	unsigned type;         /* FAULT_OF_* */
	struct rdma_cm_id *id; /* whose connection the QP has; NULL: none that is known */
	uint64_t requests, receives;
	/* Of a QP, for packets: written with the lock of its engine, and by calls that find it in RESET. */
	uint64_t before;  /* requests that were posted before the last RESET */
	uint64_t packets; /* sent, each once */
	struct sent_packet
		*recent; /* FAULT_WIRE_PSNS, by PSN. NULL: packets are not counted */
};

/* The last packet with such a PSN. copies 0: none. */
struct sent_packet {
	uint32_t idx, packet, copies;
};

/* From now on the packets of new QPs are counted. */
void fault_packets_begin(void);
/* Counts a packet, as fault_judge_fn has it. Returns false if it is not counted. */
bool fault_packet_count(struct counted_queue *q, uint32_t idx, uint32_t packet,
	uint32_t psn, struct fault_packet *out);
/* The QP is in RESET now. posted: the requests that were posted since the RESET before. */
void fault_qp_was_reset(const void *handle, uint32_t posted);
/* The program has created it. Reports if there is no memory to count its requests, or its packets. */
void fault_qp_made(struct ibv_qp *qp);
void fault_srq_made(struct ibv_srq *srq);
/* It is about to be destroyed, and is so or not. */
struct counted_queue *fault_queue_leave(const void *handle);
void fault_queue_left(struct counted_queue *q, const void *handle, bool gone);

/* Without a lock, by a thread that uses the object. NULL: there was no memory for it. */
struct counted_queue *fault_queue_of(const void *handle);
/* How many were created. */
uint64_t fault_queues_made(enum fault_object_type type);

#endif
