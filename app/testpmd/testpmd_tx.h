/* SPDX-License-Identifier: BSD-3-Clause */
/* Send buffers of a host and the posting of messages in lists. */
#ifndef TESTPMD_TX_H
#define TESTPMD_TX_H

#include <infiniband/verbs.h>

#include "testpmd_conf.h"

struct host;
struct conn;

struct tx {
	void *mem;
	size_t len;
	struct ibv_mr *mr;
	uint64_t stride; /* from one buffer of a QP to the next */
	/* buffers per QP; 1: one buffer for all, which is not filled in */
	uint32_t slots;
	uint32_t depth; /* maximum of outstanding requests per QP */
	struct ibv_send_wr wr[BURST_MAX];
	struct ibv_sge sge[BURST_MAX];
};

/* Returns 0, or an errno value with everything undone. */
int tx_init(struct host *host);
void tx_fini(struct tx *tx);
/* Returns how many requests of a QP there are per signaled one; 0: no request is
 * signaled. */
uint32_t tx_signal_every(const struct host *host);
/* Posts up to n more messages of the QP. Returns how many. Calls host_fail() if the post
 * was refused. */
unsigned tx_post(struct host *host, struct conn *conn, unsigned n);
/* How many messages the QP can post now. */
uint64_t tx_room(const struct host *host, const struct conn *conn);
/* Posts as much of a burst as there is room for. */
unsigned tx_post_burst(struct host *host, struct conn *conn);
/* Polls the send CQ. Returns the number of CQEs. On an error sets conn->failed and,
 * unless the host waits for its peer, calls host_fail(). */
unsigned tx_reap(struct host *host);
/* Returns the bytes of n messages, starting with message number first. */
uint64_t tx_bytes(const struct host *host, uint64_t first, uint64_t n);

#endif
