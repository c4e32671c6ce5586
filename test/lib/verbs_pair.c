/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "await.h"
#include "case.h"
#include "verbs_pair.h"

#define IDLE_POLLS 200

uint64_t
pair_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static unsigned
fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static void
conf_set_defaults(struct verbs_pair_conf *c)
{
	c->engines = c->engines != 0 ? c->engines : 1;
	c->qps = c->qps != 0 ? c->qps : 1;
	c->srq_sge = c->srq_sge != 0 ? c->srq_sge : 1;
	c->cqe = c->cqe != 0 ? c->cqe : 4096;
	c->cap.max_send_wr = c->cap.max_send_wr != 0 ? c->cap.max_send_wr : 64;
	c->cap.max_recv_wr = c->cap.max_recv_wr != 0 ? c->cap.max_recv_wr : 64;
	c->cap.max_send_sge = c->cap.max_send_sge != 0 ? c->cap.max_send_sge : 1;
	c->cap.max_recv_sge = c->cap.max_recv_sge != 0 ? c->cap.max_recv_sge : 1;
	c->mtu = c->mtu != 0 ? c->mtu : IBV_MTU_1024;
	c->rnr_retry = c->rnr_retry == 0 ? 7 : c->rnr_retry == 8 ? 0 : c->rnr_retry;
	c->retry = c->retry == 0 ? 7 : c->retry == 8 ? 0 : c->retry;
	c->timeout = c->timeout == 0 ? 14 : c->timeout == 255 ? 0 : c->timeout;
	c->rnr_timer = c->rnr_timer != 0 ? c->rnr_timer : 1;
	c->type = c->type != 0 ? c->type : IBV_QPT_RC;
	c->bytes = c->bytes != 0 ? c->bytes : 1 << 20;
}

struct ibv_qp *
pair_qp_create(const struct verbs_pair_conf *conf, struct verbs_side *s, unsigned engine)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.srq = s->srq,
		.cap = conf->cap,
		.qp_type = conf->type,
		.sq_sig_all = conf->sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     (conf->ops != 0 ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = s->pd,
		.send_ops_flags = conf->ops,
	};
	struct ibv_qp *qp;

	assert_int_equal(rocade_context_set_engine(s->context, (int)engine), 0);
	qp = ibv_create_qp_ex(s->context, &attr);
	assert_non_null(qp);
	assert_int_equal(rocade_context_set_engine(s->context, -1), 0);
	return qp;
}

static struct ibv_cq *
cq_create(const struct verbs_pair_conf *conf, struct ibv_context *context)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = conf->cqe, .wc_flags = conf->wc_flags};
	struct ibv_cq *cq =
		conf->wc_flags != 0
			? ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &attr))
			: ibv_create_cq(context, (int)conf->cqe, NULL, NULL, 0);

	assert_non_null(cq);
	return cq;
}

static void
side_open(const struct verbs_pair_conf *conf, struct verbs_side *s)
{
	s->context = ibv_open_device(rocade_port_device(s->port));
	assert_non_null(s->context);
	s->pd = ibv_alloc_pd(s->context);
	assert_non_null(s->pd);
	s->send_cq = cq_create(conf, s->context);
	s->recv_cq = cq_create(conf, s->context);
	if (conf->srq_wr != 0) {
		struct ibv_srq_init_attr attr = {
			.attr = {.max_wr = conf->srq_wr, .max_sge = conf->srq_sge}};

		s->srq = ibv_create_srq(s->pd, &attr);
		assert_non_null(s->srq);
	}
	s->mem = aligned_alloc(4096, (conf->bytes + 4095) & ~(size_t)4095);
	assert_non_null(s->mem);
	memset(s->mem, 0, conf->bytes);
	s->mr = ibv_reg_mr(s->pd, s->mem, conf->bytes, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(s->mr);
	assert_int_equal(ibv_query_gid(s->context, 1, 0, &s->gid), 0);
	for (unsigned i = 0; i < conf->qps; i++)
		s->qp[i] = pair_qp_create(conf, s, i % conf->engines);
}

static void
modify_to_init(struct ibv_qp *qp, unsigned access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};

	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS),
		0);
}

void
pair_to_init(struct ibv_qp *qp)
{
	modify_to_init(qp, 0);
}

