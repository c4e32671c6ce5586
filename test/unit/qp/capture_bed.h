/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the responder's replay share: a row of the table, and whose frames
 * are played. */
#ifndef ROCADE_TEST_QP_CAPTURE_BED_H
#define ROCADE_TEST_QP_CAPTURE_BED_H

#include "replay.h"

#define NONE 0xFF
#define NO_WC UINT8_MAX /* a completion that we do not give */

/* An answer of the kernel that we give otherwise. */
struct difference {
	const char *topic;
	uint8_t answer;   /* from 1 */
	uint8_t syndrome; /* ours instead; NONE: we say nothing */
	uint8_t psn_low;  /* of ours */
	uint8_t opcode;   /* 0: the same; ours instead, with the same PSN and payload */
	bool extra;       /* ours alone, in front of that answer */
};

/* A completion likewise. */
struct wc_difference {
	const char *topic;
	uint8_t wr_id;
	uint8_t status; /* ours instead */
	uint32_t len;   /* of a success */
};

struct play {
	const char *name;
	uint32_t qpn;     /* of a program that is no traffic generator: which QP takes */
	uint8_t recv_at;  /* receives posted late come before this frame */
	uint8_t leave[3]; /* frames that are no requests to this service */
	struct difference differences[5];
	struct wc_difference wcs[3];
};

extern struct pair p;
extern struct replay replay;
extern struct replay_run run;
extern uint32_t peer_qpn;
extern struct pkt_view first; /* the first request */

/* ---- Whose frame it is (capture_frames.c) ---- */

bool
is_answer(const struct play *play, const struct pkt_view *v);
/* Everything else goes to the QP of a generator's run, for it to drop what is not its. */
bool
is_request(const struct play *play, unsigned frame);
enum ibv_qp_type
program_type(const struct play *play);
void
first_find(const struct play *play);
/* The kernel's next answer against the frame that waits on b's wire, if there should be
 * one. */
unsigned
answer_check(const struct play *play, unsigned number, const struct pkt_view *theirs);

/* ---- What requests reach (capture_memory.c) ---- */

extern uint32_t keys[2];
extern uint32_t window_keys[2];
extern unsigned binds, invalidated;

/* Where in the target area a request of a program goes. */
uint64_t
memory_offset(const struct pkt_view *v);
/* What a READ will bring is there before it: the program's bytes. */
void
memory_learn(const struct play *play, unsigned frame, const struct pkt_view *read);
void
target_init(const struct play *play);
/* With the next key, over the first 64 KiB of the target area, as the generator does. */
void
window_rebind(void);
void
window_end(void);
/* A SEND with invalidate says so, and which key it was. */
void
invalidate_check(const struct cqe *cqe);

#endif
