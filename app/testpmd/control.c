/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes to an open host. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

int
host_impair(struct host *host, char err[ERR_MAX])
{
	struct rocade_impair impair = host->conf->impair;

	impair.seed += host->index;
	if (rocade_port_impair(host->port, &impair) == 0)
		return 0;
	return error_set(err, "%s", rocade_error());
}

static int
srq_is_own(const struct host *host, char err[ERR_MAX])
{
	return conf_shares_srq(host->conf)
		       ? error_set(
				 err, "the cores share this SRQ: expected --srq-per-core")
		       : 0;
}

int
host_srq_limit(struct host *host, uint32_t limit, char err[ERR_MAX])
{
	struct ibv_srq_attr attr = {.srq_limit = limit};
	int rc;

	if (srq_is_own(host, err) != 0)
		return -1;
	rc = ibv_modify_srq(host->verbs.srq, &attr, IBV_SRQ_LIMIT);

	if (rc != 0)
		return error_set(err,
			"%s (expected at most %" PRIu32 ", the size of the SRQ)",
			strerror(rc), host->rxqs[0].capacity);
	return 0;
}

int
host_srq_resize(struct host *host, uint32_t size, char err[ERR_MAX])
{
	struct rxq *rxq = &host->rxqs[0];
	struct ibv_srq_attr attr = {.max_wr = size};

	if (srq_is_own(host, err) != 0)
		return -1;
	if (size > (uint32_t)host->verbs.recv_cq->cqe)
		return error_set(err,
			"expected at most %d, the size of the receive CQ (start with a "
			"larger --depth)",
			host->verbs.recv_cq->cqe);
	int rc = ibv_modify_srq(host->verbs.srq, &attr, IBV_SRQ_MAX_WR);
	if (rc != 0)
		return error_set(err,
			"%s (expected at least 1 and the %" PRIu32
			" receives that are posted)",
			strerror(rc), rxq_posted(rxq));
	if (size > rxq->n_bufs)
		rc = rxq_grow(rxq, host->verbs.pd, size - rxq->n_bufs, rxq->len);
	rxq->capacity = size;
	if (rc == 0 && !rxq->refill_on_limit)
		rc = rxq_post(rxq);
	if (rc != 0)
		return error_set(err, "cannot post receives: %s", strerror(rc));
	return 0;
}

/* Only `show qp` needs them, and there may be many QPs. */
static int
clear_qps(struct host *host)
{
	struct rocade_stat rows[QP_STATS_MAX];

	if (host->base.qps == NULL)
		host->base.qps =
			calloc(host->n_conns, QP_STATS_MAX * sizeof(*host->base.qps));
	if (host->base.qps == NULL)
		return -1;
	for (unsigned c = 0; c < host->n_conns; c++) {
		unsigned n = rocade_qp_stats(host->conns[c].qp, rows, QP_STATS_MAX);

		for (unsigned i = 0; i < n && i < QP_STATS_MAX; i++)
			host->base.qps[c * QP_STATS_MAX + i] = rows[i].value;
	}
	return 0;
}

int
host_clear(struct host *host)
{
	host_snapshot(host, -1, &host->base.show);
	for (unsigned e = 0; e < host->n_engines; e++)
		host_snapshot(host, (int)e, &host->base.engine[e]);
	(void)rocade_port_impair_stats(host->port, &host->base.show_impair);
	for (unsigned c = 0; c < host->head->n_hosts; c++) {
		struct host *own = host_at(host, c);

		own->base.limit_events = own->tally.limit_events;
		own->base.refills = own->tally.refills;
		if (clear_qps(own) != 0)
			return -1;
	}
	return 0;
}
