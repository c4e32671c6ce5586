/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages over XRC: every opcode, missing SRQs, many QPs to many SRQs. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "xrc_fixture.h"

/* Every opcode, posted with ibv_post_send() or built with ibv_wr_post(3). */
static void
operations(struct ibv_qp *initiator, bool built)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct ibv_xrcd *xrcd = xrc_domain(b);
	struct ibv_srq *srq = xrc_srq(b, xrcd, b->recv_cq);
	struct ibv_qp *target = xrc_target(b->context, xrcd);
	struct ibv_qp_ex *ex = built ? ibv_qp_to_qp_ex(initiator) : NULL;
	struct ibv_mr *mr = ibv_reg_mr(
		b->pd, b->mem, pair.conf.bytes, IBV_ACCESS_LOCAL_WRITE | XRC_REMOTE);
	uint64_t word = 7, got;
	struct ibv_wc wc;

	assert_non_null(mr);
	xrc_connect(a, initiator, b, target);
	for (unsigned i = 0; i < 3; i++)
		xrc_recv(b, srq, i, 0x20000 + i * 4096);
	memset(a->mem, 0xA5, XRC_MSG);
	memcpy(b->mem + 0x10000, &word, 8);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		uint64_t remote = (uintptr_t)b->mem + (i < 5 ? 0x8000 : 0x10000);
		struct ibv_sge sge = {
			(uintptr_t)a->mem + (i < 4 ? 0 : 0x8000), XRC_MSG, a->mr->lkey};
		struct ibv_send_wr *bad, wr = {.wr_id = i,
						 .sg_list = &sge,
						 .num_sge = 1,
						 .opcode = ops[i],
						 .send_flags = IBV_SEND_SIGNALED,
						 .imm_data = 0x12345678};

		sge.length = i < 5 ? XRC_MSG : 8;
		wr.qp_type.xrc.remote_srqn = xrc_srqn(srq);
		if (i >= 5) {
			wr.wr.atomic.remote_addr = remote;
			wr.wr.atomic.rkey = mr->rkey;
			wr.wr.atomic.compare_add = i == 5 ? 7 : 100;
			wr.wr.atomic.swap = 50;
		} else {
			wr.wr.rdma.remote_addr = remote;
			wr.wr.rdma.rkey = mr->rkey;
		}
		if (!built) {
			assert_int_equal(ibv_post_send(initiator, &wr, &bad), 0);
		} else {
			ibv_wr_start(ex);
			ex->wr_id = i;
			ex->wr_flags = IBV_SEND_SIGNALED;
			switch (i) {
			case 0:
				ibv_wr_send(ex);
				break;
			case 1:
				ibv_wr_send_imm(ex, 0x12345678);
				break;
			case 2:
				ibv_wr_rdma_write(ex, mr->rkey, remote);
				break;
			case 3:
				ibv_wr_rdma_write_imm(ex, mr->rkey, remote, 0x12345678);
				break;
			case 4:
				ibv_wr_rdma_read(ex, mr->rkey, remote);
				break;
			case 5:
				ibv_wr_atomic_cmp_swp(ex, mr->rkey, remote, 7, 50);
				break;
			default:
				ibv_wr_atomic_fetch_add(ex, mr->rkey, remote, 100);
				break;
			}
			ibv_wr_set_xrc_srqn(ex, xrc_srqn(srq));
			ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
			assert_int_equal(ibv_wr_complete(ex), 0);
		}
		xrc_complete(a->send_cq, i, IBV_WC_SUCCESS, &wc);
	}
	for (unsigned i = 0; i < 3; i++) {
		xrc_complete(b->recv_cq, i, IBV_WC_SUCCESS, &wc);
		assert_int_equal(wc.qp_num, target->qp_num);
		assert_int_equal(wc.byte_len, XRC_MSG);
		assert_int_equal(
			wc.opcode, i < 2 ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.wc_flags, i == 0 ? 0 : IBV_WC_WITH_IMM);
		if (i != 0)
			assert_int_equal(wc.imm_data, 0x12345678);
	}
	assert_memory_equal(b->mem + 0x20000, a->mem, XRC_MSG);
	assert_memory_equal(b->mem + 0x8000, a->mem, XRC_MSG);
	memcpy(&got, a->mem + 0x8000, 8);
	assert_int_equal(got, 50); /* the value that the swap left */
	assert_memory_equal(a->mem + 0x8008, a->mem + 8, XRC_MSG - 8);
	memcpy(&got, b->mem + 0x10000, 8);
	assert_int_equal(got, 150);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

TEST_WITH(every_opcode_by_post_send, xrc_setup, xrc_teardown)
{
	operations(xrc_initiator(&pair.a, 0), false);
}

