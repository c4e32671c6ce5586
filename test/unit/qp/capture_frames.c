/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells the requests of a capture from the responses, and compares our responses with the
 * kernel's. */
#include <string.h>

#include "capture_fixture.h"

uint32_t peer_qpn;
struct pkt_view first_request;

static bool
from_responder(const struct pkt_view *v)
{
	unsigned src = v->ip_version == 4 ? 12 : 8, len = v->ip_version == 4 ? 4 : 16;

	return memcmp(v->ip + src, first_request.ip + src + len, len) == 0;
}

bool
is_response(const struct capture_case *entry, const struct pkt_view *v)
{
	return from_responder(v) &&
	       (entry->qpn == 0 || (op_is_response(v->op) && v->dest_qpn == peer_qpn));
}

bool
is_request(const struct capture_case *entry, unsigned frame)
{
	struct pkt_view v;

	if (!replay_view(&replay, frame, &v))
		return entry->qpn == 0;
	if (entry->qpn == 0)
		return !from_responder(&v);
	return !from_responder(&v) && !op_is_response(v.op) && v.dest_qpn == entry->qpn;
}

enum ibv_qp_type
program_type(const struct capture_case *entry)
{
	struct pkt_view v;

	for (unsigned i = 0; i < replay.file.count; i++) {
		if (replay_view(&replay, i, &v) && v.dest_qpn == entry->qpn)
			return replay_type(&v);
	}
	fail_msg("%s: no QP 0x%x", entry->name, entry->qpn);
	return IBV_QPT_RC;
}

/* Called with a response to one of the first requests. With rdma_cm each side chooses its
 * flow label and thereby its UDP port. */
static void
peer_set(const struct capture_case *entry, const struct pkt_view *v)
{
	const uint8_t *udp = (const uint8_t *)v->bth - 8;

	peer_qpn = v->dest_qpn;
	if (entry->qpn != 0)
		run.udp_sport = (uint16_t)(udp[0] << 8 | udp[1]);
}

void
first_request_find(const struct capture_case *entry)
{
	uint32_t qpn = entry->qpn != 0 ? entry->qpn : run.qpn;
	struct pkt_view v;
	unsigned i = 0;

	while (i < replay.file.count &&
		(!replay_view(&replay, i, &first_request) ||
			op_is_response(first_request.op) ||
			(first_request.dest_qpn != qpn &&
				first_request.dest_qpn != PSN_MASK) ||
			replay_type(&first_request) != run.type))
		i++;
	assert_true(i < replay.file.count);
	peer_qpn = 0x777;
	for (; i < replay.file.count && peer_qpn == 0x777; i++) {
		if (replay_view(&replay, i, &v) && from_responder(&v) &&
			op_is_response(v.op) && psn_diff(v.psn, first_request.psn) >= 0 &&
			psn_diff(v.psn, first_request.psn) < 256)
			peer_set(entry, &v);
	}
}

/* Compares the fields of a differing response that must be equal all the same. */
static void
difference_check(const struct difference *d, const struct pkt_view *ours,
	const struct pkt_view *theirs)
{
	assert_int_equal(ours->dest_qpn, theirs->dest_qpn);
	if (d->opcode != 0) {
		assert_int_equal(ours->opcode, d->opcode);
		assert_int_equal(ours->psn, theirs->psn);
		assert_int_equal(ours->payload_len, theirs->payload_len);
		assert_memory_equal(ours->payload, theirs->payload, ours->payload_len);
		return;
	}
	assert_int_equal(ours->opcode, OPCODE_RC_ACKNOWLEDGE);
	assert_int_equal(view_aeth(ours)->syndrome, d->syndrome);
	assert_int_equal(ours->psn & 0xFF, d->psn_low);
}

static unsigned
response_compare(const struct difference *d, const struct capture_case *entry,
	unsigned number, const struct pkt_view *theirs)
{
	struct pkt_view ours;

	if (d->topic != NULL && d->syndrome == NONE)
		return 0;
	if (p.b.wire_count == 0)
		fail_msg("%s: no answer %u", entry->name, number);
	ours = wire_view(&p.b, 0);
	if (d->topic != NULL)
		difference_check(d, &ours, theirs);
	else
		replay_frames_equal(&ours, theirs);
	wire_drop(&p.b, 0);
	return 1;
}

unsigned
response_check(
	const struct capture_case *entry, unsigned number, const struct pkt_view *theirs)
{
	static const struct difference same;
	const struct difference *d = &same;

	for (unsigned i = 0; i < RTE_DIM(entry->differences); i++) {
		if (entry->differences[i].topic != NULL &&
			entry->differences[i].response == number)
			d = &entry->differences[i];
	}
	if (d->topic != NULL)
		replay_topic_check(d->topic);
	if (d->extra != 0) {
		assert_true(p.b.wire_count >= d->extra);
		assert_int_equal(wire_view(&p.b, 0).opcode, d->opcode);
		for (unsigned i = 0; i < d->extra; i++)
			wire_drop(&p.b, 0);
		return d->extra + response_compare(&same, entry, number, theirs);
	}
	return response_compare(d, entry, number, theirs);
}
