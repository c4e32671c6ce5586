/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* The scoreboards of an engine, see sack.h, and what the files below sack.c read of them. */
#ifndef ROCADE_QP_SACK_BOARD_H
#define ROCADE_QP_SACK_BOARD_H

#include <sys/queue.h>

#include "qp/qp.h"

#define SACK_BOARDS 64 /* of an engine */

/* A packet that was sent again. */
struct sack_copy {
	uint32_t psn;
	uint32_t
		sent_psn; /* req.sent_psn at that time: later packets were sent after it */
	uint32_t number;  /* counts the copies of a scoreboard; 0: there is none */
	uint32_t copied_ns; /* low 32 bits of that time */
};

struct sack_board {
	TAILQ_ENTRY(sack_board) link; /* among the free ones */
	/* A bit for each packet from una_psn up to end: */
	struct psn_bits held; /* the peer holds it, or has said so once */
	struct psn_bits due;  /* it is lost: a copy is to be sent */
	uint32_t end; /* after the last held packet, or the one that a NAK named */
	uint32_t copies;
	uint16_t held_count, due_count;
	struct sack_copy copy[QP_MAX_UNACKED]; /* the last one of each packet, by PSN */
};
TAILQ_HEAD(sack_board_list, sack_board);

struct sack_boards {
	struct sack_board *boards;
	struct sack_board_list free;
};

/* The scoreboard of a QP that has one (req.sacked). */
static inline struct sack_board *
sack_board_of(const struct qp *qp)
{
	return &qp->shared->sack->boards[qp->sack_board];
}

/* Packets that the peer of such a QP holds. */
static inline uint32_t
sack_held(const struct qp *qp)
{
	return sack_board_of(qp)->held_count;
}

#endif
