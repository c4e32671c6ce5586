/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of a client to itself, verified one by one. */
#ifndef ROCADE_TEST_CLIENT_MESSAGES_H
#define ROCADE_TEST_CLIENT_MESSAGES_H

#include <errno.h>
#include <string.h>

#include "../../e2e/flow_end.h"
#include "await.h"

/* Returns 0 or an errno value. */
static inline int
wc_wait(struct ibv_cq *cq, struct ibv_wc *wc)
{
	return awaited(ibv_poll_cq(cq, 1, wc) == 1) ? 0 : ETIMEDOUT;
}

/* Connects the end to itself and sends n messages. Returns 0 or an errno value. */
static inline int
messages_pass(struct end *e, unsigned n)
{
	struct ibv_wc wc;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		memset(e->buf + DEPTH * SIZE, (int)i, SIZE);
		rc = recv_post(e, 0);
		rc = rc != 0 ? rc : send_post(e, DEPTH);
		for (unsigned done = 0; rc == 0 && done < 2; done++) {
			rc = wc_wait(e->cq, &wc);
			if (rc == 0 && wc.status != IBV_WC_SUCCESS)
				rc = EIO;
		}
		if (rc == 0 && memcmp(e->buf, e->buf + DEPTH * SIZE, SIZE) != 0)
			rc = EILSEQ;
	}
	return rc;
}

static inline int
end_connect(struct end *e)
{
	int rc = qp_init(e->qp);

	return rc != 0 ? rc : qp_connect(e->qp, e->qp->qp_num);
}

#endif
