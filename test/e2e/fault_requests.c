/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends requests between two QPs, 1 and 2, and prints what it sees: it knows nothing of faults. For faults_requests.py.
 *
 *   fault_requests rc|uc|ud|srq OPERATION list|single|batch|refused REQUESTS RECEIVES EVENTS [again]
 *
 * QP 2 of srq, which is RC, has an SRQ. QP 1 posts the requests as a list, as a batch of ibv_wr_start(), or each when the
 * one before it has completed. refused: as a batch of datagrams, behind two posts that are refused: a request with too many
 * SGEs, and a batch whose last request has no address. They print "refused: STATE", with the state of the QP. QP 2 has as many receives. The program ends when all requests, this many receives and this
 * many asynchronous events have been seen; without more requests once the CQ has failed. It prints a line each, at the
 * end: "request N: STATUS VENDOR", "receive N: STATUS", with " of request N" by the immediate
 * data, "event TYPE"; then "qp 1: STATE" and "qp 2: STATE". again: does all that twice, with a
 * RESET between, which prints "again".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "await.h"
#include "fault_calls.h"

#define REQUESTS_MAX 16
#define LENGTH 600 /* of a message: three packets, or a datagram */
#define GRH 40
#define INLINE 64
#define SGES 40          /* more than a request may have */
#define LONG (100 * 256) /* of long_read */
#define QKEY 1

struct world {
	struct ibv_context *context;
	union ibv_gid gid;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw, *window; /* of types 2 and 1 */
	struct ibv_ah *ah;
	struct ibv_cq *cq[2];
	struct ibv_srq *srq;
	struct ibv_qp *qp[2];
	enum ibv_qp_type type;
	unsigned requests, receives, events; /* expected */
	unsigned room;                       /* of a receive */
	unsigned requests_seen, receives_seen, events_seen;
	bool cq_failed;
	char lines[4096];
};

static const struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
} operations[] = {
	{"send", IBV_WR_SEND}, {"imm", IBV_WR_SEND_WITH_IMM},
	{"inv", IBV_WR_SEND_WITH_INV}, {"write", IBV_WR_RDMA_WRITE},
	{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM}, {"read", IBV_WR_RDMA_READ},
	{"cas", IBV_WR_ATOMIC_CMP_AND_SWP}, {"add", IBV_WR_ATOMIC_FETCH_AND_ADD},
	{"local_inv", IBV_WR_LOCAL_INV}, {"bind", IBV_WR_BIND_MW},
	{"bind_mw", IBV_WR_BIND_MW}, /* ibv_bind_mw(), and only as single */
	{"empty", IBV_WR_SEND},      /* without bytes */
	{"no_room", IBV_WR_SEND},    /* the same, to receives whose memory has no bytes */
	{"inline", IBV_WR_SEND},     /* the payload is copied by the post */
	{"long_read", IBV_WR_RDMA_READ}, /* several requests of the transport */
};

static uint64_t memory[((REQUESTS_MAX + 2) * (LENGTH + GRH) + LONG) / 8];

static void line_add(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void
line_add(struct world *w, const char *format, ...)
{
	size_t len = strlen(w->lines);
	va_list args;

	va_start(args, format);
	vsnprintf(w->lines + len, sizeof(w->lines) - len, format, args);
	va_end(args);
}

static struct ibv_qp *
qp_make(struct world *w, unsigned index)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = w->type,
		.send_cq = w->cq[index],
		.recv_cq = w->cq[index],
		.srq = index == 1 ? w->srq : NULL,
		.cap = {REQUESTS_MAX, REQUESTS_MAX, 1, 1, INLINE},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = w->pd};
	struct ibv_qp *qp;

	if (index == 0) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	}
	qp = ibv_create_qp_ex(w->context, &attr);
	check_pointer("create_qp", qp);
	return qp;
}

