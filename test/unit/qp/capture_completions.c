/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the completions of our responder with those of the log, or with the frames of a
 * program. */
#include <stdio.h>
#include <string.h>

#include "capture_fixture.h"

/* Checks the 40 bytes before a datagram: zeros and the IPv4 header of a frame, or its
 * IPv6 header. */
static void
grh_check(const uint8_t *at)
{
	unsigned len = first_request.ip_version == 4 ? 20 : 40, i = 0;
	struct pkt_view v;

	for (unsigned k = 0; k < 40 - len; k++)
		assert_int_equal(at[k], 0);
	while (i < replay.file.count &&
		(!replay_view(&replay, i, &v) || memcmp(v.ip, at + 40 - len, len) != 0))
		i++;
	assert_true(i < replay.file.count);
}

/* ---- Messages of programs: each receive has the bytes of the frames ---- */

struct capture_expected expected;

void
message_expect(const struct pkt_view *v)
{
	uint32_t grh = v->op->service == SERVICE_UD ? 40 : 0;
	struct cqe cqe;

	if (op_is_first(v->op))
		expected.len = 0;
	assert_true(expected.len + v->payload_len <= sizeof(expected.bytes));
	memcpy(expected.bytes + expected.len, v->payload, v->payload_len);
	expected.len += v->payload_len;
	if (v->op->kind == OP_WRITE && op_is_first(v->op))
		expected.va = memory_offset(v);
	if (!op_is_last(v->op))
		return;
	expected.messages++;
	if (v->op->kind == OP_WRITE && expected.len != 0)
		assert_memory_equal(
			replay.target + expected.va, expected.bytes, expected.len);
	if (v->op->kind != OP_SEND && (v->op->hdrs & HDR_IMM) == 0)
		return;
	assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
	assert_int_equal(cqe.status, IBV_WC_SUCCESS);
	assert_int_equal(cqe.byte_len, expected.len + grh);
	if (grh != 0)
		grh_check(p.b.mem + REPLAY_SLOT * cqe.wr_id);
	if (v->op->kind == OP_SEND)
		assert_memory_equal(p.b.mem + REPLAY_SLOT * cqe.wr_id + grh,
			expected.bytes, expected.len);
}

/* Number of completions that the generator waited for. */
static unsigned
completions_awaited(void)
{
	char text[sizeof(run.commands)], *rest = text, *word;
	unsigned n, sum = 0;

	snprintf(text, sizeof(text), "%s", run.commands);
	while ((word = strsep(&rest, " ")) != NULL)
		sum += sscanf(word, "rq:%u", &n) == 1 ? n : 0;
	return sum;
}

/* Receives complete in order: number i of the log, or behind its end. */
static const struct wc_difference *
difference_of(const struct capture_case *entry, unsigned i)
{
	for (unsigned k = 0; k < RTE_DIM(entry->wcs); k++) {
		const struct wc_difference *d = &entry->wcs[k];

		if (d->topic != NULL && d->wr_id == i) {
			replay_topic_check(d->topic);
			return d;
		}
	}
	return NULL;
}

/* Compares the completions with the log, in order, except for differences with a topic.
 * If the generator waited for more completions than came, the missing receives can only
 * have been flushed. */
void
completions_check(const struct capture_case *entry)
{
	struct replay_wc none = {.status = IBV_WC_WR_FLUSH_ERR};
	struct cqe cqe;

	for (unsigned i = 0; i < run.wc_count + RTE_DIM(entry->wcs); i++) {
		const struct wc_difference *d = difference_of(entry, i);

		if (d != NULL && d->status == NO_WC)
			continue;
		if (d == NULL && i >= run.wc_count)
			break;
		assert_true(host_poll(&p.b, &p.b.recv_cq, &cqe));
		if (cqe.wc_flags & IBV_WC_GRH)
			grh_check(p.b.mem + REPLAY_SLOT * cqe.wr_id);
		invalidate_check(&cqe);
		if (d == NULL) {
			replay_wc_equal(
				&cqe, &run.wcs[i], p.b.mem + REPLAY_SLOT * cqe.wr_id);
			continue;
		}
		assert_int_equal(cqe.wr_id, d->wr_id);
		assert_int_equal(cqe.status, d->status);
		if (d->status == IBV_WC_SUCCESS)
			assert_int_equal(cqe.byte_len, d->len);
	}
	while (host_poll(&p.b, &p.b.recv_cq, &cqe)) {
		if (completions_awaited() == run.wc_count)
			continue;
		none.wr_id = cqe.wr_id;
		replay_wc_equal(&cqe, &none, NULL);
	}
}
