/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many messages of UC and UD in a row, over a wire that may lose packets. Each
 * message received is complete, correct and in order, and no receive completes otherwise.
 * On a wire that duplicates and reorders packets, a message of one packet may arrive
 * twice and out of order. UC and UD cannot detect that (IBA 9.8.2: a FIRST or ONLY of any
 * PSN begins a message).
 */
#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "matrix.h"

#define ROUNDS 4
#define MESSAGES 30 /* per round */
#define RECEIVES (2 * MESSAGES)
#define ROOM (5 * 4096 + 3 + MATRIX_GRH)
#define STRIDE (ROOM + 64)
#define LOST_MS 300
static_assert(RECEIVES * STRIDE <= MATRIX_HALF, "one slot per receive");

struct stream {
	const char *name;
	struct link_conf conf;
	enum ibv_wr_opcode op;
};

struct tally {
	unsigned arrived, next, posted, taken;
	uint8_t times[ROUNDS * MESSAGES];
};

static bool
is_write(const struct stream *s)
{
	return s->op == IBV_WR_RDMA_WRITE || s->op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool
has_imm(const struct stream *s)
{
	return s->op == IBV_WR_SEND_WITH_IMM || s->op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static uint32_t
message_len(const struct matrix *t, const struct stream *s, unsigned number)
{
	const uint32_t lens[] = {0, 1, t->mtu - 1, t->mtu, t->mtu + 1, 5 * t->mtu + 3};

	return lens[number % (s->conf.type == IBV_QPT_UD ? 4 : 6)];
}

static uint32_t
grh_len(const struct stream *s)
{
	return s->conf.type == IBV_QPT_UD ? MATRIX_GRH : 0;
}

/* The active end */

static const char *
stream_post(struct matrix *t, const struct stream *s, unsigned number)
{
	unsigned i = number % MESSAGES;
	uint8_t *at = link_source(t, 0) + i * STRIDE;
	struct ibv_sge sge = {(uintptr_t)at, message_len(t, s, number), t->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = number,
		.sg_list = &sge,
		.num_sge = sge.length != 0,
		.opcode = s->op,
		.imm_data = htonl(number),
		.send_flags = IBV_SEND_SIGNALED};

	data_fill(t, at, sge.length, number);
	if (is_write(s)) {
		wr.wr.rdma.remote_addr = link_remote(t, 0) + i * STRIDE;
		wr.wr.rdma.rkey = t->peer.rkey;
	}
	if (s->conf.type == IBV_QPT_UD) {
		wr.wr.ud.ah = t->ah;
		wr.wr.ud.remote_qpn = t->peer.qpn;
		wr.wr.ud.remote_qkey = MATRIX_QKEY;
	}
	return link_send(t, &wr);
}

static const char *
stream_active(struct matrix *t, const struct stream *s, unsigned round)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < MESSAGES; i++)
		TRY(stream_post(t, s, round * MESSAGES + i));
	for (unsigned i = 0; i < MESSAGES; i++)
		TRY(link_done(t, t->send_cq, round * MESSAGES + i, &wc));
	return NULL;
}

/* The passive end */

static uint8_t *
receive_slot(struct matrix *t, unsigned i)
{
	return link_target(t, 0) + i * STRIDE;
}

/* Posts the missing receives and clears the target memory. */
static const char *
stream_prepare(struct matrix *t, const struct stream *s, struct tally *tally)
{
	unsigned least = tally->posted - tally->taken;

	for (unsigned i = 0; is_write(s) && i < MESSAGES; i++)
		data_clear(receive_slot(t, i), ROOM);
	for (; least < RECEIVES && s->op != IBV_WR_RDMA_WRITE; least++) {
		uint8_t *at = receive_slot(t, tally->posted % RECEIVES);

		if (is_write(s)) {
			TRY(link_recv(t, tally->posted++, t->mem, 1));
			continue;
		}
		data_clear(at, ROOM);
		TRY(link_recv(t, tally->posted++, at, ROOM));
	}
	return NULL;
}

static bool
data_same(const struct matrix *t, const uint8_t *at, uint32_t len, unsigned number)
{
	for (uint32_t i = 0; i < len; i++) {
		if (at[i] != data_byte(t, i, number))
			return false;
	}
	return true;
}

/* Returns the number of the message: its immediate, or found by its content. */
static unsigned
message_number(struct matrix *t, const struct stream *s, const struct tally *tally,
	const struct ibv_wc *wc, const uint8_t *at)
{
	unsigned number = t->copies ? 0 : tally->next;

	if (has_imm(s))
		return ntohl(wc->imm_data);
	for (; number < ROUNDS * MESSAGES; number++) {
		if (wc->byte_len == message_len(t, s, number) + grh_len(s) &&
			data_same(t, at, wc->byte_len - grh_len(s), number))
			break;
	}
	return number;
}

