/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* The record of a QP's last events (flight.h), which processes also pass to each other. */
#ifndef ROCADE_QP_FLIGHT_RECORD_H
#define ROCADE_QP_FLIGHT_RECORD_H

#include <assert.h>
#include <stdint.h>

#define FLIGHT_EVENTS 256

enum flight_kind {
#define FLIGHT(name, text) FLIGHT_##name,
#include "qp/flight.def"
	FLIGHT_KINDS
};

struct flight_event {
	uint64_t when; /* ns << 8 | enum flight_kind */
	uint32_t psn;
	uint32_t value; /* by kind, see flight.def */
};
static_assert(FLIGHT_KINDS <= 256 && sizeof(struct flight_event) == 16,
	"a QP's record takes about 4 KiB");

struct flight {
	uint64_t count; /* of all events; the last FLIGHT_EVENTS are kept */
	struct flight_event events[FLIGHT_EVENTS];
};

/* A record with what names the QP: what is printed. */
struct flight_copy {
	uint64_t asked; /* ns, when the copy was asked for; 0: the QP has entered ERR */
	uint32_t qpn, dest_qpn;
	uint8_t type; /* enum ibv_qp_type */
	struct flight flight;
};

/* flight_text.c: calls fn for each line of text, the first of which is a heading. The copy may
 * come from another process, and have any bytes. */
typedef void (*flight_line_fn)(const char *line, void *arg);
void flight_print(const struct flight_copy *copy, flight_line_fn fn, void *arg);

#endif
