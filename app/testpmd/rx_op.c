/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a mix of operations, when they complete a receive. On RC and XRC the next one is the one
 * that the mix has next. On UC and UD messages are lost, and datagrams may come late or twice: the
 * number of a message is found by its first 8 bytes, or by its immediate.
 */
#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "testpmd_rx.h"

#define SKIP_MAX (1u << 20) /* messages lost in a row */

static bool
is_of(const struct op_row *op, const struct ibv_wc *wc)
{
	return ((op->flags & OP_RING) != 0) ==
		       (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) &&
	       ((op->flags & OP_IMM) != 0) == ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) &&
	       ((op->flags & OP_INV) != 0) == ((wc->wc_flags & IBV_WC_WITH_INV) != 0);
}

/* Whether it is the message with this seed, as far as what tells its number shows. */
static bool
is_message(const struct conf *conf, const struct op_row *op, const struct ibv_wc *wc,
	const uint8_t *data, uint64_t seed)
{
	uint64_t word;

	if (!is_of(op, wc))
		return false;
	if ((op->flags & OP_IMM) != 0)
		return be32toh(wc->imm_data) == (uint32_t)seed;
	if (conf->no_verify)
		return true;
	memcpy(&word, data, sizeof(word)); /* a buffer is not smaller */
	return le64toh(word) == seed;
}

static void
seen_set(struct conn *conn, uint64_t msg, bool seen)
{
	uint64_t *word = &conn->seen[msg % SEEN_MAX / 64], bit = UINT64_C(1) << msg % 64;

	*word = seen ? *word | bit : *word & ~bit;
}

static bool
seen_is(const struct conn *conn, uint64_t msg)
{
	return (conn->seen[msg % SEEN_MAX / 64] >> msg % 64 & 1) != 0;
}

/* Moves conn->take on. The messages on the way are lost, unless they come late. */
static void
take_move(const struct conf *conf, struct conn *conn, uint64_t msg)
{
	uint64_t skipped = msg - conn->take.msg;

	for (uint64_t i = 0; i < skipped && i < SEEN_MAX; i++)
		seen_set(conn, msg - 1 - i, false);
	conn->take = (struct op_walk){.msg = msg,
		.op_i = (uint32_t)(msg % conf->mix.period),
		.size_i = (uint32_t)(msg % conf->n_sizes)};
}

/* Whether it is one of the last messages. */
static bool
find_late(const struct conf *conf, const struct conn *conn, const struct ibv_wc *wc,
	const uint8_t *data, uint64_t *msg)
{
	for (uint64_t back = 1; back <= SEEN_MAX && back <= conn->take.msg; back++) {
		uint64_t n = conn->take.msg - back;
		const struct op_row *op = &op_rows[conf->mix.order[n % conf->mix.period]];

		if ((op->flags & OP_RECEIVED) != 0 &&
			is_message(conf, op, wc, data, verify_seed(conn->flow_in, n))) {
			*msg = n;
			return true;
		}
	}
	return false;
}

/* Moves conn->take on to it. Messages that are not the next one are late or, more often, behind lost
 * ones; only few can be late, so that they are looked for first. */
static bool
find_next(const struct conf *conf, struct conn *conn, const struct ibv_wc *wc,
	const uint8_t *data, unsigned skip_max)
{
	struct op_walk walk = conn->take;

	for (unsigned skipped = 0; skipped <= skip_max; skipped++) {
		const struct op_row *op =
			walk_find(&walk, &conf->mix, conf->n_sizes, OP_RECEIVED);

		if (is_message(
			    conf, op, wc, data, verify_seed(conn->flow_in, walk.msg))) {
			take_move(conf, conn, walk.msg);
			return true;
		}
		walk_next(&walk, &conf->mix, conf->n_sizes);
	}
	return false;
}

