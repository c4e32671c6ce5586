/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends 20 messages from a QP to itself, and knows nothing of faults. It has an error, for faults_explore.py:
 *
 *   fault_careless regions   it does not look whether any but its first region was registered
 *   fault_careless sends     nor whether a send was posted, for whose completion it waits
 *   fault_careless slow      it has none, and waits 0.9 s after each of 13 messages
 */
#include <infiniband/verbs.h>

#include "await.h"
#include "fault_calls.h"

#define REGIONS 40
#define LENGTH 600
#define MESSAGES 20
#define SLOW_MESSAGES 13
#define SLOW_US 900000

static char memory[REGIONS][LENGTH];

static struct ibv_qp *
qp_make(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	check_pointer("create_qp", qp);
	return qp;
}

static void
qp_connect(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	union ibv_gid gid;

	check_minus("query_gid", ibv_query_gid(qp->context, 1, 0, &gid));
	check("modify_qp", ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid}}};
	check("modify_qp",
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1};
	check("modify_qp",
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void
message_send(struct ibv_qp *qp, struct ibv_mr *const *regions, bool checked)
{
	struct ibv_sge to = {(uintptr_t)regions[1]->addr, LENGTH, regions[1]->lkey};
	struct ibv_sge from = {(uintptr_t)regions[0]->addr, LENGTH, regions[0]->lkey};
	struct ibv_recv_wr receive = {.sg_list = &to, .num_sge = 1}, *bad_receive;
	struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1}, *bad_send;
	struct ibv_wc wc;
	int err, got, seen = 0;

	send.opcode = IBV_WR_SEND;
	check("post_recv", ibv_post_recv(qp, &receive, &bad_receive));
	err = ibv_post_send(qp, &send, &bad_send);
	if (checked)
		check("post_send", err);
	while (seen < 2) {
		got = ibv_poll_cq(qp->send_cq, 1, &wc);
		check("poll_cq", got < 0 ? -got : 0);
		check("completion", got > 0 && wc.status != 0 ? EIO : 0);
		seen += got;
	}
}

int
main(int argc, char **argv)
{
	bool regions_checked = argc > 1 && strcmp(argv[1], "regions") != 0;
	bool sends_checked = argc > 1 && strcmp(argv[1], "sends") != 0;
	bool slow = argc > 1 && strcmp(argv[1], "slow") == 0;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_mr *regions[REGIONS];
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_qp *qp;

	check_other("no device", list != NULL && list[0] != NULL);
	context = ibv_open_device(list[0]);
	check_pointer("open_device", context);
	pd = ibv_alloc_pd(context);
	check_pointer("alloc_pd", pd);
	for (unsigned i = 0; i < REGIONS; i++) {
		regions[i] = ibv_reg_mr(pd, memory[i], LENGTH, IBV_ACCESS_LOCAL_WRITE);
		if (i == 0 || regions_checked)
			check_pointer("reg_mr", regions[i]);
	}
	for (unsigned i = 0; i < REGIONS; i++)
		((volatile char *)regions[i]->addr)[0] = (char)i;
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	check_pointer("create_cq", cq);
	qp = qp_make(pd, cq);
	qp_connect(qp);
	for (unsigned i = 0; i < (slow ? SLOW_MESSAGES : MESSAGES); i++) {
		message_send(qp, regions, sends_checked);
		others_run_us(slow ? SLOW_US : 0);
	}
	return 0;
}