TEST_WITH(every_opcode_by_sections, xrc_setup, xrc_teardown)
{
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;

	operations(xrc_initiator(&pair.a, IBV_QP_EX_WITH_SEND |
						  IBV_QP_EX_WITH_SEND_WITH_IMM |
						  IBV_QP_EX_WITH_RDMA_WRITE |
						  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
						  IBV_QP_EX_WITH_RDMA_READ |
						  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
						  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD),
		true);
	/* Each request carries its SRQ number. */
	qp = xrc_initiator(&pair.a, IBV_QP_EX_WITH_SEND);
	xrc_connect_one(qp, &pair.b.gid, 99);
	ex = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, pair.a.mr->lkey, (uintptr_t)pair.a.mem, 8);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, 0x1000000);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A message to an unknown SRQ number: both QPs fail, and the target raises events. */
TEST_WITH(unknown_srq_number_fails_both_qps, xrc_setup, xrc_teardown)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrc_domain(b), *other = xrc_domain(b);
	struct ibv_srq *srq = xrc_srq(b, other, b->recv_cq);
	struct ibv_qp *initiator = xrc_initiator(a, 0);
	struct ibv_qp *target = xrc_target(b->context, xrcd);
	struct ibv_async_event event;
	struct ibv_wc wc;

	xrc_connect(a, initiator, b, target);
	xrc_recv(b, srq, 1, 0x8000);
	xrc_send(a, initiator, xrc_srqn(srq), 5, 0, 8); /* an SRQ of another domain */
	xrc_complete(a->send_cq, 5, IBV_WC_REM_INV_REQ_ERR, &wc);
	event = pair_event(&pair, b);
	assert_int_equal(event.event_type, IBV_EVENT_QP_REQ_ERR);
	assert_ptr_equal(event.element.qp, target);
	event = pair_event(&pair, b);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_close_xrcd(other), 0);
}

