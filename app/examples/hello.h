/* SPDX-License-Identifier: BSD-3-Clause */
/* What hello_client.c and hello_server.c have in common. */
#ifndef HELLO_H
#define HELLO_H

#include <err.h>
#include <stdint.h>
#include <time.h>

#include <infiniband/verbs.h>

#define HELLO_PORT "7471"  /* of RDMA-CM: like a TCP port, in a separate port space */
#define HELLO_BYTES 8192   /* the longest text */
#define HELLO_TIMEOUT_S 10 /* a wait this long for a completion fails */

/* The server's private data in its reply to the connection request, in network byte
 * order: which memory the client may write to. The rkey lets the QP of the connection
 * access the memory region. */
struct hello_buffer {
	uint64_t address;
	uint32_t rkey;
	uint32_t bytes;
} __attribute__((packed));

/*
 * Waits for the next completion. Each work request of these programs ends with one, in
 * the order of its queue. A program that has other work polls in its own loop, or sleeps
 * on a completion channel (ibv_create_comp_channel(3)).
 */
static inline void
wc_wait(struct ibv_cq *cq, struct ibv_wc *wc)
{
	time_t end = time(NULL) + HELLO_TIMEOUT_S;
	int n;

	while ((n = ibv_poll_cq(cq, 1, wc)) == 0) {
		if (time(NULL) > end)
			errx(1, "no completion for %d s", HELLO_TIMEOUT_S);
	}
	if (n < 0)
		errx(1, "ibv_poll_cq failed");
	if (wc->status != IBV_WC_SUCCESS)
		errx(1, "work request %d failed: %s (vendor_err %u)", (int)wc->wr_id,
			ibv_wc_status_str(wc->status), wc->vendor_err);
}

#endif
