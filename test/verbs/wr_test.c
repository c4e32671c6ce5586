/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_wr_post(3): sections of requests. wr_qp_test.c covers the QPs that support it. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>

#include "case.h"
#include "wr_fixture.h"

static uint64_t
remote_addr(size_t offset)
{
	return (uintptr_t)pair.b.mem + WR_FAR + offset;
}

/* Every request type in one section, with every way to set data. */
TEST(every_request_type)
{
	static const size_t at[3] = {7, 5000, 9000};
	struct ibv_sge sge[3] = {{.length = 900}, {.length = 0}, {.length = 1300}};
	struct ibv_data_buf buf[2];
	uint64_t before[2] = {41, 41};
	uint8_t copy[60];
	struct ibv_wc wc;

	wr_open((struct verbs_pair_conf){.ops = WR_RC_OPS});
	memcpy(pair.b.mem + WR_FAR + 8192, before, sizeof(before));
	for (int i = 0; i < 3; i++) {
		sge[i].addr = (uintptr_t)pair.a.mem + at[i];
		sge[i].lkey = pair.a.mr->lkey;
		assert_int_equal(
			pair_post_recv(&pair.b, 0, (uint64_t)i, (size_t)i * 4096, 4096),
			0);
	}
	buf[0] = (struct ibv_data_buf){.addr = pair.a.mem + 100, .length = 10};
	buf[1] = (struct ibv_data_buf){.addr = pair.a.mem + 200, .length = 20};

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 3, sge);
	ex->wr_id = 2;
	ibv_wr_send_imm(ex, htonl(77));
	ibv_wr_set_inline_data_list(ex, 2, buf);
	ex->wr_id = 3;
	ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	wr_set_local_sge(3, 3000);
	ex->wr_id = 4;
	ibv_wr_rdma_write_imm(ex, wr_remote->rkey, remote_addr(4096), htonl(78));
	ibv_wr_set_inline_data(ex, pair.a.mem + 20000, 60);
	ex->wr_id = 5;
	ibv_wr_rdma_read(ex, wr_remote->rkey, remote_addr(0));
	wr_set_local_sge(WR_FAR, 3000);
	ex->wr_id = 6;
	ibv_wr_atomic_fetch_add(ex, wr_remote->rkey, remote_addr(8192), 1);
	wr_set_local_sge(WR_FAR + 4096, 8);
	ex->wr_id = 7;
	ibv_wr_atomic_cmp_swp(ex, wr_remote->rkey, remote_addr(8200), 41, 99);
	wr_set_local_sge(WR_FAR + 4104, 8);
	ex->wr_id = 8;
	/* an empty message; there is no receive left, so it gets RNR NAKs until one is
	 * posted */
	ibv_wr_send(ex);
	/* Inline data may be overwritten after the call. */
	memcpy(copy, pair.a.mem + 20000, 60);
	memset(pair.a.mem + 20000, 0, 60);
	/* nothing is posted before ibv_wr_complete() */
	assert_int_equal(pair_poll(&pair), 0);
	assert_int_equal(ibv_wr_complete(ex), 0);

	wr_expect_success(pair.a.send_cq, 1, IBV_WC_SEND, &wc);
	wr_expect_success(pair.a.send_cq, 2, IBV_WC_SEND, &wc);
	wr_expect_success(pair.a.send_cq, 3, IBV_WC_RDMA_WRITE, &wc);
	wr_expect_success(pair.a.send_cq, 4, IBV_WC_RDMA_WRITE, &wc);
	wr_expect_success(pair.a.send_cq, 5, IBV_WC_RDMA_READ, &wc);
	assert_int_equal(wc.byte_len, 3000);
	wr_expect_success(pair.a.send_cq, 6, IBV_WC_FETCH_ADD, &wc);
	assert_int_equal(wc.byte_len, 8);
	wr_expect_success(pair.a.send_cq, 7, IBV_WC_COMP_SWAP, &wc);
	assert_int_equal(pair_post_recv(&pair.b, 0, 3, 0, 4096), 0);
	wr_expect_success(pair.a.send_cq, 8, IBV_WC_SEND, &wc);

	wr_expect_success(pair.b.recv_cq, 0, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, 2200);
	assert_memory_equal(pair.b.mem, pair.a.mem + 7, 900);
	assert_memory_equal(pair.b.mem + 900, pair.a.mem + 9000, 1300);
	wr_expect_success(pair.b.recv_cq, 1, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, 30);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(77));
	assert_memory_equal(pair.b.mem + 4096, pair.a.mem + 100, 10);
	assert_memory_equal(pair.b.mem + 4106, pair.a.mem + 200, 20);
	wr_expect_success(pair.b.recv_cq, 2, IBV_WC_RECV_RDMA_WITH_IMM, &wc);
	assert_int_equal(wc.byte_len, 60);
	assert_int_equal(wc.imm_data, htonl(78));
	assert_memory_equal(pair.b.mem + WR_FAR + 4096, copy, 60);
	wr_expect_success(pair.b.recv_cq, 3, IBV_WC_RECV, &wc);
	assert_int_equal(wc.byte_len, 0);

	assert_memory_equal(pair.a.mem + WR_FAR, pair.b.mem + WR_FAR, 3000);
	assert_memory_equal(pair.a.mem + WR_FAR + 4096, before, sizeof(before));
	memcpy(before, pair.b.mem + WR_FAR + 8192, sizeof(before));
	assert_int_equal(before[0], 42);
	assert_int_equal(before[1], 99);
	wr_close();
}