/* The number of a basic SRQ names nothing in a packet, although the SRQ is there. */
TEST_WITH(basic_srq_number_is_unknown, xrc_setup, xrc_teardown)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrc_domain(b);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 10, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(b->pd, &attr);
	struct ibv_qp *initiator = xrc_initiator(a, 0);
	struct ibv_qp *target = xrc_target(b->context, xrcd);
	struct ibv_async_event event;
	struct ibv_wc wc;

	assert_non_null(srq);
	xrc_connect(a, initiator, b, target);
	xrc_recv(b, srq, 1, 0x8000);
	xrc_send(a, initiator, xrc_srqn(srq), 5, 0, 8);
	xrc_complete(a->send_cq, 5, IBV_WC_REM_INV_REQ_ERR, &wc);
	event = pair_event(&pair, b);
	assert_int_equal(event.event_type, IBV_EVENT_QP_REQ_ERR);
	event = pair_event(&pair, b);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_poll_cq(b->recv_cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* The SRQ is destroyed while a message to it is in flight. */
TEST_WITH(message_to_destroyed_srq_fails, xrc_setup, xrc_teardown)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	struct ibv_xrcd *xrcd = xrc_domain(b);
	struct ibv_srq *srq = xrc_srq(b, xrcd, b->recv_cq);
	struct ibv_qp *initiator = xrc_initiator(a, 0);
	struct ibv_qp *target = xrc_target(b->context, xrcd);
	struct ibv_wc wc;

	xrc_connect(a, initiator, b, target);
	xrc_recv(b, srq, 1, 0x8000);
	xrc_send(a, initiator, xrc_srqn(srq), 5, 0, 4096);
	xrc_send(a, initiator, xrc_srqn(srq), 6, 0, 8); /* no receive is left: RNR NAK */
	xrc_complete(a->send_cq, 5, IBV_WC_SUCCESS, &wc);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	/* The application keeps what was received. */
	xrc_complete(b->recv_cq, 1, IBV_WC_SUCCESS, &wc);
	xrc_complete(a->send_cq, 6, IBV_WC_REM_INV_REQ_ERR, &wc);
	assert_int_equal(pair_event(&pair, b).event_type, IBV_EVENT_QP_REQ_ERR);
	assert_int_equal(pair_event(&pair, b).event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

#define QPS 12
#define SRQS 3
#define MESSAGES 2000

/* QPs on two engines send to several SRQs, each QP to all of them, with engine
 * threads. */
TEST(many_qps_to_many_srqs)
{
	struct verbs_side *a = &pair.a, *b = &pair.b;
	struct ibv_qp *initiator[QPS], *target[QPS];
	unsigned left = MESSAGES, sent = 0, done = 0, got[SRQS] = {0}, from[QPS] = {0};
	struct ibv_cq *cq[SRQS];
	struct ibv_srq *srq[SRQS];
	struct ibv_xrcd *xrcd;
	struct ibv_wc wc;

	pair_open(&pair, &(struct verbs_pair_conf){.engines = 2, .qps = 2});
	xrcd = xrc_domain(b);
	for (unsigned i = 0; i < SRQS; i++) {
		cq[i] = ibv_create_cq(b->context, 256, NULL, NULL, 0);
		assert_non_null(cq[i]);
		srq[i] = xrc_srq(b, xrcd, cq[i]);
		for (unsigned j = 0; j < 20; j++)
			xrc_recv(b, srq[i], j, (i * 20 + j) * 4096);
	}
	for (unsigned i = 0; i < QPS; i++) {
		initiator[i] = xrc_initiator(a, 0);
		target[i] = xrc_target(b->context, xrcd);
		xrc_connect(a, initiator[i], b, target[i]);
	}
	for (unsigned i = 0; i < MESSAGES; i++)
		memcpy(a->mem + i * 8, &i, sizeof(i));
	pair_threads_start(&pair);
	while (left != 0) {
		if (sent < MESSAGES && sent - done < 200) {
			unsigned i = sent % QPS;
			int err = xrc_send_try(a, initiator[i],
				xrc_srqn(srq[sent / QPS % SRQS]), sent, sent * 8,
				8 + sent % XRC_MSG);

			/* A QP blocked by RNR NAKs may have a full send queue. */
			assert_true(err == 0 || err == ENOMEM);
			sent += err == 0;
		}
		while (ibv_poll_cq(a->send_cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			done++;
		}
		for (unsigned i = 0; i < SRQS; i++) {
			while (ibv_poll_cq(cq[i], 1, &wc) == 1) {
				size_t at = (i * 20 + wc.wr_id) * 4096;
				unsigned n, q = 0;

				assert_int_equal(wc.status, IBV_WC_SUCCESS);
				memcpy(&n, b->mem + at, sizeof(n));
				assert_int_equal(n / QPS % SRQS, i);
				assert_int_equal(wc.byte_len, 8 + n % XRC_MSG);
				while (target[q]->qp_num != wc.qp_num)
					q++;
				assert_int_equal(n % QPS, q);
				/* RC keeps the order for each QP and SRQ. */
				from[q]++;
				got[i]++;
				left--;
				xrc_recv(b, srq[i], wc.wr_id, at);
			}
		}
	}
	while (done < MESSAGES) {
		pair_poll_cq(&pair, a->send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		done++;
	}
	pair_threads_stop(&pair);
	for (unsigned i = 0; i < SRQS; i++)
		assert_true(got[i] > MESSAGES / SRQS - QPS);
	for (unsigned i = 0; i < QPS; i++) {
		assert_true(from[i] >= MESSAGES / QPS);
		assert_int_equal(ibv_destroy_qp(initiator[i]), 0);
		assert_int_equal(ibv_destroy_qp(target[i]), 0);
	}
	for (unsigned i = 0; i < SRQS; i++) {
		assert_int_equal(ibv_destroy_srq(srq[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	pair_close(&pair);
}

/* As ibv_xsrq_pingpong does: each side has an SRQ, a target and an initiator, and replies
 * on the initiator beside the target that wc.qp_num names. */
TEST_WITH(xsrq_pingpong_scheme, xrc_setup, xrc_teardown)
{
	struct verbs_side *side[2] = {&pair.a, &pair.b};
	struct ibv_qp *send_qp[2], *recv_qp[2];
	struct ibv_xrcd *xrcd[2];
	struct ibv_srq *srq[2];
	struct ibv_cq *cq[2];
	struct ibv_wc wc[2];
	int fd = xrc_file();

	for (int i = 0; i < 2; i++) {
		xrcd[i] = xrc_domain_open(side[i]->context, fd, O_CREAT);
		assert_non_null(xrcd[i]);
		cq[i] = ibv_create_cq(side[i]->context, 64, NULL, NULL, 0);
		srq[i] = xrc_srq(side[i], xrcd[i], cq[i]);
		recv_qp[i] = xrc_target(side[i]->context, xrcd[i]);
		send_qp[i] = xrc_initiator(side[i], 0);
	}
	for (int i = 0; i < 2; i++)
		xrc_connect(side[i], send_qp[i], side[!i], recv_qp[!i]);
	for (int i = 0; i < 2; i++)
		xrc_recv(side[i], srq[i], 1, 0x8000);
	xrc_send(side[0], send_qp[0], xrc_srqn(srq[1]), 2, 0, XRC_MSG);
	for (int i = 0; i < 100; i++) {
		int at = !(i & 1);

		xrc_complete(cq[at], 1, IBV_WC_SUCCESS, &wc[0]);
		assert_int_equal(wc[0].qp_num, recv_qp[at]->qp_num);
		assert_int_equal(wc[0].opcode, IBV_WC_RECV);
		xrc_complete(side[!at]->send_cq, 2, IBV_WC_SUCCESS, &wc[1]);
		xrc_recv(side[at], srq[at], 1, 0x8000);
		xrc_send(side[at], send_qp[at], xrc_srqn(srq[!at]), 2, 0, XRC_MSG);
	}
	pair_drain(&pair);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_qp(send_qp[i]), 0);
		assert_int_equal(ibv_destroy_qp(recv_qp[i]), 0);
		assert_int_equal(ibv_destroy_srq(srq[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
		assert_int_equal(ibv_close_xrcd(xrcd[i]), 0);
	}
	close(fd);
}
