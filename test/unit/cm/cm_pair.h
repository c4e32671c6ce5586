/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connection managers, a and b, on a virtual clock. The wire between them loses the
 * messages named in lose[]. */
#ifndef ROCADE_TEST_CM_PAIR_H
#define ROCADE_TEST_CM_PAIR_H

#include "cm/cm_types.h"

#define A 0
#define B 1
#define PORT 7471
#define SERVICE cma_service_id(CMA_PS_TCP, PORT)
#define UD_SERVICE cma_service_id(CMA_PS_UDP, PORT)
/* 4.096 us * 2^20 and twice 4.096 us * 2^18: the kernel's value for 6144 ms. */
#define REQ_WAIT_NS (code_ns(20) + 2 * code_ns(18))
#define TIMEWAIT_NS code_ns(19)
#define WIRE_NS NS_PER_MS

struct flight {
	struct mad mad;
	struct cm_path path; /* as the receiver sees it */
	unsigned to;
	uint64_t at;
};

struct cm_pair {
	struct cm *cm[2];
	uint64_t now;
	struct flight flights[512];
	unsigned flight_count;
	unsigned lose[MAD_ATTR_LAST + 1]; /* number of the next ones to drop */
	char wire[8192]; /* the messages sent: "a:REQ b:REP", lost ones in brackets */
	struct cm_listener *listener; /* b's, any address, SERVICE */
};

void cm_pair_init(struct cm_pair *pair, uint32_t max_conns);
/* Runs 10 s for the time waits to end, then proves that neither manager has a connection,
 * an event or a timer. */
void cm_pair_fini(struct cm_pair *pair);
/* Advances the clock by ns. */
void cm_pair_advance(struct cm_pair *pair, uint64_t ns);
/* Runs until no message is in flight, without timeouts. */
void cm_pair_drain(struct cm_pair *pair);
/* Compares the messages sent since the last call. */
void expect_wire(struct cm_pair *pair, const char *want);

struct cm_path path_from(unsigned from);
/* A request from a (or b) with this QP. */
struct cm_request request_from(unsigned from, uint32_t qpn);
extern const struct cm_qp passive_qp; /* b's QP */
/* Returns the next event of a side, which must be of this type. */
struct cm_event expect_event(
	struct cm_pair *pair, unsigned side, enum cm_event_type type);
void expect_no_event(struct cm_pair *pair, unsigned side);

struct cm_conn *active_connect(struct cm_pair *pair);
/* Bring a connection to REQ_RCVD, REP_RCVD or ESTABLISHED and take its events; return a's
 * end. */
struct cm_conn *reach_req_rcvd(struct cm_pair *pair, struct cm_conn **passive);
struct cm_conn *reach_rep_rcvd(struct cm_pair *pair, struct cm_conn **passive);
struct cm_conn *reach_established(struct cm_pair *pair, struct cm_conn **passive);

/* Passes a message to a side, as if from the wire. */
enum cm_drop mad_deliver(struct cm_pair *pair, unsigned to, const struct mad *mad);
/* Takes the next message of a side off its TX queue; fails when there is none. */
struct mad mad_take(struct cm_pair *pair, unsigned from);

#endif
