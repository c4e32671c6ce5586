/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the responder's replay: a row of the table, and which frames
 * are replayed. */
#ifndef ROCADE_TEST_QP_CAPTURE_FIXTURE_H
#define ROCADE_TEST_QP_CAPTURE_FIXTURE_H

#include "replay.h"

#define NONE 0xFF
#define NO_WC UINT8_MAX /* a completion that our QP does not produce */

/* A response of our QP that differs from the kernel's. */
struct difference {
	const char *topic;
	uint8_t response; /* from 1 */
	uint8_t syndrome; /* of our response; NONE: our QP sends none */
	uint8_t psn_low;  /* of our response */
	uint8_t opcode;   /* 0: the same; otherwise ours, with the same PSN and payload */
	/* the number of responses that our QP sends before this one, and the kernel does not;
	 * opcode is that of the first */
	uint8_t extra;
};

/* A completion that differs. */
struct wc_difference {
	const char *topic;
	uint8_t wr_id;
	uint8_t status; /* ours */
	uint32_t len;   /* in case of success */
};

struct capture_case {
	const char *name;
	/* of a program that is not the traffic generator: the QP that receives */
	uint32_t qpn;
	uint8_t recv_at;     /* late receives are posted before this frame */
	uint8_t left_out[3]; /* frames that are not replayed */
	struct difference differences[5];
	struct wc_difference wcs[3];
};

extern struct qp_link p;
extern struct replay replay;
extern struct replay_run run;
extern uint32_t peer_qpn;
extern struct pkt_view first_request;

/* ---- Requests and responses (capture_frames.c) ---- */

bool is_response(const struct capture_case *entry, const struct pkt_view *v);
/* In a generator's run all other frames go to the QP as well, which drops foreign
 * ones. */
bool is_request(const struct capture_case *entry, unsigned frame);
enum ibv_qp_type program_type(const struct capture_case *entry);
void first_request_find(const struct capture_case *entry);
/* Compares the kernel's next response with the first frame on b's wire, if one is
 * expected. */
unsigned response_check(
	const struct capture_case *entry, unsigned number, const struct pkt_view *theirs);

/* ---- Memory that requests access (capture_memory.c) ---- */

extern uint32_t keys[2];
extern uint32_t mw_keys[2];
extern unsigned binds, invalidated;

/* Offset of a request's destination in the target area. */
uint64_t memory_offset(const struct pkt_view *v);
/* Fills the memory that a READ reads with the bytes of its response in the capture. */
void memory_fill_from_responses(
	const struct capture_case *entry, unsigned frame, const struct pkt_view *read);
/* Puts in memory what an atomic finds there, by its response, unless it finds the result of an
 * earlier one. */
void memory_fill_from_atomic(
	const struct capture_case *entry, unsigned frame, const struct pkt_view *atomic);
void target_init(const struct capture_case *entry);
/* Binds the next key over the first 64 KiB of the target area, as the generator does. */
void capture_mw_rebind(void);
void capture_mw_destroy(void);
/* Checks that a SEND with invalidate reports the right key. */
void invalidate_check(const struct cqe *cqe);

/* ---- Completions (capture_completions.c) ---- */

/* The message that a program is sending. */
extern struct capture_expected {
	uint8_t bytes[REPLAY_SLOT];
	uint32_t len;
	uint64_t va; /* in the target area */
	unsigned messages;
} expected;

/* The message of a program goes on with this frame: when it is complete, checks what it wrote, and
 * its completion. */
void message_expect(const struct pkt_view *v);
void completions_check(const struct capture_case *entry);

#endif
