/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the completions of the sweep, and the bytes that they cover, against the
 * model. */
#include <string.h>

#include "sweep_fixture.h"

/* The first byte is UNTOUCHED, and each other byte equals the one before it. */
static void
untouched_check(const uint8_t *at, size_t len)
{
	if (len == 0)
		return;
	assert_int_equal(at[0], UNTOUCHED);
	assert_memory_equal(at + 1, at, len - 1);
}

static void
slot_check(const struct flow *f, const uint8_t *at, unsigned i)
{
	assert_true(bytes_match(at, f->msg[i].len, key_of(f, i)));
	untouched_check(at + f->msg[i].len, SLOT_BYTES - f->msg[i].len);
}

/* Message i is complete: checks its effect on local and remote memory. */
static void
done_check(const struct flow *f, unsigned i)
{
	const uint8_t *local = slot_at(f->from, 0, i);

	switch (f->msg[i].op) {
	case (uint8_t)WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_ATOMIC_WRITE:
		slot_check(f, slot_at(f->to, 2, i), i);
		break;
	case IBV_WR_RDMA_READ:
		slot_check(f, local, i);
		slot_check(f, slot_at(f->to, 2, i), i); /* unchanged */
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		assert_memory_equal(local, &f->msg[i].value, 8);
		untouched_check(local + 8, SLOT_BYTES - 8);
		break;
	default:
		break;
	}
}

void
sent_check(struct flow *f)
{
	struct cqe cqe;

	while (host_poll(f->from, &f->from->send_cq, &cqe)) {
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		/* Signaled requests complete in order, each once. A completion covers
		 * those before it. */
		while (!f->msg[f->sent_done].signaled)
			done_check(f, f->sent_done++);
		assert_int_equal(cqe.wr_id, f->sent_done);
		assert_int_equal(cqe.byte_len, f->msg[f->sent_done].len);
		done_check(f, f->sent_done++);
	}
}

/* The message has invalidated the memory window that it named. */
static void
invalidated_check(struct flow *f, unsigned i, const struct cqe *cqe)
{
	assert_int_equal(cqe->imm, f->msg[i].mw->rkey);
	assert_null(key_find(&f->to->keys, cqe->imm));
	mw_destroy(&f->to->keys, f->msg[i].mw);
	f->msg[i].mw = NULL;
}

void
received_check(struct flow *f)
{
	struct cqe cqe;

	while (host_poll(f->to, &f->to->recv_cq, &cqe)) {
		unsigned n = f->recv_done++, i = f->recv_msg[n];
		bool write = f->msg[i].op == IBV_WR_RDMA_WRITE_WITH_IMM;

		assert_true(n < f->recv_msg_count);
		assert_int_equal(cqe.status, IBV_WC_SUCCESS);
		assert_int_equal(
			cqe.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
		assert_int_equal(cqe.wr_id, n);
		assert_int_equal(cqe.byte_len, f->msg[i].len);
		assert_int_equal(cqe.wc_flags, f->msg[i].imm  ? IBV_WC_WITH_IMM
					       : f->msg[i].mw ? IBV_WC_WITH_INV
							      : 0);
		if (f->msg[i].mw != NULL)
			invalidated_check(f, i, &cqe);
		if (f->msg[i].imm)
			assert_int_equal(cqe.imm, i ^ 0x5A5A5A5A);
		if (write) {
			slot_check(f, slot_at(f->to, 2, i), i);
			untouched_check(slot_at(f->to, 1, n), SLOT_BYTES);
		} else {
			slot_check(f, slot_at(f->to, 1, n), i);
		}
	}
}
