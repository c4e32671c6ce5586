/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Of an engine, for mbuf_receive.h: which frames may be given away. */
#ifndef ROCADE_QP_MBUF_STATE_H
#define ROCADE_QP_MBUF_STATE_H

#include "mem/mbuf_ops.h"
#include "wire/pkt.h"

/* Buffers of a mempool that the port needs for frames. */
struct mbuf_spare {
	const struct rte_mempool *pool;
	uint32_t
		count; /* that may be taken from it before the free ones are counted again */
};

struct mbuf_state {
	const struct mbuf_ops *ops; /* NULL: the frames of the port are no mbufs */
	const struct rte_mempool *frame_pool; /* see port/port.h */
	struct mbuf_spare frames; /* the mempool of the last frame that a QP looked at */
	struct mbuf_spare copies; /* the mempool that the port sends from */
	uint32_t reserve;         /* buffers of each that are left to the port */
	bool frames_are_given;    /* buffers of frames.pool may be given away */
	bool copies_all;          /* switched off: all payload is copied */
};

#endif
