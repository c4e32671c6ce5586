/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* The record of a QP as text: a line each event, with the time since the event before it. */
#include <inttypes.h>
#include <stdio.h>

#include "qp/cc.h"
#include "qp/flight.h"
#include "qp/qp_state.h"

#define LINE_BYTES 200

static const char *const flight_texts[] = {
#define FLIGHT(name, text) text,
#include "qp/flight.def"
};

static const char *const opcode_names[256] = {
#define OPCODE(value, name, service, kind, pos, hdrs) [value] = #name,
#include "wire/opcode.def"
};

static const char *const state_names[] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

struct fault_name {
	const char *name;
	uint8_t vendor; /* enum qp_vendor_err */
};

static const struct fault_name fault_names[] = {
#define FAULT(name, syndrome, status, vendor) [FAULT_##name] = {#name, vendor},
#define SEND_FAULT(name, status, vendor) [FAULT_##name] = {#name, vendor},
#include "qp/fault.def"
	[FAULT_SEND_CQ_FULL] = {"SEND_CQ_FULL", VENDOR_NONE},
};

static const char *const vendor_texts[] = {
#define VENDOR_TEXT(name, text) text,
	QP_VENDOR_ERRS(VENDOR_TEXT)
#undef VENDOR_TEXT
};

/* A line under construction; what does not fit is left out. */
struct text {
	char bytes[LINE_BYTES];
	size_t len;
};

static void text_add(struct text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void
text_add(struct text *t, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(t->bytes + t->len, sizeof(t->bytes) - t->len, format, args);
	va_end(args);
	if (len > 0)
		t->len = RTE_MIN(t->len + (size_t)len, sizeof(t->bytes) - 1);
}

static void
time_add(struct text *t, uint64_t ns)
{
	if (ns < 10 * NS_PER_US)
		text_add(t, "%.2f us", (double)ns / NS_PER_US);
	else if (ns < NS_PER_MS)
		text_add(t, "%.0f us", (double)ns / NS_PER_US);
	else if (ns < NS_PER_SEC)
		text_add(t, "%.2f ms", (double)ns / NS_PER_MS);
	else
		text_add(t, "%.3f s", (double)ns / NS_PER_SEC);
}

static const char *
name_at(const char *const *names, size_t count, uint32_t index)
{
	return index < count && names[index] != NULL ? names[index] : "unknown";
}

/* rnr_nak() has packed the timer's code, the try, and how many there are. */
static void
rnr_add(struct text *t, uint32_t value)
{
	text_add(t, "wait ");
	time_add(t, rnr_timer_ns[value & 31]);
	if (value >> 16 == 7)
		text_add(t, ", tries without end");
	else
		text_add(t, ", try %" PRIu32 " of %" PRIu32, value >> 8 & 0xFF,
			value >> 16);
}

static void
fault_add(struct text *t, uint32_t fault)
{
	const struct fault_name *row = &fault_names[0];

	if (fault < RTE_DIM(fault_names))
		row = &fault_names[fault];
	text_add(t, "%s: %s", row->name != NULL ? row->name : "unknown",
		vendor_texts[row->vendor]);
}

static void
packets_add(struct text *t, uint32_t cwnd)
{
	text_add(t, "%" PRIu32 ".%02" PRIu32, cwnd >> CC_SHIFT,
		cwnd % CC_ONE * 100 / CC_ONE);
}

static void
number_add(struct text *t, char what, const struct flight_event *e)
{
	uint32_t n = e->value;

	if (what == 'p')
		n = e->psn;
	else if (what == 'l')
		n = psn_add(e->psn, e->value - 1);
	else if (what == 'b')
		n = e->value & 0xFFFF;
	else if (what == 'h')
		n = e->value >> 16;
	else if (what == 'n')
		n = e->value >> 8;
	text_add(t, "%" PRIu32, n);
}

/* what: the letter behind the % in flight.def. */
static void
field_add(struct text *t, char what, const struct flight_event *e)
{
	switch (what) {
	case 't':
		time_add(t, e->value);
		break;
	case 'o':
		text_add(t, "%s", name_at(opcode_names, 256, e->value & 0xFF));
		break;
	case 'd':
		text_add(t, "%s",
			e->value < DROP_COUNT
				? port_stat_rows[PORT_STAT_COUNT - DROP_COUNT + e->value]
					  .text
				: "unknown");
		break;
	case 's':
	case 'S':
		text_add(t, "%s",
			name_at(state_names, RTE_DIM(state_names),
				what == 's' ? e->value & 0xFFFF : e->value >> 16));
		break;
	case 'f':
		fault_add(t, e->value);
		break;
	case 'r':
		rnr_add(t, e->value);
		break;
	case 'w':
		packets_add(t, e->value);
		break;
	default:
		number_add(t, what, e);
	}
}

static void
event_add(struct text *t, const struct flight_event *e)
{
	const char *at = name_at(flight_texts, FLIGHT_KINDS, e->when & 0xFF);

	for (; *at != '\0'; at++) {
		if (*at == '%')
			field_add(t, *++at, e);
		else
			text_add(t, "%c", *at);
	}
}

/* Begins a line. */
static void
since_add(struct text *t, uint64_t before, uint64_t when)
{
	t->len = 0;
	text_add(t, "+");
	time_add(t, when > before ? when - before : 0);
	text_add(t, ": ");
}

void
flight_print(const struct flight_copy *copy, flight_line_fn fn, void *arg)
{
	const struct flight *f = &copy->flight;
	uint64_t at = f->count > FLIGHT_EVENTS ? f->count - FLIGHT_EVENTS : 0;
	uint64_t before = f->events[at % FLIGHT_EVENTS].when >> 8;
	struct text t = {.len = 0};

	text_add(&t, "QP 0x%06" PRIx32, copy->qpn);
	if (copy->dest_qpn != 0)
		text_add(&t, " to 0x%06" PRIx32, copy->dest_qpn);
	text_add(&t, ": the last %" PRIu64 " of %" PRIu64 " events", f->count - at,
		f->count);
	fn(t.bytes, arg);
	for (; at != f->count; at++) {
		const struct flight_event *e = &f->events[at % FLIGHT_EVENTS];

		since_add(&t, before, e->when >> 8);
		event_add(&t, e);
		before = e->when >> 8;
		fn(t.bytes, arg);
	}
	if (copy->asked != 0) {
		since_add(&t, f->count != 0 ? before : copy->asked, copy->asked);
		text_add(&t, "now");
		fn(t.bytes, arg);
	}
}
