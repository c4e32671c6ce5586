/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls each function that a script of faults can refuse. For faults.py.
 *
 *   fault_calls verbs|loaded|forked|cm|elsewhere|full
 *   fault_calls closed FILE
 *   fault_calls posts|batches LISTS LENGTH
 *
 * verbs, cm: ends with 0, or at the first call that fails: it prints "CALL: ERROR" then, and ends with 3. loaded: as
 * verbs, but looks up ibv_open_device() in libibverbs, which it opens itself. forked: as verbs, and once more in a
 * child. posts: sends lists between two QPs, posts again from the request that is refused, prints "refused N" for it
 * (from 1, of its list), and verifies that each message arrives once. batches: the same by ibv_wr_start() and
 * ibv_wr_complete(). elsewhere: listens with an ID of another device. full: posts a list that is longer than the RQ,
 * and again what is refused of it. closed: as verbs, in a child and then in the process itself, with this file as
 * descriptor 2.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "fault_calls.h"

#define DEPTH 64
#define LENGTH_MAX 32
#define QKEY 1

struct world {
	struct ibv_context *context;
	union ibv_gid gid;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *a, *b;
	uint64_t sent; /* number of the last request that has completed */
};

static uint64_t memory[2 * DEPTH];

static void
device_open(struct world *w, bool loaded)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *(*open)(struct ibv_device *) = ibv_open_device;

	check_other("no device", list != NULL && list[0] != NULL);
	if (loaded) {
		void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

		check_other("dlopen", library != NULL);
		*(void **)&open = dlsym(library, "ibv_open_device");
	}
	w->context = open(list[0]);
	check_pointer("open_device", w->context);
	ibv_free_device_list(list);
}

static struct ibv_qp *
qp_make(struct world *w, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp *qp =
		ibv_create_qp(w->pd, &(struct ibv_qp_init_attr){.qp_type = type,
					     .send_cq = w->cq,
					     .recv_cq = w->cq,
					     .srq = srq,
					     .cap = {DEPTH, srq != NULL ? 0 : DEPTH, 1,
						     srq != NULL ? 0 : 1, 0}});

	check_pointer("create_qp", qp);
	return qp;
}

static struct ibv_qp *
qp_make_ex(struct world *w, enum ibv_qp_type type)
{
	struct ibv_qp *qp = ibv_create_qp_ex(w->context,
		&(struct ibv_qp_init_attr_ex){.qp_type = type,
			.send_cq = w->cq,
			.recv_cq = w->cq,
			.cap = {DEPTH, DEPTH, 1, 1, 0},
			.comp_mask =
				IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.pd = w->pd,
			.send_ops_flags = IBV_QP_EX_WITH_SEND});

	check_pointer("create_qp", qp);
	return qp;
}

static void
qp_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	check("modify_qp",
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				(qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY
							   : IBV_QP_ACCESS_FLAGS)));
}

static void
qp_connect(struct world *w, struct ibv_qp *qp, uint32_t to)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = w->gid}}};

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
	check("modify_qp", ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC));
}

static void
objects_make(struct world *w)
{
	struct ibv_device_attr device;

	check("query_device", ibv_query_device(w->context, &device));
	check_minus("query_gid", ibv_query_gid(w->context, 1, 0, &w->gid));
	w->pd = ibv_alloc_pd(w->context);
	check_pointer("alloc_pd", w->pd);
	w->mr = ibv_reg_mr(w->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	check_pointer("reg_mr", w->mr);
	w->channel = ibv_create_comp_channel(w->context);
	check_pointer("create_comp_channel", w->channel);
	w->cq = ibv_create_cq(w->context, 2 * DEPTH, NULL, w->channel, 0);
	check_pointer("create_cq", w->cq);
	check("resize_cq", ibv_resize_cq(w->cq, 4 * DEPTH));
	check("req_notify_cq", ibv_req_notify_cq(w->cq, 0));
}

static struct ibv_sge
sge_of(const struct world *w, unsigned slot)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)&memory[slot], .length = 8, .lkey = w->mr->lkey};
}

/* Polls until this many requests have completed with success. */
static void
complete(struct world *w, unsigned count)
{
	struct ibv_wc wc;

	for (unsigned done = 0; done < count;) {
		int n = ibv_poll_cq(w->cq, 1, &wc);

		check("poll_cq", n < 0 ? -n : 0);
		check_other("completion", n == 0 || wc.status == IBV_WC_SUCCESS);
		/* Requests that have numbers are sent once each, and in order. */
		if (n != 0 && wc.opcode == IBV_WC_SEND && wc.wr_id != 0)
			check_other("order", wc.wr_id == ++w->sent);
		done += (unsigned)n;
	}
}

