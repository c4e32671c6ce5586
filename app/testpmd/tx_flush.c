/* SPDX-License-Identifier: BSD-3-Clause */
#include <rocade/flush.h>

#include "tx_flush.h"
#include "op.h"

static bool
is_flush(const struct ibv_send_wr *wr)
{
	return wr->opcode == (enum ibv_wr_opcode)ROCADE_WR_FLUSH;
}

static int
flush_post(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	int rc;

	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id;
	ex->wr_flags = wr->send_flags;
	rc = rocade_wr_flush(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
		wr->wr.atomic.compare_add, ROCADE_FLUSH_GLOBAL,
		(uint8_t)wr->wr.atomic.swap);
	if (rc != 0) {
		ibv_wr_abort(ex);
		return rc;
	}
	return ibv_wr_complete(ex);
}

int
send_post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, unsigned *n)
{
	struct ibv_send_wr *bad = NULL;
	int rc;

	wr[*n - 1].next = NULL;
	rc = ibv_post_send(qp, wr, &bad);
	if (rc != 0)
		*n = (unsigned)(bad - wr);
	return rc;
}

/* Posts the first of n requests, if it is a FLUSH, or those in front of the next FLUSH. Returns their number; the error
 * in *rc. */
static unsigned
part_post(struct ibv_qp *qp, struct ibv_send_wr *wr, unsigned n, int *rc)
{
	unsigned end = 1;

	if (is_flush(wr)) {
		*rc = flush_post(qp, wr);
		return *rc == 0;
	}
	while (end < n && !is_flush(&wr[end]))
		end++;
	*rc = send_post_list(qp, wr, &end);
	return end;
}

int
flush_post_list(struct ibv_qp *qp, struct ibv_send_wr *wr, unsigned *n)
{
	unsigned posted = 0;
	int rc = 0;

	while (posted < *n && rc == 0)
		posted += part_post(qp, &wr[posted], *n - posted, &rc);
	*n = posted;
	return rc;
}
