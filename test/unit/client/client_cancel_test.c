/* SPDX-License-Identifier: BSD-3-Clause */
/* pthread_cancel(3) ends a thread of a client after the verbs that it is in: other threads can use
 * and destroy the objects. */
#include <fcntl.h>

#include "client_fixture.h"

#include "../../e2e/flow_end.h"
#include "../../lib/cancelled.h"

#define MESSAGES 100

struct cancel_fixture {
	struct client_fixture client;
	struct end end;
	int file;
	pid_t child;
	const char *failure; /* of a thread */
};

static void
cancel_open(struct cancel_fixture *f)
{
	memset(f, 0, sizeof(*f));
	fixture_open(&f->client);
	daemon_begin(&f->client, NULL);
	end_open(&f->end);
	assert_int_equal(qp_init(f->end.qp), 0);
	assert_int_equal(qp_connect(f->end.qp, f->end.qp->qp_num), 0);
}

static void
cancel_close(struct cancel_fixture *f)
{
	assert_int_equal(end_close(&f->end), 0);
	fixture_close(&f->client);
}

static void
expect_return(struct cancel_fixture *f, void (*fn)(void *arg))
{
	struct cancelled c = {.fn = fn, .arg = f};
	pthread_t thread;

	thread_start(&thread, cancelled_main, &c);
	assert_true(cancelled_after_return(thread, &c));
	assert_null(f->failure);
}

/* Polls until n completions have come. */
static const char *
completions_await(struct ibv_cq *cq, unsigned n)
{
	struct await polling = {.pauses = 0};
	struct ibv_wc wc;

	while (n != 0) {
		int got = ibv_poll_cq(cq, 1, &wc);

		if (got < 0 || (got == 1 && wc.status != IBV_WC_SUCCESS))
			return "a completion";
		if (got == 0 && !await_goes_on(&polling))
			return "no completion";
		n -= (unsigned)got;
	}
	return NULL;
}

/* Each message is sent and received by this thread or the progress thread, and raises an event. */
static void
messages_exchange(void *arg)
{
	struct cancel_fixture *f = arg;
	struct end *e = &f->end;

	for (unsigned i = 0; i < MESSAGES && f->failure == NULL; i++) {
		if (ibv_req_notify_cq(e->cq, 0) != 0 || recv_post(e, 0) != 0 ||
			send_post(e, DEPTH) != 0)
			f->failure = "a post";
		else
			f->failure = completions_await(e->cq, 2);
	}
}

