/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --rate: messages are due at equal intervals, whether earlier ones are complete or not (an open loop).
 * The latency of a message counts from the time at which it was due, so that a message that finds no
 * room in the send queue waits in it, too.
 */
#ifndef TESTPMD_RATE_H
#define TESTPMD_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include <common/hist.h>

struct host;
struct conn;

struct rate {
	bool on;        /* for this run */
	double asked;   /* messages a second, of all cores together; 0: none */
	double each_ns; /* from one message of this core to the next, all QPs together */
	uint64_t begin_ns;  /* when the first one was due */
	uint64_t posted;    /* messages of this run */
	uint64_t behind;    /* messages that were due, and not posted, at the end */
	unsigned next;      /* index of the QP that gets the next message */
	uint64_t *due_ns;   /* of each QP's outstanding messages, by number % depth */
	struct hist *of_op; /* latencies of each operation */
};

/* At `start`. Returns 0, or -1 after host_fail(). */
int rate_start(struct host *host);
void rate_close(struct rate *rate);
/* Posts what is due. Returns the number of messages. */
unsigned rate_push(struct host *host);
/* At the end of the run, before the last messages are waited for. */
void rate_stop(struct host *host);
/* The QP's messages from first to, and without, end are acknowledged. */
void rate_acked(struct host *host, const struct conn *conn, uint64_t first, uint64_t end);

#endif