static void
message_exchange(struct world *w)
{
	struct ibv_sge from = sge_of(w, 0), to = sge_of(w, 1);
	struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &from,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;

	check("post_recv", ibv_post_recv(w->a, &recv, &bad_recv));
	check("post_srq_recv", ibv_post_srq_recv(w->srq, &recv, &bad_recv));
	check("post_send", ibv_post_send(w->a, &send, &bad_send));
	complete(w, 2);
}

static void
datagram_calls(struct world *w)
{
	struct ibv_qp *ud = qp_make(w, IBV_QPT_UD, NULL);
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = w->gid}};
	union ibv_gid group = {.raw = {0xff, 0x0e, [10] = 0xff, 0xff, 239, 1, 1, 1}};

	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {
		.version_tclass_flow = htonl(6U << 28), .sgid = w->gid, .dgid = w->gid};

	check_pointer("create_ah", ibv_create_ah(w->pd, &attr));
	/* No rule concerns it. */
	check_pointer("create_ah_from_wc", ibv_create_ah_from_wc(w->pd, &wc, &grh, 1));
	qp_init(ud);
	check("attach_mcast", ibv_attach_mcast(ud, &group, 0));
}

/* Objects of the extended calls, which the same rules concern, and a post by them. */
static void
extended_calls(struct world *w)
{
	struct ibv_cq_ex *cq =
		ibv_create_cq_ex(w->context, &(struct ibv_cq_init_attr_ex){.cqe = 1});
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;

	check_pointer("create_cq", cq);
	srq = ibv_create_srq_ex(w->context,
		&(struct ibv_srq_init_attr_ex){.attr = {.max_wr = 1, .max_sge = 1},
			.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
			.srq_type = IBV_SRQT_BASIC,
			.pd = w->pd});
	check_pointer("create_srq", srq);
	qp = qp_make_ex(w, IBV_QPT_UD);
	qp_init(qp);
	check("modify_qp",
		ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTR},
			IBV_QP_STATE));
	check("modify_qp",
		ibv_modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS},
			IBV_QP_STATE | IBV_QP_SQ_PSN));
	ex = ibv_qp_to_qp_ex(qp);
	check_other("ibv_qp_to_qp_ex", ex != NULL);
	ibv_wr_start(ex);
	check("wr_complete", ibv_wr_complete(ex));
}

static void
verbs_run(bool loaded)
{
	struct world w;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr limit = {.max_wr = DEPTH, .max_sge = 1};

	device_open(&w, loaded);
	objects_make(&w);
	w.srq = ibv_create_srq(w.pd, &(struct ibv_srq_init_attr){.attr = limit});
	check_pointer("create_srq", w.srq);
	check("query_srq", ibv_query_srq(w.srq, &limit));
	limit.srq_limit = 0;
	check("modify_srq", ibv_modify_srq(w.srq, &limit, IBV_SRQ_LIMIT));
	check_pointer("alloc_mw", ibv_alloc_mw(w.pd, IBV_MW_TYPE_1));
	w.a = qp_make(&w, IBV_QPT_RC, NULL);
	w.b = qp_make(&w, IBV_QPT_RC, w.srq);
	qp_init(w.a);
	qp_init(w.b);
	qp_connect(&w, w.a, w.b->qp_num);
	qp_connect(&w, w.b, w.a->qp_num);
	check("query_qp", ibv_query_qp(w.a, &attr, IBV_QP_STATE, &init));
	message_exchange(&w);
	datagram_calls(&w);
	extended_calls(&w);
}

static void
forked_run(void)
{
	int status;
	pid_t child;

	verbs_run(false);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		verbs_run(false);
		exit(0);
	}
	check_other("child", waitpid(child, &status, 0) == child && status == 0);
}

static void
closed_run(const char *path)
{
	pid_t child = fork();
	int status;

	check_other("child",
		child == 0 || (waitpid(child, &status, 0) == child && status == 0));
	close(STDERR_FILENO);
	check_other(
		"open", open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) == STDERR_FILENO);
	verbs_run(false);
}

