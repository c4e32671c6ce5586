/* SPDX-License-Identifier: BSD-3-Clause */
/* Data path. */
/* Memory placement extensions (annex A19), responder: ATOMIC_WRITE and FLUSH. Both are
 * answered by an empty READ response and take a responder resource, as READs and atomics
 * do. */
#include <string.h>

#include <rte_byteorder.h>

#include "qp/resp.h"

/* The FETH: placement types in bits 3-0, selectivity in bits 5-4. */
#define FETH_GLOBAL 0x1
#define FETH_PERSISTENT 0x2
#define FETH_TYPES 0xF
#define FETH_SELECT(feth) ((feth) >> 4 & 3)
#define FETH_REGION 1

/* Writes 8 bytes by one atomic store. */
enum verdict
resp_atomic_write(struct qp *qp, const struct pkt_view *v)
{
	const struct reth *reth = view_reth(v);
	struct resp_res res = {
		.first_psn = v->psn, .packets = 1, .kind = OP_ATOMIC_WRITE};
	uint64_t va = rte_be_to_cpu_64(reth->va), value;
	enum verdict verdict = resp_depth_check(qp, v);
	uint8_t *word;

	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	if (v->payload_len != sizeof(value) ||
		rte_be_to_cpu_32(reth->len) != sizeof(value))
		return FAULT_PACKET_LENGTH;
	word = key_check_remote(qp->shared->keys, rte_be_to_cpu_32(reth->rkey), qp->pd,
		qp->qpn, va, sizeof(value), sizeof(value), IBV_ACCESS_REMOTE_WRITE);
	if (word == NULL)
		return FAULT_RKEY;
	if (va % 8 != 0 || (uintptr_t)word % 8 != 0)
		return FAULT_ALIGNMENT;
	memcpy(&value, v->payload, sizeof(value));
	__atomic_store_n((uint64_t *)word, value, __ATOMIC_SEQ_CST);
	return resp_res_add(qp, &res);
}

/* True if the FLUSH is permitted. An empty range names no memory. A whole region is named
 * by its key alone. */
static bool
flush_granted(const struct qp *qp, const struct reth *reth, unsigned select)
{
	uint32_t rkey = rte_be_to_cpu_32(reth->rkey), len = rte_be_to_cpu_32(reth->len);

	if (select == FETH_REGION)
		return key_grants(
			qp->shared->keys, rkey, qp->pd, KEY_ACCESS_FLUSH_GLOBAL);
	return len == 0 || key_check_remote(qp->shared->keys, rkey, qp->pd, qp->qpn,
				   rte_be_to_cpu_64(reth->va), len, 0,
				   KEY_ACCESS_FLUSH_GLOBAL) != NULL;
}

static bool
flush_is_known(unsigned types, unsigned select)
{
	return types != 0 && (types & ~(FETH_GLOBAL | FETH_PERSISTENT)) == 0 &&
	       select <= FETH_REGION;
}

/* Global visibility needs no cache flush: caches are coherent. The fence orders the
 * earlier writes before the response: a thread that has learned of the response, and then
 * reads, sees them. */
enum verdict
resp_flush(struct qp *qp, const struct pkt_view *v)
{
	const struct reth *reth = view_reth(v);
	struct resp_res res = {.first_psn = v->psn, .packets = 1, .kind = OP_FLUSH};
	enum verdict verdict = resp_depth_check(qp, v);
	uint32_t feth;

	if (unlikely(verdict != VERDICT_GO))
		return verdict;
	memcpy(&feth, (const uint8_t *)reth - sizeof(feth), sizeof(feth));
	feth = rte_be_to_cpu_32(feth);
	if (v->payload_len != 0)
		return FAULT_PACKET_LENGTH;
	if (!flush_is_known(feth & FETH_TYPES, FETH_SELECT(feth)))
		return FAULT_OPERATION;
	/* No key has the right to persistence, which no memory of Rocade has. */
	if ((feth & FETH_PERSISTENT) || !flush_granted(qp, reth, FETH_SELECT(feth)))
		return FAULT_RKEY;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return resp_res_add(qp, &res);
}
