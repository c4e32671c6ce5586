/* SPDX-License-Identifier: BSD-3-Clause */
/* For librocade-faults.so of the same release (drivers/preload): what it cannot do by verbs. It asks for these functions
 * once, and nothing here is on a path without it. */
#ifndef ROCADE_VERBS_FAULT_HOOKS_H
#define ROCADE_VERBS_FAULT_HOOKS_H

#include "base/own_thread.h"
#include "verbs/export.h"

/* How a send request fails. */
struct fault_completion {
	enum ibv_wc_status status;
	uint32_t vendor_err;
};

/* A request of a batch that is not posted yet. */
struct fault_request {
	enum ibv_wr_opcode opcode;
	uint32_t len; /* bytes of the message or of the range */
	bool is_inline;
};

/* Effects on a request packet that the process sends. */
enum fault_wire {
	FAULT_WIRE_PASS,
	FAULT_WIRE_DROP,
	FAULT_WIRE_DUPLICATE,
	FAULT_WIRE_DELAY /* a few later packets overtake it */
};

#define FAULT_WIRE_PSNS 256 /* a power of two */

/* qp: of the program. idx: of the request, from 0 after RESET. packet: of the request, from 0; of a READ only 0. Called
 * each time that the packet is sent, with the engine's lock held. Packets that are not acknowledged have different psn
 * modulo FAULT_WIRE_PSNS. */
typedef enum fault_wire fault_judge_fn(
	const void *qp, uint32_t idx, uint32_t packet, uint32_t psn);

struct fault_hooks {
	/* As ibv_post_send() of one request, which fails. */
	int (*post_failing)(struct ibv_qp *qp, struct ibv_send_wr *wr,
		const struct fault_completion *fault);
	/* Whether ibv_post_send() accepts this request now. */
	bool (*post_possible)(struct ibv_qp *qp, const struct ibv_send_wr *wr);
	/* Just before ibv_wr_complete(): how many requests the batch has; 0: it is refused. The request with this
	 * index, from 0, and how it fails. */
	unsigned (*batch_end)(struct ibv_qp_ex *ex);
	struct fault_request (*batch_request)(struct ibv_qp_ex *ex, unsigned index);
	void (*batch_fail)(struct ibv_qp_ex *ex, unsigned index,
		const struct fault_completion *fault);
	/* Whether the event can come now, and comes once more. qp or srq may be NULL. */
	bool (*event_possible)(
		enum ibv_event_type type, struct ibv_qp *qp, struct ibv_srq *srq);
	/* Causes an asynchronous event, with all that belongs to it: of the QP; of its send CQ; of the
	 * SRQ; of the device, whose QPs all go to ERR. The caller may have a batch of the QP under construction. */
	void (*event_cause)(
		enum ibv_event_type type, struct ibv_qp *qp, struct ibv_srq *srq);
	/* The requests that were posted to the QP since RESET. */
	uint32_t (*posted)(struct ibv_qp *qp);
	/* Asks judge about the packets of all QPs of the device from now on. Returns 0 or ENOMEM. */
	int (*wire_watch)(struct ibv_context *context, fault_judge_fn *judge);
	/* The process has links of its own from now on: as device_source_own_links(). */
	void (*links_own)(void);
	/* The link of the context's device can be taken down from now on. Returns 0 or ENOMEM. */
	int (*link_watch)(struct ibv_context *context);
	/* Takes the links of all devices of the process down or up, of those that are so watched. */
	void (*links_cut)(bool cut);
	uint64_t (*clock)(void); /* engine_clock() */
	/* own_thread_start() */
	int (*thread_start)(struct own_thread *t);
};

EXPORT const struct fault_hooks *rocade_fault_hooks(void);

/* fault_wire.c */
int fault_wire_watch(struct ibv_context *context, fault_judge_fn *how);
int fault_link_watch(struct ibv_context *context);

#endif
