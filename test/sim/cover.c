/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "wire/hdr.h"
#include "wire/opcode.h"

#include "cover.h"
#include "gen.h"
#include "link.h"
#include "print.h"

struct cover cover;

void
cover_frame(const uint8_t *data, uint32_t len)
{
	const struct bth *bth = frame_bth(data, len);
	uint8_t s;

	cover.frames++;
	if (bth == NULL)
		return;
	cover.opcode[bth->opcode]++;
	if ((op_rows[bth->opcode].hdrs & HDR_AETH) == 0)
		return;
	s = ((const struct aeth *)(bth + 1))->syndrome;
	if ((s & AETH_TYPE_MASK) == AETH_TYPE_ACK)
		cover.syndrome[0]++;
	else if ((s & AETH_TYPE_MASK) == AETH_TYPE_RNR)
		cover.syndrome[1]++;
	else if (s >= AETH_NAK_SEQ && s <= AETH_NAK_REM_OP)
		cover.syndrome[2 + s - AETH_NAK_SEQ]++;
	else
		cover.syndrome[6]++;
}

void
cover_state(unsigned qp_type, unsigned from, unsigned to)
{
	unsigned service = qp_type == IBV_QPT_RC ? 0 : qp_type == IBV_QPT_UC ? 1 : 2;

	cover.state[service][from][to]++;
}

/* Every member is a counter. */
void
cover_add(struct cover *sum, const struct cover *one)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)one;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

/* ---- The table ---- */

static unsigned missing;
static bool print_all;

static void
print_row(const char *what, const char *name, uint64_t count, bool must)
{
	missing += must && count == 0;
	if (print_all || (must && count == 0))
		printf("# %-12s %-32s %12" PRIu64 "%s\n", what, name, count,
			must && count == 0 ? "  NEVER" : "");
}

static void
print_opcodes(const struct cover *c)
{
	for (unsigned i = 0; i < 256; i++) {
		if (op_rows[i].kind != OP_UNKNOWN)
			print_row("opcode", opcode_name((uint8_t)i), c->opcode[i], true);
	}
}

/* Drop reasons that no seed can produce, and why. */
static const struct {
	unsigned drop;
	const char *why;
} never[] = {
	{DROP_handoff_full, "the engines run alternately: no 1024 frames gather"},
	{DROP_group, "no QP joins a multicast group"},
	{DROP_membership_rate, "fewer queries are sent than the rate allows"},
	{DROP_ext_limit, "fewer queries are sent than the rate allows"},
	{DROP_ext_format, "the adversary sends no datagrams to QP 1"},
	{DROP_no_resource,
		"both ends agree on the depth, and the adversary sends no such burst"},
};

static bool
drop_happens(unsigned drop)
{
	for (size_t i = 0; i < RTE_DIM(never); i++) {
		if (never[i].drop == drop)
			return false;
	}
	return true;
}

static void
print_drops(const struct cover *c)
{
	static const char *const names[] = {
#define DROP(name, text) #name,
#include "base/base_stats.def"
	};

	for (unsigned i = 1; i < DROP_COUNT; i++)
		print_row("drop", names[i], c->drop[i], drop_happens(i));
}

/* Rows of the transition table for the services of the simulation, and transitions
 * without a row. */
static bool
state_happens(unsigned service, unsigned from, unsigned to)
{
	static const struct {
		uint16_t types;
		uint8_t from, to;
	} rows[] = {
#define T(type) (1u << IBV_QPT_##type)
#define TRANSITION(types, from, to, required, optional)                                  \
	{types, IBV_QPS_##from, IBV_QPS_##to},
#include "qp/transition.def"
	};
	static const uint8_t types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return from != to && from <= IBV_QPS_ERR &&
		       (from != IBV_QPS_SQE || service != 0);
	if (from == IBV_QPS_RTS && to == IBV_QPS_SQE)
		return service != 0;
	for (size_t i = 0; i < RTE_DIM(rows); i++) {
		if ((rows[i].types >> types[service] & 1) != 0 && rows[i].from == from &&
			rows[i].to == to)
			return true;
	}
	return false;
}

static void
print_states(const struct cover *c)
{
	static const char *const services[] = {"RC", "UC", "UD"};
	static const char *const states[] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR", "?"};
	char name[64];

	for (unsigned s = 0; s < COVER_SERVICES; s++) {
		for (unsigned i = 0; i < COVER_STATES * COVER_STATES; i++) {
			unsigned from = i / COVER_STATES, to = i % COVER_STATES;

			snprintf(name, sizeof(name), "%s %s -> %s", services[s],
				states[from], states[to]);
			if (state_happens(s, from, to) || c->state[s][from][to] != 0)
				print_row("state", name, c->state[s][from][to],
					state_happens(s, from, to));
		}
	}
}

/* Request types by service, counted when they succeed. FLUSH is missing: rdma-core
 * supports it from version 45 on. */
static const struct {
	uint8_t op;
	bool window; /* may go through a window, or binds or invalidates one */
	bool uc, ud;
	const char *name;
} requests[] = {
	{IBV_WR_SEND, false, true, true, "SEND"},
	{IBV_WR_SEND_WITH_IMM, false, true, true, "SEND_WITH_IMM"},
	{IBV_WR_SEND_WITH_INV, true, false, false, "SEND_WITH_INV"},
	{IBV_WR_RDMA_WRITE, true, true, false, "RDMA_WRITE"},
	{IBV_WR_RDMA_WRITE_WITH_IMM, true, true, false, "RDMA_WRITE_WITH_IMM"},
	{IBV_WR_RDMA_READ, true, false, false, "RDMA_READ"},
	{IBV_WR_ATOMIC_CMP_AND_SWP, true, false, false, "ATOMIC_CMP_AND_SWP"},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, true, false, false, "ATOMIC_FETCH_AND_ADD"},
	{IBV_WR_ATOMIC_WRITE, true, false, false, "ATOMIC_WRITE"},
	{IBV_WR_LOCAL_INV, true, false, false, "LOCAL_INV"},
	{IBV_WR_BIND_MW, true, false, false, "BIND_MW"},
};

