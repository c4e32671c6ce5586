/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>

#include "switch/qpns.h"

int
qpns_init(struct qpns *t, uint32_t base, uint32_t count)
{
	int rc = qpn_pool_init(&t->pool, base, count);

	if (rc != 0)
		return rc;
	t->qps = calloc(count, sizeof(*t->qps));
	if (t->qps == NULL) {
		qpn_pool_fini(&t->pool);
		return -ENOMEM;
	}
	return 0;
}

void
qpns_fini(struct qpns *t)
{
	free(t->qps);
	t->qps = NULL;
	qpn_pool_fini(&t->pool);
}

int
qpns_take(struct qpns *t, struct sw_client *owner, uint32_t *qpn)
{
	int rc = qpn_pool_take(&t->pool, qpn);

	if (rc == 0)
		t->qps[*qpn - t->pool.base] = (struct sw_qp){.owner = owner};
	return rc;
}

void
qpns_give(struct qpns *t, uint32_t qpn)
{
	t->qps[qpn - t->pool.base] = (struct sw_qp){.owner = NULL};
	qpn_pool_give(&t->pool, qpn);
}