static void
section_begin(void)
{
	ibv_wr_start(ex);
	ex->wr_id = 11;
	ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	wr_set_local_sge(0, 100);
}

TEST(invalid_request_fails_section)
{
	struct ibv_sge sge[4] = {0};
	uint8_t *inline_data;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	wr_open((struct verbs_pair_conf){
		.ops = WR_RC_OPS & ~(unsigned)IBV_QP_EX_WITH_SEND_WITH_IMM});
	assert_int_equal(ibv_query_qp(pair.a.qp[0], &attr, 0, &init), 0);
	inline_data = pair.a.mem;

	section_begin();
	ibv_wr_set_sge_list(ex, 4, sge);
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_set_inline_data(ex, inline_data, init.cap.max_inline_data + 1);
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_set_sge(ex, 0, 0, UINT32_C(0x80000001));
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_rdma_read(ex, wr_remote->rkey, remote_addr(0));
	ibv_wr_set_inline_data(ex, inline_data, 8); /* a READ cannot be inline */
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_atomic_fetch_add(ex, wr_remote->rkey, remote_addr(0), 1);
	wr_set_local_sge(0, 4);
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_atomic_fetch_add(ex, wr_remote->rkey, remote_addr(4), 1);
	wr_set_local_sge(0, 8);
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_send_imm(ex, 0); /* not in send_ops_flags */
	wr_set_local_sge(0, 8);
	ibv_wr_send_tso(ex, inline_data, 1, 1); /* the first error is reported */
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_set_ud_addr(ex, NULL, 0, 0);
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_set_xrc_srqn(ex, 1);
	wr_expect_refused(EINVAL);
	section_begin();
	ibv_wr_send_tso(ex, inline_data, 1, 1);
	wr_expect_refused(EOPNOTSUPP);
	section_begin();
	ex->wr_flags = IBV_SEND_IP_CSUM;
	ibv_wr_send(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	wr_expect_refused(EINVAL);
	ibv_wr_start(ex);
	wr_set_local_sge(0, 8); /* without a request */
	wr_expect_refused(EINVAL);
	/* The next section works. */
	section_begin();
	assert_int_equal(ibv_wr_complete(ex), 0);
	wr_expect_success(pair.a.send_cq, 11, IBV_WC_RDMA_WRITE, &wc);
	wr_close();
}

TEST(full_queue_is_enomem)
{
	struct ibv_wc wc[8];

	wr_open((struct verbs_pair_conf){.ops = WR_UC_OPS});
	ibv_wr_start(ex);
	for (int i = 0; i < 9; i++)
		ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	wr_expect_refused(ENOMEM);
	ibv_wr_start(ex);
	for (int i = 0; i < 8; i++)
		ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_drain(&pair);
	/* Polling makes room. */
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 8);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 1);
	wr_close();
}

TEST(aborted_section_posts_nothing)
{
	struct ibv_wc wc;

	wr_open((struct verbs_pair_conf){.ops = WR_UC_OPS});
	for (int i = 0; i < 20; i++) {
		section_begin();
		ibv_wr_abort(ex);
	}
	pair_no_completion(&pair, pair.a.send_cq);
	ibv_wr_start(ex);
	assert_int_equal(ibv_wr_complete(ex), 0); /* an empty section */
	pair_no_completion(&pair, pair.a.send_cq);
	/* ibv_post_send() and sections on one queue. */
	assert_int_equal(pair_post_recv(&pair.b, 0, 0, 0, 4096), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 100, IBV_SEND_SIGNALED), 0);
	section_begin();
	assert_int_equal(ibv_wr_complete(ex), 0);
	wr_expect_success(pair.a.send_cq, 1, IBV_WC_SEND, &wc);
	wr_expect_success(pair.a.send_cq, 11, IBV_WC_RDMA_WRITE, &wc);
	wr_close();
}

