/* SPDX-License-Identifier: BSD-3-Clause */
/* Two connection managers, a and b, on a virtual clock with a wire between them that
 * loses what it is told to. */
#ifndef ROCADE_TEST_CM_BED_H
#define ROCADE_TEST_CM_BED_H

#include "cm/cm.h"
#include "cm/internal.h"

#define A 0
#define B 1
#define PORT 7471
#define SERVICE cma_service_id(CMA_PS_TCP, PORT)
#define UD_SERVICE cma_service_id(CMA_PS_UDP, PORT)
/* 4.096 us * 2^20 and twice that of 2^18: what the kernel takes for 6144 ms. */
#define REQ_WAIT_NS (code_ns(20) + 2 * code_ns(18))
#define TIMEWAIT_NS code_ns(19)
#define WIRE_NS NS_PER_MS

struct flight {
	struct mad mad;
	struct cm_path path; /* as its receiver sees it */
	unsigned to;
	uint64_t at;
};

struct bed {
	struct cm *cm[2];
	uint64_t now;
	struct flight flights[512];
	unsigned flight_count;
	unsigned lose[MAD_ATTR_LAST + 1]; /* so many of the next ones */
	char wire[8192]; /* what was sent: "a:REQ b:REP", (lost) in brackets */
	struct cm_listener *listener; /* of b, any address, SERVICE */
};

void
bed_init(struct bed *bed, uint32_t max_conns);
/* Proves that a and b hold nothing and wait for nothing, once their time waits are over.
 */
void
bed_fini(struct bed *bed);
/* Lets so much time pass. */
void
bed_run(struct bed *bed, uint64_t ns);
/* Until nothing is on the wire; time for the way only. */
void
bed_settle(struct bed *bed);
/* What has been sent since the last call. */
void
bed_wire(struct bed *bed, const char *want);

struct cm_path
bed_path(unsigned from);
/* A request from a (or b), with its QP. */
struct cm_request
bed_request(unsigned from, uint32_t qpn);
extern const struct cm_qp bed_qp; /* b's */
/* The next event of a side is this one. */
struct cm_event
bed_event(struct bed *bed, unsigned side, enum cm_event_type type);
void
bed_quiet(struct bed *bed, unsigned side);

struct cm_conn *
bed_connect(struct bed *bed);
/* To where a has REP_RCVD or both are ESTABLISHED, events fetched. */
struct cm_conn *
bed_requested(struct bed *bed, struct cm_conn **passive);
struct cm_conn *
bed_replied(struct bed *bed, struct cm_conn **passive);
struct cm_conn *
bed_established(struct bed *bed, struct cm_conn **passive);

/* A message from outside. */
enum cm_drop
bed_give(struct bed *bed, unsigned to, const struct mad *mad);
/* The next message of a side, instead of the wire; fails when there is none. */
struct mad
bed_take(struct bed *bed, unsigned from);

#endif