static void
full_run(void)
{
	struct world w;
	struct ibv_recv_wr list[DEPTH + 6] = {0}, *from = list, *bad;

	for (unsigned i = 0; i + 1 < DEPTH + 6; i++)
		list[i].next = &list[i + 1];
	device_open(&w, false);
	objects_make(&w);
	w.a = qp_make(&w, IBV_QPT_RC, NULL);
	qp_init(w.a);
	for (unsigned i = 0; i < 3; i++) {
		int err = ibv_post_recv(w.a, from, &bad);

		check_other("ibv_post_recv", err != 0);
		printf("refused %u: %s\n", (unsigned)(bad - list) + 1,
			strerrorname_np(err));
		from = bad;
	}
}

/* Posts a list, and again what was refused of it. */
static void
list_send(struct world *w, struct ibv_send_wr *list, unsigned length)
{
	struct ibv_send_wr *from = list, *bad = NULL;

	while (from != NULL) {
		int err = ibv_post_send(w->a, from, &bad);

		if (err == 0)
			break;
		printf("refused %u: %s\n", (unsigned)(bad - list) + 1,
			strerrorname_np(err));
		check_other("bad_wr", bad >= from && bad < list + length);
		from = bad;
	}
}

/* Posts a list as a batch until that is not refused. */
static void
batch_send(struct ibv_qp *qp, const struct ibv_send_wr *list)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	int err;

	do {
		ibv_wr_start(ex);
		for (const struct ibv_send_wr *wr = list; wr != NULL; wr = wr->next) {
			ex->wr_id = wr->wr_id;
			ex->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_send(ex);
			ibv_wr_set_sge_list(ex, 1, wr->sg_list);
		}
		err = ibv_wr_complete(ex);
		if (err != 0)
			printf("refused a batch: %s\n", strerrorname_np(err));
	} while (err != 0);
}

static void
posts_run(unsigned lists, unsigned length, bool batches)
{
	struct world w = {.sent = 0};
	struct ibv_send_wr send[LENGTH_MAX];
	struct ibv_sge from[LENGTH_MAX], to[LENGTH_MAX];

	check_other("length", length >= 1 && length <= LENGTH_MAX);
	device_open(&w, false);
	objects_make(&w);
	w.a = qp_make_ex(&w, IBV_QPT_RC);
	w.b = qp_make(&w, IBV_QPT_RC, NULL);
	qp_init(w.a);
	qp_init(w.b);
	qp_connect(&w, w.a, w.b->qp_num);
	qp_connect(&w, w.b, w.a->qp_num);
	for (unsigned n = 0; n < lists; n++) {
		for (unsigned i = 0; i < length; i++) {
			struct ibv_recv_wr *bad, recv = {.sg_list = &to[i], .num_sge = 1};

			from[i] = sge_of(&w, i);
			to[i] = sge_of(&w, DEPTH + i);
			memory[i] = n * length + i + 1;
			check("post_recv", ibv_post_recv(w.b, &recv, &bad));
			send[i] = (struct ibv_send_wr){.wr_id = memory[i],
				.sg_list = &from[i],
				.num_sge = 1,
				.opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_SIGNALED,
				.next = i + 1 < length ? &send[i + 1] : NULL};
		}
		if (batches)
			batch_send(w.a, send);
		else
			list_send(&w, send, length);
		complete(&w, 2 * length);
		check_other("messages", memcmp(memory, memory + DEPTH, length * 8) == 0);
	}
}

int
main(int argc, char **argv)
{
	bool batches = argc == 4 && strcmp(argv[1], "batches") == 0;

	if (batches || (argc == 4 && strcmp(argv[1], "posts") == 0))
		posts_run((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), batches);
	else if (argc == 2 && strcmp(argv[1], "verbs") == 0)
		verbs_run(false);
	else if (argc == 2 && strcmp(argv[1], "loaded") == 0)
		verbs_run(true);
	else if (argc == 2 && strcmp(argv[1], "forked") == 0)
		forked_run();
	else if (argc == 2 && strcmp(argv[1], "cm") == 0)
		cm_run("192.0.2.1");
	else if (argc == 2 && strcmp(argv[1], "elsewhere") == 0)
		elsewhere_run();
	else if (argc == 2 && strcmp(argv[1], "full") == 0)
		full_run();
	else if (argc == 3 && strcmp(argv[1], "closed") == 0)
		closed_run(argv[2]);
	else
		return 2;
	return 0;
}