static void
qp_connect(struct world *w, struct ibv_qp *qp, uint32_t to)
{
	bool rc = w->type == IBV_QPT_RC, ud = w->type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND};

	if (!rc)
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	check("modify_qp", ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					   (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = to,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = w->gid}}};
	check("modify_qp",
		ibv_modify_qp(qp, &attr,
			ud ? IBV_QP_STATE
			   : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					(rc ? IBV_QP_MAX_DEST_RD_ATOMIC |
								IBV_QP_MIN_RNR_TIMER
					    : 0)));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1};
	check("modify_qp", ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_SQ_PSN |
					   (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
								   IBV_QP_RNR_RETRY |
								   IBV_QP_MAX_QP_RD_ATOMIC
					       : 0)));
}

static void
world_make(struct world *w, bool srq)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr srq_attr = {
		.attr = {.max_wr = REQUESTS_MAX, .max_sge = 1}};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};

	check_other("no device", list != NULL && list[0] != NULL);
	w->context = ibv_open_device(list[0]);
	check_pointer("open_device", w->context);
	ibv_free_device_list(list);
	check_other("O_NONBLOCK",
		fcntl(w->context->async_fd, F_SETFL,
			fcntl(w->context->async_fd, F_GETFL) | O_NONBLOCK) == 0);
	check_minus("query_gid", ibv_query_gid(w->context, 1, 0, &w->gid));
	w->pd = ibv_alloc_pd(w->context);
	check_pointer("alloc_pd", w->pd);
	w->mr = ibv_reg_mr(w->pd, memory, sizeof(memory),
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			IBV_ACCESS_MW_BIND);
	check_pointer("reg_mr", w->mr);
	w->mw = ibv_alloc_mw(w->pd, IBV_MW_TYPE_2);
	check_pointer("alloc_mw", w->mw);
	w->window = ibv_alloc_mw(w->pd, IBV_MW_TYPE_1);
	check_pointer("alloc_mw", w->window);
	ah.grh.dgid = w->gid;
	w->ah = ibv_create_ah(w->pd, &ah);
	check_pointer("create_ah", w->ah);
	if (srq) {
		w->srq = ibv_create_srq(w->pd, &srq_attr);
		check_pointer("create_srq", w->srq);
	}
	for (unsigned i = 0; i < 2; i++) {
		w->cq[i] = ibv_create_cq(w->context, 4 * REQUESTS_MAX, NULL, NULL, 0);
		check_pointer("create_cq", w->cq[i]);
		w->qp[i] = qp_make(w, i);
	}
	qp_connect(w, w->qp[0], w->qp[1]->qp_num);
	qp_connect(w, w->qp[1], w->qp[0]->qp_num);
}

static void
receives_post(struct world *w)
{
	if (w->srq != NULL)
		check_other("the SRQ is not in use", ibv_destroy_srq(w->srq) == EBUSY);
	for (unsigned i = 0; i < w->requests; i++) {
		struct ibv_sge to = {.addr = (uintptr_t)memory + (i + 2) * (LENGTH + GRH),
			.length = w->room,
			.lkey = w->mr->lkey};
		struct ibv_recv_wr *bad,
			recv = {.wr_id = i + 1, .sg_list = &to, .num_sge = 1};

		if (w->srq != NULL)
			check("post_srq_recv", ibv_post_srq_recv(w->srq, &recv, &bad));
		else
			check("post_recv", ibv_post_recv(w->qp[1], &recv, &bad));
	}
}