TEST(posts_and_polls_return)
{
	struct cancel_fixture f;
	struct ibv_cq *cq;
	void *context;

	cancel_open(&f);
	expect_return(&f, messages_exchange);
	for (unsigned i = 0; i < MESSAGES; i++) {
		assert_int_equal(ibv_get_cq_event(f.end.channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
	}
	messages_exchange(&f);
	assert_null(f.failure);
	for (unsigned i = 0; i < MESSAGES; i++) {
		assert_int_equal(ibv_get_cq_event(f.end.channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
	}
	cancel_close(&f);
}

static void
control_calls_make(void *arg)
{
	struct cancel_fixture *f = arg;
	struct ibv_qp_init_attr init;
	struct ibv_port_attr port;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp = qp_make(&f->end, IBV_QPT_RC, NULL);

	if (qp == NULL || qp_init(qp) != 0 || qp_connect(qp, qp->qp_num) != 0 ||
		ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0 ||
		ibv_query_port(f->end.ctx, 1, &port) != 0 || ibv_destroy_qp(qp) != 0)
		f->failure = "a control call";
}

static void
domain_open_and_close(void *arg)
{
	struct cancel_fixture *f = arg;
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = f->file,
		.oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(f->end.ctx, &attr);

	if (xrcd == NULL || ibv_close_xrcd(xrcd) != 0)
		f->failure = "an XRC domain";
}

TEST(control_calls_return)
{
	struct cancel_fixture f;

	cancel_open(&f);
	f.file = open(f.client.dir, O_RDONLY | O_CLOEXEC);
	assert_true(f.file >= 0);
	for (unsigned i = 0; i < 2; i++) {
		expect_return(&f, control_calls_make);
		expect_return(&f, domain_open_and_close);
	}
	close(f.file);
	cancel_close(&f);
}

static void
port_open(void *arg)
{
	struct cancel_fixture *f = arg;

	if (!device_open(&f->end))
		f->failure = "ibv_open_device";
}

/* ibv_close_device() closes descriptors without a lock, where a thread may end, after this one. */
TEST(the_port_is_opened)
{
	struct cancel_fixture f;

	memset(&f, 0, sizeof(f));
	fixture_open(&f.client);
	daemon_begin(&f.client, NULL);
	expect_return(&f, port_open);
	assert_int_equal(ibv_close_device(f.end.ctx), 0);
	assert_true(device_open(&f.end));
	assert_int_equal(ibv_close_device(f.end.ctx), 0);
	fixture_close(&f.client);
}

#define CHILD_LIVES 7

static void
child_make(void *arg)
{
	struct cancel_fixture *f = arg;

	if (!threads_asleep_await())
		f->failure = "a thread that does not sleep";
	f->child = fork();
	if (f->child == 0)
		_exit(CHILD_LIVES);
}

/* The only thread of the child is one that is to end. */
TEST(a_child_is_forked)
{
	struct cancel_fixture f;
	int status;

	cancel_open(&f);
	expect_return(&f, child_make);
	assert_true(f.child > 0);
	status = await_child(f.child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), CHILD_LIVES);
	cancel_close(&f);
}

static void *
cq_destroy(void *cq)
{
	pthread_cancel(pthread_self());
	(void)ibv_destroy_cq(cq);
	return NULL;
}

/* That is a cancellation point: it ends a wait that the application would wait for ever. */
TEST(destroy_waits_for_acknowledgements)
{
	struct cancel_fixture f;
	struct ibv_cq *cq;
	pthread_t thread;
	void *end;

	cancel_open(&f);
	assert_int_equal(ibv_req_notify_cq(f.end.cq, 0), 0);
	assert_int_equal(recv_post(&f.end, 0), 0);
	assert_int_equal(send_post(&f.end, DEPTH), 0);
	assert_null(completions_await(f.end.cq, 2));
	assert_int_equal(ibv_get_cq_event(f.end.channel, &cq, &end), 0);
	assert_int_equal(ibv_destroy_qp(f.end.qp), 0);
	thread_start(&thread, cq_destroy, cq);
	assert_int_equal(pthread_join(thread, &end), 0);
	assert_ptr_equal(end, PTHREAD_CANCELED);
	assert_int_equal(pthread_mutex_trylock(&cq->mutex), 0);
	pthread_mutex_unlock(&cq->mutex);
	ibv_ack_cq_events(cq, 1);
	f.end.qp = qp_make(&f.end, IBV_QPT_RC, NULL);
	assert_non_null(f.end.qp);
	cancel_close(&f);
}

struct destroyer {
	struct ibv_qp *qp;
	pid_t tid;
};

static void *
qp_destroy(void *arg)
{
	struct destroyer *d = arg;

	__atomic_store_n(&d->tid, gettid(), __ATOMIC_RELEASE);
	pthread_cancel(pthread_self());
	return (void *)(intptr_t)ibv_destroy_qp(d->qp);
}

/* A QP is taken apart before that wait. So it is no cancellation point: the next call would take the QP
 * apart once more. */
TEST(destroy_of_a_qp_ends)
{
	struct ibv_qp_attr drain = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event event;
	struct cancel_fixture f;
	struct destroyer d = {.tid = 0};
	pthread_t thread;
	void *rc;

	cancel_open(&f);
	assert_int_equal(ibv_modify_qp(f.end.qp, &drain,
				 IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		0);
	assert_int_equal(ibv_get_async_event(f.end.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	d.qp = f.end.qp;
	thread_start(&thread, qp_destroy, &d);
	await(thread_sleeps(__atomic_load_n(&d.tid, __ATOMIC_ACQUIRE)));
	assert_int_equal(pthread_tryjoin_np(thread, &rc), EBUSY);
	ibv_ack_async_event(&event);
	assert_int_equal(pthread_join(thread, &rc), 0);
	assert_null(rc);
	f.end.qp = qp_make(&f.end, IBV_QPT_RC, NULL);
	assert_non_null(f.end.qp);
	cancel_close(&f);
}
