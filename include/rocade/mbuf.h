/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in mbufs of the application, without a copy, received and sent.
 *
 * An SRQ can hand over the messages of its QPs in mbufs (rocade_srq_set_mbufs()). Its receives have no
 * memory: each stands for a message, and is posted, taken, counted and flushed as any other. The mbuf
 * of each received frame becomes that of its payload: headers and ICRC are cut off, and the further
 * packets of a message are chained in order. The completion names the first one (rocade_wc_mbuf()).
 *
 * A frame is given away if it has no other holder, and is of a mempool of the application: pool of
 * struct rocade_port_conf, or any that rocade_engine_input() and the receive queues of a shared port get
 * frames from. A frame of several segments is first copied into one. Otherwise its payload is copied
 * into an mbuf of the SRQ's mempool: a frame of a pool of Rocade (whose name begins with "rocade_"), a
 * clone, an external buffer, a packet that was held behind a missing one, and a frame of a mempool that
 * runs low. Of that, and of the mempool that the port sends from, 256 buffers for each engine of the
 * port are left for frames, so that an application which keeps its messages for long does not cost
 * other QPs theirs. Buffers that wait in caches of lcores do not count. The counters mbufs_handed and
 * mbufs_copied say how often each happened. If there is no mbuf for the copy, either, the peer gets an
 * RNR NAK, and sends the packet again (mbufs_missing).
 *
 * Ownership. The mbufs of a completion that was polled are the application's, which frees them
 * (rte_pktmbuf_free()), any time and in any thread, also after the QP, the SRQ or the port has gone.
 * Rocade frees those of messages that are not complete when their QP enters the error state or RESET
 * or is destroyed, and those of completions that are dropped because their QP is reset or destroyed
 * before they are polled, or because the CQ has overflowed.
 */
#ifndef ROCADE_MBUF_H
#define ROCADE_MBUF_H

#include <rocade/rocade.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;
struct rte_mempool;

struct rocade_srq_mbufs {
	size_t size; /* sizeof(struct rocade_srq_mbufs): lets the structure grow */
	/* For payload that is copied. Of rte_pktmbuf_pool_create(), with room for the path MTU behind
	 * the headroom. It may be the port's, and must outlive the SRQ. */
	struct rte_mempool *pool;
	/* Bytes of the longest message, 1 to 8388608: a longer one fails, as one that is longer than
	 * a receive. Each QP can keep as many buffers for a message that is not complete as the message
	 * has packets: max_message / path MTU, rounded up. */
	uint32_t max_message;
};

/*
 * Hands over the messages of the SRQ in mbufs from now on. To be called before receives are posted and
 * QPs are created with it, and while no other thread does either; a second call replaces the first. Receives with SGEs are refused then
 * (EINVAL), and ibv_query_srq(3) reports max_sge 0. QPs with it are RC, and their receive CQ is of no
 * thread domain: else ibv_create_qp(3) fails with EINVAL. RDMA WRITE with immediate data takes a receive
 * as before, and writes to registered memory.
 *
 * EINVAL: not an SRQ of Rocade, or a member of conf is wrong. EOPNOTSUPP: the frames of its port are no
 * mbufs (a loop, a program behind the daemon), or it is an XRC SRQ. EBUSY: it has a QP, or posted
 * receives.
 */
int rocade_srq_set_mbufs(struct ibv_srq *srq, const struct rocade_srq_mbufs *conf);

/*
 * Returns the message of a completion of such an SRQ, byte_len bytes in one or more segments. NULL:
 * none was handed over, because the completion is in error or of an RDMA WRITE, or the message is empty.
 * The wr_id of the receive is reported in these cases only. With ibv_start_poll(3) the mbuf is
 * cq->wr_id under the same conditions.
 */
static inline struct rte_mbuf *
rocade_wc_mbuf(const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS || wc->opcode != IBV_WC_RECV ||
		wc->byte_len == 0)
		return NULL;
	return (struct rte_mbuf *)(uintptr_t)wc->wr_id;
}

/*
 * Posts a request whose payload is in an mbuf: as ibv_post_send(3) does for a list of this one, with an
 * IBV_WR_SEND, a SEND with immediate data or invalidate, an RDMA WRITE or one with immediate data, and
 * without SGEs. The message is the pkt_len bytes of the mbuf, which may be a chain of up to 64 segments;
 * other requests may be posted before and behind it. Any thread, as for ibv_post_send(3).
 *
 * Ownership. The mbuf is Rocade's until the request completes, signaled or not: Rocade then frees it
 * (the reference that it was given), as it does if the request fails, is flushed, or is dropped because
 * the QP is reset or destroyed. Until then the program writes neither to it nor to its other holders'
 * data. On an error the mbuf stays the program's.
 *
 * Each packet is copied from the mbuf into a frame in the pass that computes its ICRC, which has to read
 * the payload anyway: the program saves a copy of its own, and registered memory.
 *
 * EINVAL: as ibv_post_send(3); or an argument is NULL; or the mbuf's segments do not add up, are longer
 * than their buffers, or more than 64. ENOMEM: the
 * queue is full. EOPNOTSUPP: the port's frames are no mbufs.
 */
int rocade_post_send_mbuf(struct ibv_qp *qp, struct ibv_send_wr *wr, struct rte_mbuf *m);

#ifdef __cplusplus
}
#endif

#endif
