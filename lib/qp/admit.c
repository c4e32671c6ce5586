/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Decides whether a QP accepts a packet (IBA 9.6.1.2 to 9.6.1.4). */
#include <string.h>

#include "qp/qp_state.h"
#include "qp/transport.h"

/* States that accept requests, and states that accept responses (IBA 10.3.1). */
#define BIT(state) (1u << IBV_QPS_##state)
#define REQUEST_STATES (BIT(RTR) | BIT(RTS) | BIT(SQD) | BIT(SQE))
#define RESPONSE_STATES (BIT(RTS) | BIT(SQD))

static bool
state_takes(const struct qp *qp, const struct op_row *op)
{
	unsigned states = op_is_response(op) ? RESPONSE_STATES : REQUEST_STATES;

	return (states >> qp->state & 1) != 0;
}

/* True if the packet's source is the peer and its destination the local address of the
 * path: the addresses of the header template, swapped (IBA annex A17.4.3). */
static bool
address_fits(const struct qp *qp, const struct pkt_view *v)
{
	const uint8_t *own = qp->hdr.bytes + qp->hdr.l3_off;
	uint64_t theirs, ours;

	if (unlikely(v->ip_version != qp->hdr.ip_version))
		return false;
	if (unlikely(v->ip_version == 6))
		return memcmp(v->ip + 8, own + 24, 16) == 0 &&
		       memcmp(v->ip + 24, own + 8, 16) == 0;
	/* Compare source and destination as one word. */
	memcpy(&theirs, v->ip + 12, sizeof(theirs));
	memcpy(&ours, own + 12, sizeof(ours));
	return theirs == (ours << 32 | ours >> 32);
}

/* True if the low 15 bits are equal and not zero, and one side at least is a full member
 * (IBA 10.9.3). */
static bool
pkey_fits(uint16_t ours, uint16_t theirs)
{
	return ((ours ^ theirs) & 0x7FFF) == 0 && (ours | theirs) > 0x8000;
}

/* Initiators accept responses only, targets requests only (annex A14). */
static bool
xrc_takes(const struct qp *qp, const struct op_row *op)
{
	return op_is_response(op) == (qp->type == IBV_QPT_XRC_SEND);
}

enum drop_reason
qp_admit_cnp(const struct qp *qp, const struct pkt_view *v)
{
	if (qp->type == IBV_QPT_UD)
		return DROP_cnp;
	if ((RESPONSE_STATES >> qp->state & 1) == 0)
		return DROP_qp_state;
	return address_fits(qp, v) ? DROP_none : DROP_address;
}

enum drop_reason
qp_admit_sack(const struct qp *qp, const struct pkt_view *v)
{
	if (qp->type != IBV_QPT_RC && qp->type != IBV_QPT_XRC_SEND)
		return DROP_qp_type;
	if (!state_takes(qp, v->op))
		return DROP_qp_state;
	if (!address_fits(qp, v))
		return DROP_address;
	return pkey_fits(qp->pkey, v->pkey) ? DROP_none : DROP_pkey;
}

enum drop_reason
qp_admit(const struct qp *qp, const struct pkt_view *v)
{
	bool ud = qp->type == IBV_QPT_UD;

	if (unlikely((v->opcode & OP_SERVICE_MASK) != qp->op_base))
		return DROP_qp_type;
	if (unlikely(qp->op_base == SERVICE_XRC << OP_SERVICE_SHIFT &&
		     !xrc_takes(qp, v->op)))
		return DROP_qp_type;
	if (unlikely(!state_takes(qp, v->op)))
		return DROP_qp_state;
	if (unlikely(!ud && !address_fits(qp, v)))
		return DROP_address;
	if (unlikely(!pkey_fits(qp->pkey, v->pkey)))
		return DROP_pkey;
	return unlikely(ud) ? ud_admit(qp, v) : DROP_none;
}
