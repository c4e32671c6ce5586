/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of the requester's replay: a row of the table, and the progress of
 * the replay. */
#ifndef ROCADE_TEST_QP_CAPTURE_REQUESTER_FIXTURE_H
#define ROCADE_TEST_QP_CAPTURE_REQUESTER_FIXTURE_H

#include "replay.h"

/* A completion that the kernel does not give or that differs. */
struct wc_difference {
	const char *topic;
	uint8_t wr_id;
	uint8_t status;
};

struct capture_case {
	const char *name;
	uint32_t qpn;      /* of a program: the QP that it sends to */
	const char *topic; /* of the differences that follow */
	uint8_t end;       /* frames from this one on are not replayed; 0: all are */
	bool diverges;   /* our QP then behaves in a way that the capture does not show */
	uint8_t skip[2]; /* frames that our QP does not send */
	bool ackreq;     /* the kernel sets AckReq on other FIRST and MIDDLE packets */
	uint8_t ackreq_last; /* and on this one */
	bool reordered; /* responses that arrived before a request are recorded after it */
	bool shared;    /* its READs share one buffer, which is checked at the end */
	struct wc_difference wcs[1];
};

extern struct qp_link p;
extern struct replay replay;
extern struct replay_run run;
extern struct pkt_view first_request;
extern uint32_t server_rkey; /* R_Key of requests if the capture has none */
extern unsigned next_frame, posted;
extern bool mcast;

/* True if the frame comes from the address of the run's side. */
bool is_request(const struct pkt_view *v);

/* ---- Posting (capture_requester_post.c) ---- */

/* Returns false if the word posts nothing. */
bool word_post(const char *word);
bool is_program_request(
	const struct capture_case *entry, unsigned frame, struct pkt_view *v);
/* Posts the message that starts at the frame, with its bytes, flags and destination. */
void message_post(const struct capture_case *entry, unsigned frame);

#endif
