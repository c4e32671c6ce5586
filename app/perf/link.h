/* SPDX-License-Identifier: BSD-3-Clause */
/* The UNIX socket between the two ends. It carries the plan, memory addresses, and the
 * begin and end of the measurement. */
#ifndef PERF_LINK_H
#define PERF_LINK_H

#include "perf_conf.h"

#define LINK_QPNS 32 /* in a message */

enum msg_kind {
	MSG_PLAN, /* client: what to measure */
	/* Both ends send it, the server first: the QPs exist; where memory is. The server sends it
	 * again once its QPs are connected. */
	MSG_READY,
	MSG_QPNS,  /* behind each MSG_READY, as often as they need: the QPNs */
	MSG_BEGIN, /* client: the measurement begins */
	MSG_END,   /* client: it ends; the server replies with MSG_TALLY */
	MSG_TALLY,
	MSG_DISCONNECTED /* from link_poll(): the peer closed the socket */
};

struct tally {
	uint64_t messages; /* receives or completions polled during the measurement */
	double seconds;    /* its duration */
	uint64_t retransmitted, rnr_naks, dropped; /* since the port was opened */
	uint64_t memory;                           /* bytes: buffers, queues, QPs */
	uint64_t qp_memory; /* part of memory: QPs with their own queues */
	uint64_t srq_memory;
};

struct msg {
	uint64_t kind;
	union {
		struct plan plan;
		struct {
			uint64_t addr;
			uint32_t rkey;
			uint8_t mac[6]; /* unused */
		} ready;
		struct tally tally;
		uint32_t qpns[LINK_QPNS];
	};
};

/* Opens the socket and waits for the peer. Returns 0, or -1 with a message in err. */
int link_open(const struct conf *conf, int *fd, char err[ERR_MAX]);
void link_close(const struct conf *conf, int fd);
/* Returns 0, or -1 if the peer disconnected. */
int link_send(int fd, const struct msg *msg);
/* Waits for a message of this kind. Returns -1 if the peer disconnected or sent another
 * kind. */
int link_recv(int fd, enum msg_kind kind, struct msg *msg);
/* Waits until the peer has closed its port and the socket. */
void link_drain(int fd);
/* Returns true if there was a message; its kind is MSG_DISCONNECTED if the peer closed the
 * socket. */
bool link_poll(int fd, struct msg *msg);

#endif
