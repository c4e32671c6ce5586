/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include <rocade/flush.h>

#include "tx_op.h"
#include "verify.h"

/* One of four compare-and-swaps compares with another value than the word has, and may not change
 * it. */
static bool
cas_matches(uint64_t seed)
{
	return (seed >> 60 & 3) != 0;
}

static uint64_t
fadd_of(uint64_t seed)
{
	return seed >> 32;
}

void
tx_op_start(struct host *host)
{
	for (unsigned i = 0; i < BURST_MAX; i++)
		host->tx.wr[i].opcode = IBV_WR_SEND;
}

static void
atomic_build(struct host *host, struct conn *conn, struct ibv_send_wr *wr, uint64_t seed)
{
	const struct target_map *peer = &host->exchange.peer;
	bool cas = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	wr->wr.atomic.remote_addr =
		peer->addr + target_word(peer, (unsigned)(conn - host->conns),
				     cas ? WORD_CAS : WORD_FADD);
	wr->wr.atomic.rkey = peer->rkey;
	if (!cas) {
		wr->wr.atomic.compare_add = fadd_of(seed);
		return;
	}
	wr->wr.atomic.compare_add =
		cas_matches(seed) ? conn->cas_posted : ~conn->cas_posted;
	wr->wr.atomic.swap = seed;
	if (cas_matches(seed))
		conn->cas_posted = seed;
}

static void
rdma_build(struct host *host, struct conn *conn, struct ibv_send_wr *wr, uint64_t seed,
	uint32_t len)
{
	const struct target_map *peer = &host->exchange.peer;
	unsigned i = (unsigned)(conn - host->conns);

	wr->wr.rdma.rkey = peer->rkey;
	wr->wr.rdma.remote_addr = peer->addr;
	if (wr->opcode == IBV_WR_RDMA_READ)
		wr->wr.rdma.remote_addr += target_read(peer, seed, len);
	else
		wr->wr.rdma.remote_addr +=
			target_slot(peer, host->n_conns, i, conn->ring.posted++);
}

/* A FLUSH for global visibility, of the QP's ring or of the peer's whole region. See tx_flush.h. */
static void
flush_build(const struct host *host, const struct conn *conn, struct ibv_send_wr *wr,
	uint64_t seed)
{
	const struct target_map *peer = &host->exchange.peer;
	unsigned i = (unsigned)(conn - host->conns);
	uint64_t ring = peer->slots * peer->stride;
	bool whole = seed >> 63 != 0 || ring > UINT32_MAX;

	wr->wr.atomic.remote_addr = peer->addr + target_slot(peer, host->n_conns, i, 0);
	wr->wr.atomic.rkey = peer->rkey;
	wr->wr.atomic.compare_add = whole ? 0 : ring;
	wr->wr.atomic.swap = whole ? ROCADE_FLUSH_MR : ROCADE_FLUSH_RANGE;
}

bool
tx_op_build(struct host *host, struct conn *conn, struct ibv_send_wr *wr, uint8_t *buf,
	uint64_t msg, uint32_t *len, unsigned *flags)
{
	const struct conf *conf = host->conf;
	const struct op_row *op = &op_rows[conf->mix.order[conn->op_i]];
	bool gives = (op->flags & OP_GIVES) != 0, inlines;
	uint64_t seed = verify_seed(conn->flow_out, msg);

	if (++conn->op_i >= conf->mix.period)
		conn->op_i = 0;
	*len = (uint32_t)op_len(conf, op, conn->size_i);
	inlines = gives && *len <= conf->inline_max && conf->inline_max != 0;
	*flags = inlines ? IBV_SEND_INLINE : 0;
	if (gives && !conf->no_verify)
		verify_fill(buf, *len, seed);
	wr->opcode = op->opcode;
	if ((op->flags & OP_INV) != 0)
		wr->invalidate_rkey = mws_use(host, conn);
	else
		wr->imm_data = htobe32((uint32_t)seed);
	if (conf->type == TYPE_UD) {
		wr->wr.ud.ah = host->exchange.ah;
		wr->wr.ud.remote_qpn = conn->peer_qpn;
		wr->wr.ud.remote_qkey = UD_QKEY;
	}
	wr->qp_type.xrc.remote_srqn = host->exchange.peer_srqn;
	if ((op->flags & OP_RING) != 0 || op->opcode == IBV_WR_RDMA_READ)
		rdma_build(host, conn, wr, seed, *len);
	else if ((op->flags & OP_WORD) != 0)
		atomic_build(host, conn, wr, seed);
	else if (op->opcode == (enum ibv_wr_opcode)ROCADE_WR_FLUSH)
		flush_build(host, conn, wr, seed);
	return host->exchange.ring && tx_op_room(host, conn) == 0;
}

/* Compares the value that an atomic has returned. */
static void
old_value_check(struct host *host, const struct conn *conn, const struct op_row *op,
	const uint8_t *buf, uint64_t want)
{
	uint64_t found;

	memcpy(&found, buf, sizeof(found));
	host->tally.verified_bytes += sizeof(found);
	if (found == want)
		return;
	host->tally.bad_messages++;
	host->tally.bad_bytes += sizeof(found);
	host_fail(host,
		"%s, message %" PRIu64 " of QP 0x%x, returned 0x%" PRIx64
		", expected 0x%" PRIx64,
		op->name, conn->ack.msg, conn->qpn, found, want);
}

static void
result_verify(struct host *host, struct conn *conn, const struct op_row *op, uint64_t len)
{
	uint64_t msg = conn->ack.msg, seed = verify_seed(conn->flow_out, msg);
	const uint8_t *buf = conn->tx + msg % host->tx.slots * host->tx.stride;

	if (op->opcode == IBV_WR_RDMA_READ) {
		uint64_t at = target_read(&host->exchange.peer, seed, len);

		host_verify(host, conn, op->name, msg, buf, len,
			target_read_seed(host_is_back(host, true), at));
	} else if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		old_value_check(host, conn, op, buf, conn->fadd_sum);
		conn->fadd_sum += fadd_of(seed);
	} else if (op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		old_value_check(host, conn, op, buf, conn->cas_value);
		if (cas_matches(seed))
			conn->cas_value = seed;
	}
}

uint64_t
tx_op_acked(struct host *host, struct conn *conn, uint64_t end)
{
	const struct conf *conf = host->conf;
	bool flushes = mix_has(&conf->mix, OP_FLUSH);
	uint64_t bytes = 0;

	while (conn->ack.msg < end) {
		unsigned kind = conf->mix.order[conn->ack.op_i];
		const struct op_row *op = &op_rows[kind];
		uint64_t len = op_len(conf, op, conn->ack.size_i);

		host->tally.of_op[kind]++;
		bytes += len;
		conn->ring.acked += (op->flags & OP_RING) != 0;
		if (kind == OP_FLUSH || !flushes)
			conn->ring.flushed = conn->ring.acked;
		if (!conf->no_verify)
			result_verify(host, conn, op, len);
		walk_next(&conn->ack, &conf->mix, conf->n_sizes);
	}
	if (host->exchange.ring)
		exchange_check(host, conn);
	return bytes;
}