static const char *
receive_check(struct matrix *t, const struct stream *s, struct tally *tally,
	const struct ibv_wc *wc)
{
	uint8_t *at = receive_slot(t, (unsigned)wc->wr_id % RECEIVES);
	unsigned number;

	NEED(t, wc->wr_id == tally->taken++);
	/* From an SRQ: the receive of a message that was partly lost. */
	if (t->srq != NULL && s->conf.type == IBV_QPT_UC &&
		wc->status == IBV_WC_REM_INV_REQ_ERR)
		return NULL;
	if (wc->status != IBV_WC_SUCCESS)
		return case_fail(t, "receive %llu: %s", (unsigned long long)wc->wr_id,
			ibv_wc_status_str(wc->status));
	NEED(t, ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) == has_imm(s));
	number = message_number(t, s, tally, wc, at + grh_len(s));
	if (number >= ROUNDS * MESSAGES)
		return case_fail(t, "%u bytes that were not sent, after message %u",
			wc->byte_len, tally->next);
	if (is_write(s))
		at = receive_slot(t, number % MESSAGES);
	NEED(t, wc->byte_len == message_len(t, s, number) + grh_len(s));
	NEED(t, data_same(t, at + grh_len(s), message_len(t, s, number), number));
	NEED(t, t->copies || number >= tally->next);
	NEED(t, !has_imm(s) || ++tally->times[number] <= (t->copies ? 2 : 1));
	tally->next = number + 1;
	tally->arrived++;
	return NULL;
}

/* Each byte of a message that may be partly lost is either the message's or unchanged.
 * The bytes after it are unchanged. */
static const char *
writes_check(
	struct matrix *t, const struct stream *s, struct tally *tally, unsigned round)
{
	const uint8_t none = receive_slot(t, 0)[ROOM]; /* the value of a cleared byte */

	for (unsigned i = 0; i < MESSAGES; i++) {
		unsigned number = round * MESSAGES + i, missing = 0;
		uint32_t len = message_len(t, s, number);
		const uint8_t *at = receive_slot(t, i);

		for (uint32_t b = 0; b < ROOM; b++) {
			if (b < len && at[b] == data_byte(t, b, number))
				continue;
			NEED(t, at[b] == none);
			missing += b < len;
		}
		tally->arrived += missing == 0 && s->op == IBV_WR_RDMA_WRITE;
	}
	return NULL;
}

/* Returns whether all messages have arrived. Unknown on a wire that duplicates
 * packets. */
static bool
all_arrived(struct matrix *t, const struct stream *s, const struct tally *tally,
	unsigned round)
{
	unsigned last = (round + 1) * MESSAGES - 1;

	if (t->copies)
		return false;
	if (s->op != IBV_WR_RDMA_WRITE)
		return tally->arrived == last + 1;
	return data_same(t, receive_slot(t, MESSAGES - 1), message_len(t, s, last), last);
}

static const char *
stream_passive(
	struct matrix *t, const struct stream *s, struct tally *tally, unsigned round)
{
	struct ibv_wc wc;
	int got = 0;

	for (unsigned ms = 0; ms < LOST_MS && !all_arrived(t, s, tally, round); ms += 5) {
		while ((got = link_poll_for(t, t->recv_cq, &wc, 5)) == 1) {
			TRY(receive_check(t, s, tally, &wc));
			ms = 0;
		}
		NEED(t, got == 0);
	}
	TRY(link_idle(t, t->recv_cq));
	return is_write(s) ? writes_check(t, s, tally, round) : NULL;
}

static const char *
stream_case(struct matrix *t, const void *arg)
{
	const struct stream *s = arg;
	struct tally tally = {0};
	unsigned mine, theirs;

	TRY(link_open(t, &s->conf));
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (!t->active)
			TRY(stream_prepare(t, s, &tally));
		TRY(oob_sync(t));
		if (t->active)
			TRY(stream_active(t, s, round));
		TRY(oob_sync(t));
		if (!t->active)
			TRY(stream_passive(t, s, &tally, round));
	}
	mine = tally.arrived;
	TRY(oob_swap(t, &mine, &theirs, sizeof(mine)));
	mine = t->active ? theirs : mine;
	if (t->verbose)
		printf("# %s (%s): %u of %u arrived\n", s->name,
			t->active ? "active" : "passive", mine, ROUNDS * MESSAGES);
	NEED(t, mine > 0);
	return NULL;
}

void
cases_stream(struct matrix *t)
{
	static const struct stream list[] = {
		{"UC stream of SEND", {.type = IBV_QPT_UC}, IBV_WR_SEND},
		{"UC stream of SEND_WITH_IMM", {.type = IBV_QPT_UC},
			IBV_WR_SEND_WITH_IMM},
		{"UC stream of WRITE", {.type = IBV_QPT_UC}, IBV_WR_RDMA_WRITE},
		{"UC stream of WRITE_WITH_IMM", {.type = IBV_QPT_UC},
			IBV_WR_RDMA_WRITE_WITH_IMM},
		{"UC with SRQ stream of SEND", {.type = IBV_QPT_UC, .srq = true},
			IBV_WR_SEND},
		{"UC with SRQ stream of SEND_WITH_IMM", {.type = IBV_QPT_UC, .srq = true},
			IBV_WR_SEND_WITH_IMM},
		{"UD stream of SEND", {.type = IBV_QPT_UD}, IBV_WR_SEND},
		{"UD stream of SEND_WITH_IMM", {.type = IBV_QPT_UD},
			IBV_WR_SEND_WITH_IMM},
		{"UD with SRQ stream of SEND_WITH_IMM", {.type = IBV_QPT_UD, .srq = true},
			IBV_WR_SEND_WITH_IMM},
	};

	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		matrix_case(t, list[i].name, need_nothing, stream_case, &list[i]);
}