/* Request number n, from 1. Of local_inv, request 1 binds the window that the others invalidate. */
static struct ibv_send_wr
request_of(struct world *w, const struct operation *op, unsigned n, struct ibv_sge *from)
{
	bool atomic = op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		      op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	bool bind = op->opcode == IBV_WR_BIND_MW ||
		    (op->opcode == IBV_WR_LOCAL_INV && n == 1);
	struct ibv_send_wr wr = {.wr_id = n,
		.opcode = bind ? IBV_WR_BIND_MW : op->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = from,
		.num_sge = strcmp(op->name, "empty") != 0 &&
			   strcmp(op->name, "no_room") != 0};

	if (op->opcode == IBV_WR_SEND_WITH_IMM ||
		op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		wr.imm_data = htonl(n);
	*from = (struct ibv_sge){.addr = (uintptr_t)memory,
		.length = atomic ? 8 : LENGTH,
		.lkey = w->mr->lkey};
	if (strcmp(op->name, "long_read") == 0)
		from->length = LONG;
	if (strcmp(op->name, "inline") == 0) {
		wr.send_flags |= IBV_SEND_INLINE;
		*from = (struct ibv_sge){.addr = (uintptr_t)memory, .length = INLINE};
	}
	if (w->type == IBV_QPT_UD) {
		wr.wr.ud.ah = w->ah;
		wr.wr.ud.remote_qpn = w->qp[1]->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (bind) {
		wr.num_sge = 0;
		wr.bind_mw.mw = w->mw;
		wr.bind_mw.rkey = ibv_inc_rkey(w->mw->rkey);
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = w->mr,
			.addr = (uintptr_t)memory,
			.length = LENGTH,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	} else if (op->opcode == IBV_WR_LOCAL_INV || op->opcode == IBV_WR_SEND_WITH_INV) {
		wr.num_sge = op->opcode == IBV_WR_SEND_WITH_INV;
		wr.invalidate_rkey = w->mw->rkey;
	} else if (atomic) {
		wr.wr.atomic.remote_addr = (uintptr_t)memory + LENGTH;
		wr.wr.atomic.rkey = w->mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)memory + LENGTH;
		wr.wr.rdma.rkey = w->mr->rkey;
	}
	return wr;
}

static bool
completion_take(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	check_other("poll_cq", n >= 0);
	return n == 1;
}

static void
completions_take(struct world *w)
{
	struct ibv_wc wc;

	while (completion_take(w->cq[0], &wc)) {
		w->requests_seen++;
		line_add(w, "request %u: %u %u\n", (unsigned)wc.wr_id, wc.status,
			wc.vendor_err);
	}
	while (completion_take(w->cq[1], &wc)) {
		w->receives_seen++;
		line_add(w, "receive %u: %u", (unsigned)wc.wr_id, wc.status);
		if (wc.status == IBV_WC_SUCCESS && (wc.wc_flags & IBV_WC_WITH_IMM) != 0)
			line_add(w, " of request %u", ntohl(wc.imm_data));
		line_add(w, "\n");
	}
}

static void
events_take(struct world *w)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(w->context, &event) == 0) {
		w->events_seen++;
		w->cq_failed = w->cq_failed || event.event_type == IBV_EVENT_CQ_ERR;
		line_add(w, "event %u\n", event.event_type);
		ibv_ack_async_event(&event);
	}
}

static bool
world_misses(const struct world *w, unsigned requests, unsigned receives, unsigned events)
{
	return (!w->cq_failed && w->requests_seen < requests) ||
	       w->receives_seen < receives || w->events_seen < events;
}

/* Waits for these, and ends when the CQ of QP 1 has failed. */
static void
world_wait(struct world *w, unsigned requests, unsigned receives, unsigned events)
{
	struct await limit = {.pauses = 0};
	bool more = true;

	while (world_misses(w, requests, receives, events)) {
		check_other("waited in vain", more);
		more = await_goes_on(&limit);
		completions_take(w);
		events_take(w);
	}
}

static int
window_bind(struct world *w, unsigned n)
{
	struct ibv_mw_bind bind = {.wr_id = n,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = w->mr,
			.addr = (uintptr_t)memory,
			.length = LENGTH,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};

	return ibv_bind_mw(w->qp[0], w->window, &bind);
}

static void
requests_post(struct world *w, const struct operation *op, bool list)
{
	struct ibv_send_wr wr[REQUESTS_MAX], *bad;
	struct ibv_sge from;

	for (unsigned i = 0; i < w->requests && !w->cq_failed; i++) {
		wr[i] = request_of(w, op, i + 1, &from);
		if (list) {
			wr[i].next = i + 1 < w->requests ? &wr[i + 1] : NULL;
			continue;
		}
		if (strcmp(op->name, "bind_mw") == 0)
			check("bind_mw", window_bind(w, i + 1));
		else
			check("post_send", ibv_post_send(w->qp[0], &wr[i], &bad));
		world_wait(w, i + 1, 0, 0);
	}
	if (list)
		check("post_send", ibv_post_send(w->qp[0], wr, &bad));
}

