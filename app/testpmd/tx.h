/* SPDX-License-Identifier: BSD-3-Clause */
/* Send buffers of a host and the posting of messages in lists. */
#ifndef TESTPMD_TX_H
#define TESTPMD_TX_H

#include <infiniband/verbs.h>

#include "conf.h"

struct host;
struct flow;

struct tx {
	void *mem;
	size_t len;
	struct ibv_mr *mr;
	uint64_t stride; /* from one buffer of a flow to the next */
	uint32_t slots; /* buffers of a flow; 1: the same for all, nothing is filled in */
	uint32_t depth; /* requests of a flow under way at the most */
	struct ibv_send_wr wr[BURST_MAX];
	struct ibv_sge sge[BURST_MAX];
};

/* 0 or an errno value, all undone. */
int tx_init(struct host *host);
void tx_fini(struct tx *tx);
/* Requests of a flow from one signaled one to the next; 0: none is. */
uint32_t tx_signal_every(const struct host *host);
/* Posts up to n further messages of the flow; returns how many, and calls host_fail()
 * when the post was refused. */
unsigned tx_post(struct host *host, struct flow *flow, unsigned n);
/* As many of a burst as there is room for. */
unsigned tx_post_burst(struct host *host, struct flow *flow);
/* Polls the send CQ: returns how many CQEs. In error: flow->failed is set, and unless the
 * host waits for its peer, host_fail() called. */
unsigned tx_reap(struct host *host);
/* Bytes of n messages from number first. */
uint64_t tx_bytes(const struct host *host, uint64_t first, uint64_t n);

#endif
