/* SPDX-License-Identifier: BSD-3-Clause */
/* Coverage counters of all seeds. A sweep fails if something that can happen never
 * did. */
#ifndef ROCADE_SIM_COVER_H
#define ROCADE_SIM_COVER_H

#include "base/base_stats.h"

#include "sim.h"

#define COVER_STATES 8
#define COVER_SERVICES 3 /* RC, UC, UD */
#define COVER_WC 24
#define COVER_EVENTS 32
#define COVER_SYNDROMES 7
#define COVER_OPS 64
#define COVER_TYPES 12   /* enum ibv_qp_type */
#define COVER_OPCODES 16 /* enum ibv_wr_opcode */

struct cover {
	uint64_t seeds, ops, frames, virtual_ns;
	uint64_t opcode[256];
	uint64_t syndrome[COVER_SYNDROMES];
	uint64_t drop[DROP_COUNT];
	uint64_t state[COVER_SERVICES][COVER_STATES][COVER_STATES];
	uint64_t status[COVER_WC];
	uint64_t event[COVER_EVENTS];
	uint64_t op[COVER_OPS]; /* of the generator */
	/* successful, by the receiver's QP type */
	uint64_t request[COVER_TYPES][COVER_OPCODES];
	uint64_t window[COVER_OPCODES]; /* successful, with a window */
	uint64_t type1[2];              /* windows bound, unbound */
	uint64_t stale_keys;            /* window keys that were refused */
	uint64_t xrc_shared;            /* receives of an SRQ shared by XRC targets */
	uint64_t cnp_sent, cnp_received;
	uint64_t sack_received, resent_few, hold_evicted;
	uint64_t spread, paths_moved;
	uint64_t ack_coalesced;
	uint64_t read_placed, read_repeated;
	uint64_t cc_waits, cc_cut_delay, cc_cut_loss, cc_cut_cnp;
	uint64_t retries_ran_out, lost;
};

extern struct cover cover;

void cover_frame(const uint8_t *data, uint32_t len);
void cover_state(unsigned qp_type, unsigned from, unsigned to);
void cover_add(struct cover *sum, const struct cover *one);
/* Prints the table. Returns the number of rows that can happen and never did. */
unsigned cover_print(const struct cover *c, bool all);

#endif