void
pair_to_rtr(const struct verbs_pair_conf *conf, struct ibv_qp *qp,
	const union ibv_gid *peer, uint32_t peer_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = conf->mtu,
		.dest_qp_num = peer_qpn,
		.rq_psn = 0xFFFFF0, /* PSNs wrap early in every test */
		.max_dest_rd_atomic = conf->depth,
		.min_rnr_timer = (uint8_t)conf->rnr_timer,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
	};

	attr.ah_attr.grh.dgid = *peer;
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN |
				(qp->qp_type == IBV_QPT_RC ? IBV_QP_MAX_DEST_RD_ATOMIC |
								     IBV_QP_MIN_RNR_TIMER
							   : 0)),
		0);
}

void
pair_to_rts(const struct verbs_pair_conf *conf, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = (uint8_t)conf->timeout,
		.retry_cnt = (uint8_t)conf->retry,
		.rnr_retry = (uint8_t)conf->rnr_retry,
		.sq_psn = 0xFFFFF0,
		.max_rd_atomic = conf->depth,
	};
	int rc = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC;

	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_SQ_PSN |
					 (qp->qp_type == IBV_QPT_RC ? rc : 0)),
		0);
}

void
pair_ud_to_rts(struct ibv_qp *qp, uint32_t qkey, uint32_t sq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey, .sq_psn = sq_psn};

	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

void
pair_modify_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

void
pair_connect(struct verbs_pair *p, unsigned i)
{
	struct ibv_qp *a = p->a.qp[i], *b = p->b.qp[i];

	modify_to_init(a, p->conf.access);
	modify_to_init(b, p->conf.access);
	pair_to_rtr(&p->conf, a, &p->b.gid, b->qp_num);
	pair_to_rtr(&p->conf, b, &p->a.gid, a->qp_num);
	pair_to_rts(&p->conf, a);
	pair_to_rts(&p->conf, b);
}

void
pair_open(struct verbs_pair *p, const struct verbs_pair_conf *conf)
{
	struct rocade_port_conf port[2];
	struct rocade_port *ports[2];
	int rc;

	memset(p, 0, sizeof(*p));
	p->fds = fds_open();
	p->conf = *conf;
	conf_set_defaults(&p->conf);
	memset(port, 0, sizeof(port));
	for (int i = 0; i < 2; i++) {
		port[i].size = sizeof(port[i]);
		port[i].engines = (uint16_t)p->conf.engines;
		port[i].mr_fault_handler = conf->mr_fault_handler;
		port[i].flight_recorder = conf->flight_recorder;
		port[i].cc = conf->cc;
		port[i].max_qp = 1024;
	}
	port[0].addresses = conf->ipv6 ? "2001:db8::1/64" : "192.0.2.1/24";
	port[1].addresses = conf->ipv6 ? "2001:db8::2/64" : "192.0.2.2/24";
	rc = rocade_open_loop(port, ports);
	if (rc != 0)
		print_error("rocade_open_loop: %s\n", rocade_error());
	assert_int_equal(rc, 0);
	p->a.port = ports[0];
	p->b.port = ports[1];
	side_open(&p->conf, &p->a);
	side_open(&p->conf, &p->b);
	for (unsigned i = 0; i < p->conf.qps && !conf->unconnected; i++)
		pair_connect(p, i);
}

static void
side_close(const struct verbs_pair_conf *conf, struct verbs_side *s)
{
	for (unsigned i = 0; i < conf->qps; i++) {
		if (s->qp[i] != NULL)
			assert_int_equal(ibv_destroy_qp(s->qp[i]), 0);
	}
	if (s->srq != NULL)
		assert_int_equal(ibv_destroy_srq(s->srq), 0);
	assert_int_equal(ibv_destroy_cq(s->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(s->recv_cq), 0);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	/* EBUSY if one of its objects were left. */
	assert_int_equal(ibv_dealloc_pd(s->pd), 0);
	assert_int_equal(ibv_close_device(s->context), 0);
	free(s->mem);
}

void
pair_close(struct verbs_pair *p)
{
	pair_threads_stop(p);
	side_close(&p->conf, &p->a);
	side_close(&p->conf, &p->b);
	assert_int_equal(rocade_close_port(p->a.port), 0);
	assert_int_equal(rocade_close_port(p->b.port), 0);
	if (p->fds != 0)
		assert_int_equal(fds_open(), p->fds);
}

unsigned
pair_poll(struct verbs_pair *p)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < p->conf.engines; i++) {
		moved += rocade_engine_poll(rocade_port_engine(p->a.port, i));
		moved += rocade_engine_poll(rocade_port_engine(p->b.port, i));
	}
	return moved;
}