static void
print_requests(const struct cover *c)
{
	for (size_t i = 0; i < RTE_DIM(requests); i++) {
		unsigned op = requests[i].op;

		print_row(
			"request RC", requests[i].name, c->request[IBV_QPT_RC][op], true);
		/* An XRC target binds no window that a SEND could invalidate. */
		if (op != IBV_WR_SEND_WITH_INV && op != IBV_WR_ATOMIC_WRITE)
			print_row("request XRC", requests[i].name,
				c->request[IBV_QPT_XRC_RECV][op], true);
		if (requests[i].uc)
			print_row("request UC", requests[i].name,
				c->request[IBV_QPT_UC][op], true);
		if (requests[i].ud)
			print_row("request UD", requests[i].name,
				c->request[IBV_QPT_UD][op], true);
		if (requests[i].window)
			print_row("window", requests[i].name, c->window[op], true);
	}
	print_row("SRQ", "shared by XRC targets", c->xrc_shared, true);
	print_row("type 1", "bound", c->type1[0], true);
	print_row("type 1", "unbound", c->type1[1], true);
	print_row("window", "key refused", c->stale_keys, true);
	print_row("CNP", "sent", c->cnp_sent, true);
	print_row("CNP", "received", c->cnp_received, true);
	print_row("loss", "selective acknowledgement", c->sack_received, true);
	print_row("loss", "resent alone", c->resent_few, true);
	print_row("loss", "held packets dropped", c->hold_evicted, true);
	print_row("paths", "other than the first", c->spread, true);
	print_row("stream", "acknowledgement waits", c->ack_coalesced, true);
	print_row("paths", "moved", c->paths_moved, true);
	print_row("loss", "READ response placed behind a missing one", c->read_placed,
		true);
	print_row("loss", "missing range of a READ requested again", c->read_repeated,
		true);
	print_row("congestion", "window cut by delay", c->cc_cut_delay, true);
	print_row("congestion", "window cut by loss", c->cc_cut_loss, true);
	print_row("congestion", "window cut by CNP", c->cc_cut_cnp, true);
	print_row("congestion", "wait below one packet", c->cc_waits, true);
}

static bool
status_happens(unsigned status)
{
	static const uint8_t some[] = {IBV_WC_SUCCESS, IBV_WC_LOC_LEN_ERR,
		IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_MW_BIND_ERR,
		IBV_WC_WR_FLUSH_ERR, IBV_WC_BAD_RESP_ERR, IBV_WC_REM_INV_REQ_ERR,
		IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR,
		IBV_WC_RNR_RETRY_EXC_ERR};

	return memchr(some, (int)status, sizeof(some)) != NULL;
}

static bool
event_happens(unsigned event)
{
	static const uint8_t some[] = {IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL,
		IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_COMM_EST,
		IBV_EVENT_SQ_DRAINED, IBV_EVENT_SRQ_LIMIT_REACHED,
		IBV_EVENT_QP_LAST_WQE_REACHED};

	return memchr(some, (int)event, sizeof(some)) != NULL;
}

unsigned
cover_print(const struct cover *c, bool all)
{
	static const char *const syndromes[] = {"ACK", "RNR NAK", "NAK sequence",
		"NAK invalid request", "NAK access", "NAK remote operation", "reserved"};

	missing = 0;
	print_all = all;
	print_opcodes(c);
	for (unsigned i = 0; i < COVER_SYNDROMES; i++)
		print_row("AETH", syndromes[i], c->syndrome[i], true);
	print_requests(c);
	print_drops(c);
	print_states(c);
	for (unsigned i = 0; i < COVER_WC; i++)
		print_row("completion", ibv_wc_status_str((enum ibv_wc_status)i),
			c->status[i], status_happens(i));
	for (unsigned i = 0; i < COVER_EVENTS; i++) {
		if (c->event[i] != 0 || event_happens(i))
			print_row("event", ibv_event_type_str((enum ibv_event_type)i),
				c->event[i], event_happens(i));
	}
	for (unsigned i = 0; i < GEN_COUNT; i++)
		print_row("operation", gen_texts[i], c->op[i], true);
	return missing;
}
