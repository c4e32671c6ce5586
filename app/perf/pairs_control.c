/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_pause.h>

#include "control_intervals.h"
#include "pairs_control.h"

#define REGION_BYTES 4096
#define QPS_MAX 4096 /* connected at once, then destroyed */

struct connected {
	struct ibv_qp *sending[QPS_MAX], *receiving[QPS_MAX];
	struct ibv_cq *cq[2];
	union ibv_gid gid[2];
	unsigned count;
};

static const char *
region_round(struct pairs *pairs, void *mem)
{
	struct ibv_mr *mr = ibv_reg_mr(
		pairs->receiving.pd, mem, REGION_BYTES, IBV_ACCESS_LOCAL_WRITE);

	if (mr == NULL)
		return "ibv_reg_mr()";
	return ibv_dereg_mr(mr) == 0 ? NULL : "ibv_dereg_mr()";
}

static void
connected_destroy(struct connected *c)
{
	while (c->count != 0) {
		c->count--;
		ibv_destroy_qp(c->sending[c->count]);
		ibv_destroy_qp(c->receiving[c->count]);
	}
}

static struct ibv_qp *
control_qp_create(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_send_sge = 1,
			.max_recv_wr = 1,
			.max_recv_sge = 1}};

	return ibv_create_qp(pd, &init);
}

static const char *
connect_round(struct pairs *pairs, struct connected *c)
{
	struct ibv_qp *a, *b;
	const char *failed;

	if (c->count == QPS_MAX)
		connected_destroy(c);
	a = control_qp_create(pairs->sending.pd, c->cq[0]);
	b = control_qp_create(pairs->receiving.pd, c->cq[1]);
	if (a == NULL || b == NULL) {
		if (a != NULL)
			ibv_destroy_qp(a);
		if (b != NULL)
			ibv_destroy_qp(b);
		return "ibv_create_qp()";
	}
	c->sending[c->count] = a;
	c->receiving[c->count++] = b;
	failed = pair_qp_connect(a, b, &c->gid[1]);
	return failed != NULL ? failed : pair_qp_connect(b, a, &c->gid[0]);
}

static const char *
connected_open(struct pairs *pairs, struct connected *c)
{
	c->cq[0] = ibv_create_cq(pairs->sending.context, 1, NULL, NULL, 0);
	c->cq[1] = ibv_create_cq(pairs->receiving.context, 1, NULL, NULL, 0);
	if (c->cq[0] == NULL || c->cq[1] == NULL)
		return "ibv_create_cq()";
	if (ibv_query_gid(pairs->sending.context, 1, 0, &c->gid[0]) != 0 ||
		ibv_query_gid(pairs->receiving.context, 1, 0, &c->gid[1]) != 0)
		return "ibv_query_gid()";
	return NULL;
}

static void
connected_close(struct connected *c)
{
	connected_destroy(c);
	for (unsigned i = 0; i < 2; i++) {
		if (c->cq[i] != NULL)
			ibv_destroy_cq(c->cq[i]);
	}
}

int
pairs_control_run(void *arg)
{
	static struct connected connected;
	struct pairs_control_run *run = arg;
	uint64_t step = run->rate != 0 ? rte_get_tsc_hz() / run->rate : 0;
	uint64_t next = rte_rdtsc();
	void *mem = calloc(1, REGION_BYTES);

	if (mem == NULL)
		run->failed = "memory for a region";
	else if (run->what == CONTROL_CONNECT)
		run->failed = connected_open(run->pairs, &connected);
	while (run->failed == NULL && !__atomic_load_n(run->stop, __ATOMIC_RELAXED)) {
		uint64_t now = rte_rdtsc();

		if (run->interval_tsc != 0 &&
			!control_intervals_on(run->begin_tsc, run->interval_tsc, now))
			next = now + step;
		if (now < next) {
			rte_pause();
			continue;
		}
		next += step;
		run->failed = run->what == CONTROL_CONNECT
				      ? connect_round(run->pairs, &connected)
				      : region_round(run->pairs, mem);
		__atomic_fetch_add(&run->rounds, 1, __ATOMIC_RELAXED);
	}
	connected_close(&connected);
	free(mem);
	return 0;
}
