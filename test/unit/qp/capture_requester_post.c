/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts what the traffic generator posted, from the words of its command, and what
 * another program must have posted, from its frames. */
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "capture_requester_fixture.h"

#define CLIENT_TARGET 0x10080000
#define SERVER_TARGET 0x20080000

/* R_Key of the next request frame with these headers. The flags k, o and m of the command
 * change it. */
static uint32_t
next_rkey_find(unsigned hdrs, uint64_t va)
{
	struct pkt_view v;

	for (unsigned i = next_frame; i < replay.file.count; i++) {
		const struct reth *reth;

		if (!replay_view(&replay, i, &v) || !is_request(&v) ||
			(v.op->hdrs & hdrs) == 0)
			continue;
		/* va and rkey of an AtomicETH are in the same place */
		reth = view_reth(&v);
		if (hdrs == HDR_IETH)
			return rte_be_to_cpu_32(view_imm_be(&v));
		if (rte_be_to_cpu_64(reth->va) == va)
			return rte_be_to_cpu_32(reth->rkey);
	}
	return server_rkey;
}

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	unsigned hdrs;
} operations[] = {
	{"sendinv:", IBV_WR_SEND_WITH_INV, HDR_IETH},
	{"sendimm:", IBV_WR_SEND_WITH_IMM, 0},
	{"send:", IBV_WR_SEND, 0},
	{"writeimm:", IBV_WR_RDMA_WRITE_WITH_IMM, HDR_RETH},
	{"write:", WR_RDMA_WRITE, HDR_RETH},
	{"read:", IBV_WR_RDMA_READ, HDR_RETH},
	{"cas:", IBV_WR_ATOMIC_CMP_AND_SWP, HDR_ATOMIC},
	{"fadd:", IBV_WR_ATOMIC_FETCH_AND_ADD, HDR_ATOMIC},
};

static void
request_numbers(struct send_req *req, struct sge *sge, const uint64_t n[3])
{
	uint64_t offset = n[1];

	sge->len = (uint32_t)n[0];
	if (req->opcode == IBV_WR_SEND_WITH_IMM)
		req->imm = rte_cpu_to_be_32((uint32_t)n[1]);
	if (req->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		req->imm = rte_cpu_to_be_32((uint32_t)n[2]);
	if (req->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		req->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		offset = n[0];
		sge->len = 8;
		req->compare_add = n[1];
		req->swap = n[2];
	}
	req->num_sge = sge->len != 0;
	req->remote_va = offset;
}

bool
word_post(const char *word)
{
	struct sge sge = host_sge(&p.a, REPLAY_SLOT * posted, 0);
	struct ud_dest dest = {.hop_limit = 64};
	struct send_req req = {
		.wr_id = posted + 1, .flags = IBV_SEND_SIGNALED, .sge = &sge};
	const char *flags = strchr(word, ',');
	uint64_t n[3] = {0};
	unsigned op = 0;

	while (op < RTE_DIM(operations) &&
		strncmp(word, operations[op].name, strlen(operations[op].name)) != 0)
		op++;
	if (op == RTE_DIM(operations))
		return false;
	req.opcode = operations[op].opcode;
	word = strchr(word, ':');
	for (unsigned i = 0; i < 3 && word != NULL; i++, word = strchr(word + 1, ':'))
		n[i] = strtoull(word + 1, NULL, 0);
	request_numbers(&req, &sge, n);
	if (operations[op].hdrs == HDR_IETH) {
		req.imm = rte_cpu_to_be_32(next_rkey_find(HDR_IETH, 0));
	} else if (operations[op].hdrs != 0) {
		/* The peer of a script has the client's target area. */
		req.remote_va += p.a.qp.dest_qpn == 0x777 ? CLIENT_TARGET : SERVER_TARGET;
		req.rkey = next_rkey_find(operations[op].hdrs, req.remote_va);
	}
	if (flags != NULL && strchr(flags, 's') != NULL)
		req.flags |= IBV_SEND_SOLICITED;
	if (flags != NULL && strchr(flags, 'f') != NULL)
		req.flags |= IBV_SEND_FENCE;
	if (flags != NULL && strchr(flags, 'u') != NULL)
		req.flags &= ~(unsigned)IBV_SEND_SIGNALED;
	if (flags != NULL && strchr(flags, 'i') != NULL)
		req.flags |= IBV_SEND_INLINE;
	if (flags != NULL && strchr(flags, 'l') != NULL)
		sge.lkey ^= 0x5A;
	if (run.type == IBV_QPT_UD) {
		dest.qpn = mcast ? PSN_MASK : first_request.dest_qpn;
		dest.qkey = flags != NULL && strchr(flags, 'q') != NULL ? 0x22222222
									: 0x11111111;
		req.dest = &dest;
	}
	replay_payload(p.a.mem + REPLAY_SLOT * posted, posted, sge.len);
	assert_int_equal(host_post_send(&p.a, &req), 0);
	posted++;
	return true;
}

static const enum ibv_wr_opcode opcode_of_kind[] = {[OP_SEND] = IBV_WR_SEND,
	[OP_WRITE] = WR_RDMA_WRITE,
	[OP_READ] = IBV_WR_RDMA_READ,
	[OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD};

bool
is_program_request(const struct capture_case *entry, unsigned frame, struct pkt_view *v)
{
	return replay_view(&replay, frame, v) && !op_is_response(v->op) &&
	       v->dest_qpn == entry->qpn;
}

void
message_post(const struct capture_case *entry, unsigned frame)
{
	uint8_t *at = p.a.mem + REPLAY_SLOT * posted;
	struct sge sge = host_sge(&p.a, REPLAY_SLOT * posted, 0);
	struct ud_dest dest = {.hop_limit = 64, .qpn = entry->qpn};
	struct send_req req = {
		.wr_id = posted + 1, .flags = IBV_SEND_SIGNALED, .sge = &sge};
	struct pkt_view v;

	for (;; frame++) {
		if (!is_program_request(entry, frame, &v))
			continue;
		/* va and rkey of an AtomicETH are in the same place */
		if (op_is_first(v.op) && v.op->hdrs & (HDR_RETH | HDR_ATOMIC)) {
			req.remote_va = rte_be_to_cpu_64(view_reth(&v)->va);
			req.rkey = rte_be_to_cpu_32(view_reth(&v)->rkey);
		}
		if (v.op->hdrs & HDR_DETH)
			dest.qkey = rte_be_to_cpu_32(view_deth(&v)->qkey);
		memcpy(at + sge.len, v.payload, v.payload_len);
		sge.len += v.payload_len;
		if (v.op->kind == OP_READ)
			sge.len = rte_be_to_cpu_32(view_reth(&v)->len);
		if (v.op->kind == OP_FETCH_ADD) {
			const struct atomic_eth *eth = (const void *)view_reth(&v);

			sge.len = 8;
			req.compare_add = rte_be_to_cpu_64(eth->swap_add);
		}
		if (op_is_last(v.op))
			break;
	}
	req.opcode = opcode_of_kind[v.op->kind];
	if (v.op->hdrs & HDR_IMM) {
		req.opcode = v.op->kind == OP_SEND ? IBV_WR_SEND_WITH_IMM
						   : IBV_WR_RDMA_WRITE_WITH_IMM;
		req.imm = view_imm_be(&v);
	}
	req.flags |= v.solicited ? IBV_SEND_SOLICITED : 0;
	req.num_sge = sge.len != 0;
	req.dest = run.type == IBV_QPT_UD ? &dest : NULL;
	assert_int_equal(host_post_send(&p.a, &req), 0);
	posted++;
}
