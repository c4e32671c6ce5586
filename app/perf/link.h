/* SPDX-License-Identifier: BSD-3-Clause */
/* The UNIX socket between the two ends: what to measure, where memory is, when a window
 * begins and ends. */
#ifndef PERF_LINK_H
#define PERF_LINK_H

#include "conf.h"

enum msg_kind {
	MSG_PLAN,  /* client: what is measured */
	MSG_READY, /* both, the server first: QPs are there, and where memory is; once
		    * more the server: and are connected */
	MSG_BEGIN, /* client: the window begins */
	MSG_END,   /* client: and ends; the server answers with MSG_TALLY */
	MSG_TALLY,
	MSG_GONE /* of link_poll(): the other end closed */
};

struct tally {
	uint64_t messages; /* in the window: receives, or completions, polled */
	double seconds;    /* that it was long */
	uint64_t retransmitted, rnr_naks, dropped; /* since the port was opened */
	uint64_t memory;                           /* bytes: buffers, queues, QPs */
	uint64_t qp_memory; /* of that, the QPs with their own queues */
	uint64_t srq_memory;
};

struct msg {
	uint64_t kind;
	union {
		struct plan plan;
		struct {
			uint64_t addr;
			uint32_t rkey;
			uint32_t qpn;   /* the first */
			uint8_t mac[6]; /* raw-pingpong */
		} ready;
		struct tally tally;
	};
};

/* The server waits for a client, the client for a server. 0, or -1 with a sentence. */
int
link_open(const struct conf *conf, int *fd, char err[ERR_MAX]);
void
link_close(const struct conf *conf, int fd);
/* 0, or -1: the other end is gone. */
int
link_send(int fd, const struct msg *msg);
/* Waits for a message of this kind; -1: the other end is gone, or sent another. */
int
link_wait(int fd, enum msg_kind kind, struct msg *msg);
/* Until the other end has closed its port and its end of this. */
void
link_drain(int fd);
/* Whether there is a message, or MSG_GONE. */
bool
link_poll(int fd, struct msg *msg);

#endif