/* addressed: all requests of a UD QP are. */
static int
batch_post(struct world *w, bool addressed)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(w->qp[0]);

	ibv_wr_start(ex);
	for (unsigned i = 0; i < w->requests; i++) {
		ex->wr_id = i + 1;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(ex);
		if (w->type == IBV_QPT_UD && (addressed || i + 1 < w->requests))
			ibv_wr_set_ud_addr(ex, w->ah, w->qp[1]->qp_num, QKEY);
		ibv_wr_set_sge(ex, w->mr->lkey, (uintptr_t)memory, LENGTH);
	}
	return ibv_wr_complete(ex);
}

static enum ibv_qp_state
state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check("query_qp", ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

static void
refused_post(struct world *w, const struct operation *op)
{
	struct ibv_sge from;
	struct ibv_send_wr *bad, wr = request_of(w, op, 1, &from);

	wr.num_sge = SGES;
	check_other("ibv_post_send", ibv_post_send(w->qp[0], &wr, &bad) == EINVAL);
	line_add(w, "refused: %u\n", state_of(w->qp[0]));
	check_other("ibv_wr_complete", batch_post(w, false) == EINVAL);
	line_add(w, "refused: %u\n", state_of(w->qp[0]));
}

static void
round_run(struct world *w, const struct operation *op, const char *how)
{
	w->requests_seen = w->receives_seen = 0;
	receives_post(w);
	if (strcmp(how, "refused") == 0)
		refused_post(w, op);
	if (strcmp(how, "batch") == 0 || strcmp(how, "refused") == 0)
		check("wr_complete", batch_post(w, true));
	else
		requests_post(w, op, strcmp(how, "list") == 0);
}

/* Both QPs begin again. */
static void
world_reset(struct world *w)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	for (unsigned i = 0; i < 2; i++)
		check("modify_qp", ibv_modify_qp(w->qp[i], &attr, IBV_QP_STATE));
	qp_connect(w, w->qp[0], w->qp[1]->qp_num);
	qp_connect(w, w->qp[1], w->qp[0]->qp_num);
	line_add(w, "again\n");
}

static void
states_print(const struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		printf("qp %u: %u\n", i + 1, state_of(w->qp[i]));
}

int
main(int argc, char **argv)
{
	static const char *const types[] = {"rc", "srq", "uc", "ud"};
	static const enum ibv_qp_type type_of[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	struct world w = {.requests = 0};
	const struct operation *op = operations;
	unsigned type = 0;

	/* It polls: it may not outlive a test that is ended. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc < 7 || argc > 8 || atoi(argv[4]) > REQUESTS_MAX)
		return 2;
	while (type < 4 && strcmp(types[type], argv[1]) != 0)
		type++;
	while (op < operations + sizeof(operations) / sizeof(operations[0]) &&
		strcmp(op->name, argv[2]) != 0)
		op++;
	if (type == 4 || op == operations + sizeof(operations) / sizeof(operations[0]))
		return 2;
	w.type = type_of[type];
	w.requests = (unsigned)atoi(argv[4]);
	w.receives = (unsigned)atoi(argv[5]);
	w.events = (unsigned)atoi(argv[6]);
	w.room = strcmp(op->name, "no_room") == 0 ? 0 : LENGTH + GRH;
	world_make(&w, type == 1);
	if (argc == 8) {
		round_run(&w, op, argv[3]);
		world_wait(&w, w.requests, w.requests, 0);
		world_reset(&w);
	}
	round_run(&w, op, argv[3]);
	world_wait(&w, w.requests, w.receives, w.events);
	printf("%s", w.lines);
	states_print(&w);
	return 0;
}
