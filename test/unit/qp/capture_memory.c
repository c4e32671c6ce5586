/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that requests access, its keys and the memory window over it. */
#include <string.h>

#include <rte_byteorder.h>

#include "capture_fixture.h"
#include "mem/memory_window.h"

uint32_t keys[2];
static uint64_t bases[2]; /* of the keys: page of the first address */

uint64_t
memory_offset(const struct pkt_view *v)
{
	uint32_t key = rte_be_to_cpu_32(view_reth(v)->rkey);

	return rte_be_to_cpu_64(view_reth(v)->va) - bases[key != keys[0]];
}

static void
memory_keys(const struct capture_case *entry)
{
	struct pkt_view v;

	for (unsigned i = 0; i < replay.file.count; i++) {
		uint32_t key;

		if (!is_request(entry, i) || !replay_view(&replay, i, &v) ||
			(v.op->hdrs & (HDR_RETH | HDR_ATOMIC)) == 0 ||
			((v.op->hdrs & HDR_RETH) != 0 && view_reth(&v)->len == 0))
			continue;
		key = rte_be_to_cpu_32(view_reth(&v)->rkey);
		if (key == keys[0] || key == keys[1])
			continue;
		assert_int_equal(keys[1], 0);
		bases[keys[0] != 0] =
			rte_be_to_cpu_64(view_reth(&v)->va) & ~UINT64_C(0xFFF);
		replay_key_put(&replay, &p.b, key, bases[keys[0] != 0], ACCESS_REMOTE);
		keys[keys[0] != 0] = key;
	}
}

void
memory_fill_from_responses(
	const struct capture_case *entry, unsigned frame, const struct pkt_view *read)
{
	uint64_t off = memory_offset(read);
	uint32_t len = rte_be_to_cpu_32(view_reth(read)->len);
	struct pkt_view v;

	for (unsigned i = frame + 1; i < replay.file.count; i++) {
		uint32_t at;

		if (!replay_view(&replay, i, &v) || !is_response(entry, &v) ||
			v.op->kind != OP_READ_RESP)
			continue;
		at = (uint32_t)psn_diff(v.psn, read->psn) * 1024;
		if (at < len)
			memcpy(replay.target + off + at, v.payload, v.payload_len);
	}
}

void
memory_fill_from_atomic(
	const struct capture_case *entry, unsigned frame, const struct pkt_view *atomic)
{
	uint64_t off = memory_offset(atomic), original;
	struct pkt_view v;

	for (unsigned i = 0; i < frame; i++) {
		if (is_request(entry, i) && replay_view(&replay, i, &v) &&
			v.op->kind == OP_FETCH_ADD && memory_offset(&v) == off)
			return;
	}
	for (unsigned i = frame + 1; i < replay.file.count; i++) {
		if (!replay_view(&replay, i, &v) || !is_response(entry, &v) ||
			v.op->kind != OP_ATOMIC_ACK || v.psn != atomic->psn)
			continue;
		memcpy(&original, v.ext + sizeof(uint32_t), sizeof(original));
		original = rte_be_to_cpu_64(original);
		memcpy(replay.target + off, &original, sizeof(original));
		return;
	}
}

#define TARGET_VA 0x20080000

void
target_init(const struct capture_case *entry)
{
	memset(keys, 0, sizeof(keys));
	replay_target_fill(&replay);
	if (entry->qpn != 0) {
		memory_keys(entry);
		return;
	}
	keys[0] = run.rkey;
	keys[1] = run.rkey_ro;
	replay_key_put(&replay, &p.b, run.rkey, TARGET_VA,
		IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE);
	replay_key_put(&replay, &p.b, run.rkey_ro, TARGET_VA,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

static struct mw *mw;
static uint32_t region;
uint32_t mw_keys[2];
unsigned binds, invalidated;

void
capture_mw_rebind(void)
{
	struct send_req req = {.wr_id = 1,
		.opcode = IBV_WR_BIND_MW,
		.flags = IBV_SEND_SIGNALED,
		.remote_va = TARGET_VA,
		.bind_len = 0x10000,
		.bind_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	unsigned rights = ACCESS_REMOTE | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;

	if (mw == NULL) {
		assert_int_equal(key_alloc(&p.b.keys, p.b.qp.pd, TARGET_VA, replay.target,
					 REPLAY_TARGET_BYTES, rights, &region),
			0);
		mw = host_mw(&p.b, true);
	}
	req.rkey = ibv_inc_rkey(mw->rkey);
	req.bind_parent = region;
	assert_int_equal(host_post_send(&p.b, &req), 0);
	assert_int_equal(host_pull(&p.b, PULL_ALL), 0);
	expect_sent(&p.b, 1, IBV_WC_SUCCESS);
	mw_keys[binds++] = req.rkey;
}

void
capture_mw_destroy(void)
{
	if (mw == NULL)
		return;
	assert_int_equal(invalidated, binds);
	mw_destroy(&p.b.keys, mw);
	assert_int_equal(key_free(&p.b.keys, region), 0);
	mw = NULL;
}

void
invalidate_check(const struct cqe *cqe)
{
	if ((cqe->wc_flags & IBV_WC_WITH_INV) == 0)
		return;
	replay_topic_check("receive WC of SEND with invalidate");
	assert_true(invalidated < binds);
	assert_int_equal(cqe->imm, mw_keys[invalidated]);
	invalidated++;
}
