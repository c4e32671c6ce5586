/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts datagrams until the send queue is full. For advice.py.
 *
 *   full_queue signaled|unsignaled
 *
 * Ends with 0 when a post has returned ENOMEM.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define DEPTH 16
#define QKEY 1

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "full_queue: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
qp_start(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	check(ibv_modify_qp(qp, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
		"INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "RTS");
}

int
main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
	int err = 0;

	if (argc != 2)
		return 2;
	check(list != NULL && list[0] != NULL, "no device");
	context = ibv_open_device(list[0]);
	check(context != NULL, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
	check(pd != NULL && cq != NULL, "ibv_create_cq");
	qp = ibv_create_qp(pd, &(struct ibv_qp_init_attr){.qp_type = IBV_QPT_UD,
				       .send_cq = cq,
				       .recv_cq = cq,
				       .cap = {DEPTH, 1, 1, 1, 0}});
	check(qp != NULL, "ibv_create_qp");
	qp_start(qp);
	check(ibv_query_gid(context, 1, 0, &to.grh.dgid) == 0, "ibv_query_gid");
	wr.wr.ud.ah = ibv_create_ah(pd, &to);
	check(wr.wr.ud.ah != NULL, "ibv_create_ah");
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	if (strcmp(argv[1], "signaled") == 0)
		wr.send_flags = IBV_SEND_SIGNALED;
	for (unsigned i = 0; i < 100 * DEPTH && err == 0; i++)
		err = ibv_post_send(qp, &wr, &bad);
	return err == ENOMEM ? 0 : 1;
}
