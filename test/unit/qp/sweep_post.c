/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the messages of the sweep, and updates the model of the memory after their
 * execution. */
#include <endian.h>
#include <string.h>

#include "sweep_fixture.h"

#define FETH_GLOBAL 1

/* SENDs are as probable as several other operations together. */
static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM, WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_SEND_WITH_INV, IBV_WR_ATOMIC_WRITE, WR_FLUSH, IBV_WR_BIND_MW,
	IBV_WR_LOCAL_INV};

bool
chance(unsigned of_thousand)
{
	return rand_below(&s.rand, 1000) < of_thousand;
}

static uint32_t
len_choose(void)
{
	uint32_t mtu = mtu_bytes(s.link.conf.mtu);

	switch (rand_below(&s.rand, 4)) {
	case 0:
		return (uint32_t)rand_magnitude(&s.rand, 13) % (MSG_BYTES + 1);
	case 1:
		return (uint32_t)RTE_MIN(
			mtu * rand_below(&s.rand, 4) + rand_below(&s.rand, 3),
			(uint64_t)MSG_BYTES);
	case 2:
		return (uint32_t)rand_below(&s.rand, 300);
	default:
		return (uint32_t)rand_below(&s.rand, MSG_BYTES + 1);
	}
}

/* Cuts [offset, offset + len) into up to 4 SGEs; returns their number. */
static unsigned
list_cut(struct sge *list, const struct host *h, uint32_t offset, uint32_t len,
	uint32_t key)
{
	unsigned n = 0;

	while (n < 3 && len > 1 && chance(400)) {
		uint32_t part = (uint32_t)rand_below(&s.rand, len);

		list[n] = host_sge(h, offset, part);
		list[n++].lkey = key;
		offset += part;
		len -= part;
	}
	if (len != 0 || n != 0) {
		list[n] = host_sge(h, offset, len);
		list[n++].lkey = key;
	}
	return n;
}

uint32_t
key_of(const struct flow *f, unsigned message)
{
	return message * 2 + (f == &s.flow[1]);
}

uint8_t *
slot_at(const struct host *h, unsigned kind, unsigned i)
{
	return h->mem + (size_t)(kind * SLOTS + i % SLOTS) * SLOT_BYTES;
}

uint64_t *
word_at(const struct host *h, unsigned i)
{
	return (uint64_t *)(void *)(h->mem + 3 * SLOTS * SLOT_BYTES) + i % WORDS;
}

/* Executes the atomic in the model, in the order of posting, once. */
static void
model_atomic(struct flow *f, unsigned i, struct send_req *req)
{
	uint64_t *word = &f->word[i % WORDS];

	f->msg[i].len = 8;
	f->msg[i].value = *word;
	req->remote_va = (uintptr_t)word_at(f->to, i);
	if (req->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		req->compare_add = rand_next(&s.rand);
		*word += req->compare_add;
		return;
	}
	req->compare_add = chance(600) ? *word : rand_next(&s.rand);
	req->swap = rand_next(&s.rand);
	if (req->compare_add == *word)
		*word = req->swap;
}

/* Returns true for a local operation. The choice of bind or invalidate follows from the
 * one before. */
static bool
model_local(struct flow *f, struct send_req *req)
{
	if (req->opcode != IBV_WR_BIND_MW && req->opcode != IBV_WR_LOCAL_INV)
		return false;
	req->opcode = f->local_mw_bound ? IBV_WR_LOCAL_INV : IBV_WR_BIND_MW;
	if (!f->local_mw_bound)
		f->local_mw_rkey = ibv_inc_rkey(f->local_mw_rkey);
	f->local_mw_bound = !f->local_mw_bound;
	req->rkey = f->local_mw_rkey;
	req->remote_va = (uintptr_t)f->from->mem;
	req->bind_len = 100;
	req->bind_parent = f->from_region;
	req->bind_access = ACCESS_REMOTE;
	return true;
}

/* Binds a memory window of `to`, which message i invalidates. */
static void
model_invalidate(struct flow *f, unsigned i, struct send_req *req)
{
	struct mw *w = host_mw(f->to, true);
	struct mw_bind bind = {
		w->rkey, f->to_region, (uintptr_t)f->to->mem, 100, ACCESS_REMOTE};

	assert_int_equal(mw_bind(&f->to->keys, f->to->qp.pd, f->to->qp.qpn,
				 &f->to->qp.sq.bound_mws, &bind),
		0);
	f->msg[i].mw = w;
	req->imm = htobe32(w->rkey);
}