void
pair_drain(struct verbs_pair *p)
{
	unsigned idle = 0;

	while (idle < IDLE_POLLS)
		idle = pair_poll(p) == 0 ? idle + 1 : 0;
}

struct poll_thread {
	struct verbs_pair *p;
	unsigned engine;
};

static void *
poll_thread_run(void *arg)
{
	struct poll_thread thread = *(struct poll_thread *)arg;

	free(arg);
	while (!__atomic_load_n(&thread.p->stop, __ATOMIC_ACQUIRE)) {
		unsigned moved = rocade_engine_poll(
			rocade_port_engine(thread.p->a.port, thread.engine));

		moved += rocade_engine_poll(
			rocade_port_engine(thread.p->b.port, thread.engine));
		if (moved == 0)
			sched_yield();
	}
	return NULL;
}

void
pair_threads_start(struct verbs_pair *p)
{
	__atomic_store_n(&p->stop, false, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < p->conf.engines; i++) {
		struct poll_thread *arg = malloc(sizeof(*arg));

		assert_non_null(arg);
		*arg = (struct poll_thread){.p = p, .engine = i};
		assert_int_equal(
			pthread_create(&p->runner[i], NULL, poll_thread_run, arg), 0);
		p->runners++;
	}
}

void
pair_threads_stop(struct verbs_pair *p)
{
	__atomic_store_n(&p->stop, true, __ATOMIC_RELEASE);
	while (p->runners != 0)
		assert_int_equal(pthread_join(p->runner[--p->runners], NULL), 0);
}

static void
poll_or_yield(struct verbs_pair *p)
{
	if (p->runners != 0)
		sched_yield();
	else
		pair_poll(p);
}

/* Returns how many came. */
static int
wcs_take(struct ibv_cq *cq, struct ibv_wc *wc, int n)
{
	int rc = ibv_poll_cq(cq, n, wc);

	assert_true(rc >= 0);
	return rc;
}

void
pair_poll_cq(struct verbs_pair *p, struct ibv_cq *cq, struct ibv_wc *wc, int n)
{
	int got = 0;

	if (!awaited_by(poll_or_yield(p), (got += wcs_take(cq, wc + got, n - got)) == n))
		fail_msg("waited in vain: %d of %d completions", got, n);
}

void
pair_no_completion(struct verbs_pair *p, struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (int i = 0; i < IDLE_POLLS; i++)
		poll_or_yield(p);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

struct ibv_sge
pair_sge(struct verbs_side *s, size_t offset, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)s->mem + offset, .length = len, .lkey = s->mr->lkey};
}

int
pair_send(struct verbs_side *s, unsigned qp, uint64_t wr_id, size_t offset, uint32_t len,
	unsigned flags)
{
	struct ibv_sge sge = pair_sge(s, offset, len);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = flags,
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(s->qp[qp], &wr, &bad);
}

int
pair_post_srq(struct verbs_side *s, uint64_t wr_id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = pair_sge(s, offset, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(s->srq, &wr, &bad);
}

int
pair_post_recv(
	struct verbs_side *s, unsigned qp, uint64_t wr_id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = pair_sge(s, offset, len);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(s->qp[qp], &wr, &bad);
}

bool
fd_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

struct ibv_async_event
pair_event(struct verbs_pair *p, struct verbs_side *s)
{
	struct ibv_async_event event;

	await_by(poll_or_yield(p), fd_readable(s->context->async_fd));
	assert_int_equal(ibv_get_async_event(s->context, &event), 0);
	ibv_ack_async_event(&event);
	return event;
}

void
pair_no_event(struct verbs_pair *p, struct verbs_side *s)
{
	for (int i = 0; i < IDLE_POLLS; i++)
		poll_or_yield(p);
	assert_false(fd_readable(s->context->async_fd));
}

uint64_t
pair_stat(struct verbs_side *s, const char *name)
{
	struct rocade_stat rows[128];
	unsigned n = rocade_port_stats(s->port, -1, rows, 128);

	for (unsigned i = 0; i < n && i < 128; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].value;
	}
	fail_msg("no counter %s", name);
	return 0;
}