void
rx_len_check(struct host *host, const struct conn *conn, uint64_t msg, uint32_t len,
	uint64_t want)
{
	if (len == want)
		return;
	host->tally.bad_messages++;
	host_set_error(host,
		"message %" PRIu64 " of QP 0x%x has %" PRIu32 " bytes, "
		"expected %" PRIu64 " (--size must be the same on both ends)",
		msg, conn->qpn, len, want);
}

/* Verifies it as message msg. The content of a WRITE is checked in the ring. */
static void
message_verify(struct host *host, struct conn *conn, const struct ibv_wc *wc,
	const uint8_t *data, uint64_t msg)
{
	const struct conf *conf = host->conf;
	const struct op_row *op = &op_rows[conf->mix.order[msg % conf->mix.period]];
	uint64_t seed = verify_seed(conn->flow_in, msg);
	uint32_t found =
		(wc->wc_flags & IBV_WC_WITH_IMM) != 0 ? be32toh(wc->imm_data) : 0;

	if (!is_of(op, wc))
		host_fail(host,
			"message %" PRIu64
			" of QP 0x%x is another operation than %s: messages "
			"are out of order",
			msg, conn->qpn, op->name);
	else if ((op->flags & OP_INV) != 0)
		mws_invalidated(host, conn, msg, wc->invalidated_rkey);
	else if ((op->flags & OP_IMM) != 0 && found != (uint32_t)seed)
		host_fail(host,
			"the immediate of message %" PRIu64
			" (%s) of QP 0x%x is 0x%08" PRIx32 ", expected 0x%08" PRIx32,
			msg, op->name, conn->qpn, found, (uint32_t)seed);
	rx_len_check(host, conn, msg, wc->byte_len,
		op_len(conf, op, (uint32_t)(msg % conf->n_sizes)));
	if (!conf->no_verify && (op->flags & OP_RING) == 0)
		(void)host_verify(host, conn, op->name, msg, data, wc->byte_len, seed);
}

/* Returns whether the message is the next one, or a later one, and then conn->take is at it. Otherwise
 * sets *counts: it is late, but does not come twice. */
static bool
lossy_take(struct host *host, struct conn *conn, const struct ibv_wc *wc,
	const uint8_t *data, bool *counts)
{
	const struct conf *conf = host->conf;
	uint64_t msg;

	*counts = false;
	if (find_next(conf, conn, wc, data, 0))
		return true;
	if (!find_late(conf, conn, wc, data, &msg)) {
		if (find_next(conf, conn, wc, data, SKIP_MAX))
			return true;
		message_verify(host, conn, wc, data, conn->take.msg); /* it is wrong */
		return false;
	}
	message_verify(host, conn, wc, data, msg);
	*counts = !seen_is(conn, msg);
	seen_set(conn, msg, true);
	host->tally.late += *counts;
	host->tally.duplicates += !*counts;
	return false;
}

bool
rx_op_take(struct host *host, struct conn *conn, const struct ibv_wc *wc,
	const uint8_t *data)
{
	const struct conf *conf = host->conf;
	char own[OPTIONS_TEXT];
	bool counts;

	if (!host->exchange.asked.receives) {
		(void)exchange_options(host, own);
		host_fail(host,
			"%s sends messages that this end with '%s' does not expect: both ends "
			"need the same",
			host_peer(host), own);
		return false;
	}
	if (type_is_lossy(conf->type) && !lossy_take(host, conn, wc, data, &counts))
		return counts;
	(void)walk_find(&conn->take, &conf->mix, conf->n_sizes, OP_RECEIVED);
	message_verify(host, conn, wc, data, conn->take.msg);
	if (type_is_lossy(conf->type))
		seen_set(conn, conn->take.msg, true);
	walk_next(&conn->take, &conf->mix, conf->n_sizes);
	return true;
}

void
rx_lost(struct host *host, struct conn *conn, uint64_t end, uint64_t missing)
{
	host->tally.lost += missing;
	conn->received += missing;
	if (conn->take.msg < end)
		take_move(host->conf, conn, end);
}