/* Prepares local and remote memory for message i. */
static void
message_prepare(struct flow *f, unsigned i, struct send_req *req)
{
	uint8_t *local = slot_at(f->from, 0, i), *remote = slot_at(f->to, 2, i);
	uint32_t mtu = mtu_bytes(s.link.conf.mtu), packets;
	unsigned depth = s.link.conf.max_rd;

	if (model_local(f, req)) {
		f->msg[i].len = 0;
		return;
	}
	if (req->opcode == IBV_WR_SEND_WITH_INV)
		model_invalidate(f, i, req);
	if (req->opcode == IBV_WR_ATOMIC_WRITE)
		f->msg[i].len = 8;
	req->rkey = f->to->rkey;
	if (chance(200) && req->opcode != WR_FLUSH && !qp_link_is_xrc(&s.link))
		req->rkey = f->memory_mw->rkey;
	req->remote_va = (uintptr_t)remote;
	memset(local, UNTOUCHED, SLOT_BYTES);
	f->requests++;
	if (req->opcode == WR_FLUSH) {
		req->len = f->msg[i].len;
		req->imm = htobe32(FETH_GLOBAL);
		return;
	}
	if (req->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		req->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		model_atomic(f, i, req);
		return;
	}
	memset(remote, UNTOUCHED, SLOT_BYTES);
	bytes_fill(req->opcode == IBV_WR_RDMA_READ ? remote : local, f->msg[i].len,
		key_of(f, i));
	packets = (f->msg[i].len + mtu - 1) / mtu;
	if (req->opcode == IBV_WR_RDMA_READ && packets != 0)
		f->requests += (packets - 1) / (depth < 2 ? 128 : depth < 4 ? 64 : 32);
}

static unsigned
flags_choose(const struct flow *f, unsigned i)
{
	bool data = f->msg[i].op != IBV_WR_RDMA_READ &&
		    f->msg[i].op != IBV_WR_ATOMIC_CMP_AND_SWP &&
		    f->msg[i].op != IBV_WR_ATOMIC_FETCH_AND_ADD &&
		    f->msg[i].op != IBV_WR_BIND_MW && f->msg[i].op != IBV_WR_LOCAL_INV &&
		    f->msg[i].op != WR_FLUSH;

	return (f->msg[i].signaled ? (unsigned)IBV_SEND_SIGNALED : 0) |
	       (chance(100) ? (unsigned)IBV_SEND_FENCE : 0) |
	       (data && f->msg[i].len <= 512 && chance(300) ? (unsigned)IBV_SEND_INLINE
							    : 0);
}

static unsigned op_seen[256]; /* by IBV_WR_*, in all seeds together */

/* Annex A19 applies to RC only. An XRC target binds no memory window that could be
 * invalidated. */
static bool
rc_only(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_ATOMIC_WRITE ||
	       opcode == WR_FLUSH;
}

void
post_send(struct flow *f)
{
	unsigned i = f->posted;
	const struct sq *sq = &f->from->qp.sq;
	struct sge list[4];
	struct send_req req = {.wr_id = i, .sge = list};

	if (sq->prod - sq->freed == sq->max_wr) /* the slot is still in use */
		return;
	req.opcode = ops[rand_below(&s.rand, RTE_DIM(ops))];
	if (qp_link_is_xrc(&s.link) && rc_only(req.opcode))
		req.opcode = IBV_WR_SEND;
	f->msg[i].op = (uint8_t)req.opcode;
	f->msg[i].len = len_choose();
	req.imm = i ^ 0x5A5A5A5A;
	f->msg[i].signaled =
		i + 1 == f->total || s.link.conf.sig_all ||
		(f->signaled_of != 0 && rand_below(&s.rand, f->signaled_of) == 0) ||
		i % 32 == 31; /* otherwise the SQ fills up for good */
	f->msg[i].imm = req.opcode == IBV_WR_SEND_WITH_IMM ||
			req.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	if (f->msg[i].imm || req.opcode == IBV_WR_SEND ||
		req.opcode == IBV_WR_SEND_WITH_INV)
		f->recv_msg[f->recv_msg_count++] = (uint8_t)i;
	message_prepare(f, i, &req);
	f->msg[i].op = (uint8_t)req.opcode;
	if (req.opcode != WR_FLUSH)
		req.num_sge = list_cut(list, f->from,
			(uint32_t)(slot_at(f->from, 0, i) - f->from->mem), f->msg[i].len,
			f->from->lkey);
	req.flags = flags_choose(f, i);
	assert_int_equal(host_post_send(f->from, &req), 0);
	op_seen[f->msg[i].op]++;
	f->posted++;
}

void
post_recv(struct flow *f)
{
	unsigned i = f->received;
	uint32_t offset = (SLOTS + i % SLOTS) * SLOT_BYTES;
	struct sge list[4];
	unsigned n;

	if (i - f->recv_done == SLOTS) /* the slot is still in use */
		return;
	n = list_cut(list, f->to, offset, MSG_BYTES, f->to->recv_key);
	memset(f->to->mem + offset, UNTOUCHED, SLOT_BYTES);
	if (host_post_recv(f->to, i, list, n) == 0)
		f->received++;
}

bool
ops_all_seen(void)
{
	for (unsigned i = 0; i < RTE_DIM(ops); i++) {
		if (op_seen[(uint8_t)ops[i]] == 0)
			return false;
	}
	return true;
}