TEST(wr_flags_apply_to_each_request)
{
	struct ibv_wc wc[3];

	wr_open((struct verbs_pair_conf){.ops = WR_UC_OPS});
	ibv_wr_start(ex);
	ex->wr_flags = 0;
	ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	/* Programs share flags with ibv_post_send(): IBV_SEND_INLINE is ignored, the
	 * setter decides. */
	ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	ex->wr_id = 2;
	ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	wr_set_local_sge(0, 4000);
	assert_int_equal(ibv_wr_complete(ex), 0);
	wr_expect_success(pair.a.send_cq, 2, IBV_WC_RDMA_WRITE, wc);
	pair_no_completion(&pair, pair.a.send_cq);
	assert_memory_equal(pair.b.mem + WR_FAR, pair.a.mem, 4000);
	wr_close();

	wr_open((struct verbs_pair_conf){.ops = WR_UC_OPS, .sig_all = true});
	ex->wr_flags = 0;
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, 2);
	wr_close();
}

TEST(sections_in_reset_and_error)
{
	struct ibv_wc wc;

	wr_open((struct verbs_pair_conf){.ops = WR_UC_OPS, .unconnected = true});
	section_begin();
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	pair_connect(&pair, 0);
	pair_modify_state(pair.a.qp[0], IBV_QPS_ERR);
	section_begin();
	assert_int_equal(ibv_wr_complete(ex), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 11);
	wr_close();
}

TEST(uc_requests)
{
	struct ibv_wc wc;

	wr_open((struct verbs_pair_conf){.ops = WR_UC_OPS, .type = IBV_QPT_UC});
	assert_int_equal(pair_post_recv(&pair.b, 0, 5, 0, 4096), 0);
	section_begin();
	ex->wr_id = 12;
	ibv_wr_send_imm(ex, htonl(5));
	ibv_wr_set_inline_data(ex, pair.a.mem + 70, 64);
	assert_int_equal(ibv_wr_complete(ex), 0);
	wr_expect_success(pair.a.send_cq, 11, IBV_WC_RDMA_WRITE, &wc);
	wr_expect_success(pair.a.send_cq, 12, IBV_WC_SEND, &wc);
	wr_expect_success(pair.b.recv_cq, 5, IBV_WC_RECV, &wc);
	assert_int_equal(wc.imm_data, htonl(5));
	assert_memory_equal(pair.b.mem, pair.a.mem + 70, 64);
	assert_memory_equal(pair.b.mem + WR_FAR, pair.a.mem, 100);
	wr_close();
}

#define THREADS 3
#define SECTIONS 2000

/* Threads post sections of two WRITEs and single requests: a section stays contiguous. */
static void *
poster(void *arg)
{
	uint64_t number = (uintptr_t)arg;

	for (int i = 0; i < SECTIONS;) {
		bool posted;

		if (number == 0) {
			struct ibv_send_wr wr = {.wr_id = 0,
				.opcode = IBV_WR_RDMA_WRITE,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = {remote_addr(0), wr_remote->rkey}};
			struct ibv_send_wr *bad;

			posted = ibv_post_send(pair.a.qp[0], &wr, &bad) == 0;
		} else {
			ibv_wr_start(ex);
			ex->wr_flags = IBV_SEND_SIGNALED;
			ex->wr_id = number * 2;
			ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
			ex->wr_id = number * 2 + 1;
			ibv_wr_rdma_write(ex, wr_remote->rkey, remote_addr(0));
			posted = ibv_wr_complete(ex) == 0;
		}
		i += posted;
		if (!posted)
			sched_yield();
	}
	return NULL;
}

TEST(section_stays_contiguous)
{
	pthread_t threads[THREADS];
	uint64_t half = 0;

	wr_open((struct verbs_pair_conf){.ops = WR_UC_OPS});
	pair_threads_start(&pair);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, poster, (void *)i), 0);
	for (int n = 0; n < SECTIONS * (2 * THREADS - 1); n++) {
		struct ibv_wc wc;

		pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (half != 0)
			assert_int_equal(wc.wr_id, half + 1);
		half = half == 0 && wc.wr_id != 0 ? wc.wr_id : 0;
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pair_threads_stop(&pair);
	wr_close();
}
