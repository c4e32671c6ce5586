/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the requester's replay share: a row of the table, and how far it is
 * played. */
#ifndef ROCADE_TEST_QP_CAPTURE_REQUESTER_BED_H
#define ROCADE_TEST_QP_CAPTURE_REQUESTER_BED_H

#include "replay.h"

/* A completion that the kernel does not give, or gives otherwise. */
struct wc_difference {
	const char *topic;
	uint8_t wr_id;
	uint8_t status;
};

struct play {
	const char *name;
	uint32_t qpn;      /* of a program: the QP that it sends to */
	const char *topic; /* of end, skip and silent */
	uint8_t end;       /* the kernel's frames from here on are its own */
	bool open;         /* and we go on otherwise: the capture says nothing of it */
	uint8_t skip[2];   /* frames that we do not send */
	bool ackreq;       /* FIRST and MIDDLE ask for answers elsewhere */
	bool crossed;      /* answers that came before a request stand behind it */
	bool shared;       /* its READs have one buffer, looked at in the end */
	struct wc_difference wcs[1];
};

extern struct pair p;
extern struct replay replay;
extern struct replay_run run;
extern struct pkt_view first;
extern uint32_t server_rkey; /* what requests name if the capture has none */
extern unsigned next_frame, posted;
extern bool mcast;

/* Requests come from where the run's side is. */
bool
is_request(const struct pkt_view *v);

/* ---- What is posted (capture_requester_post.c) ---- */

/* False: not a word that posts. */
bool
word_post(const char *word);
bool
to_program(const struct play *play, unsigned frame, struct pkt_view *v);
/* Posts the message that starts at a frame: its bytes, its flags and where it goes. */
void
message_post(const struct play *play, unsigned frame);

#endif
