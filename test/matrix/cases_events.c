/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events of the passive end's QP. */
#include "matrix.h"

#define LEN 1000

struct cause {
	const char *name;
	enum ibv_event_type want;
	enum ibv_wc_status status; /* of the request */
	struct link_conf conf;
	bool wrong_key;
};

static const char *
cause_request(struct matrix *t, const struct cause *c)
{
	bool write = c->status != IBV_WC_SUCCESS;
	struct ibv_sge sge = {(uintptr_t)link_source(t, 0), LEN, t->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = link_remote(t, 0);
	wr.wr.rdma.rkey = t->peer.rkey ^ (c->wrong_key ? 0x5A : 0);
	TRY(link_send(t, &wr));
	TRY(link_poll(t, t->send_cq, &wc));
	NEED(t, write ? link_refused(t, wc.status, c->status) : wc.status == c->status);
	return NULL;
}

/* Raised by a request; or, with an SRQ, because the QP enters ERR. */
static const char *
event_case(struct matrix *t, const void *arg)
{
	const struct cause *c = arg;
	struct ibv_qp_attr dead = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;

	link_events_discard(t);
	TRY(link_open(t, &c->conf));
	if (!t->active && c->conf.stays_rtr)
		TRY(link_recv(t, 1, link_target(t, 0), LEN));
	TRY(oob_sync(t));
	if (t->active && !c->conf.srq)
		TRY(cause_request(t, c));
	TRY(oob_sync(t));
	if (t->active)
		return NULL;
	if (c->conf.stays_rtr)
		TRY(link_done(t, t->recv_cq, 1, &wc));
	if (c->conf.srq)
		NEED(t, ibv_modify_qp(t->qp, &dead, IBV_QP_STATE) == 0);
	return link_event(t, c->want);
}

void
cases_events(struct matrix *t)
{
	static const struct cause list[] = {
		{"RC event QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
			.conf = {.type = IBV_QPT_RC}, .wrong_key = true},
		{"RC event QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR, IBV_WC_REM_INV_REQ_ERR,
			.conf = {.type = IBV_QPT_RC,
				.denied_access = IBV_ACCESS_REMOTE_WRITE}},
		{"RC event COMM_EST", IBV_EVENT_COMM_EST, IBV_WC_SUCCESS,
			.conf = {.type = IBV_QPT_RC, .stays_rtr = true}},
		{"RC event QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED,
			IBV_WC_SUCCESS, .conf = {.type = IBV_QPT_RC, .srq = true}},
	};

	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		matrix_case(t, list[i].name, need_nothing, event_case, &list[i]);
}
