/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels: one event for each arming, solicited events, and no lost
 * wake-up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "case.h"
#include "verbs_pair.h"

#define LEN 16

static struct verbs_pair pair;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq; /* a CQ of b with the channel */
/* a QP of b that receives into `cq`; pair.a.qp[0] sends to it */
static struct ibv_qp *qp;

static void
open_channel(void)
{
	struct verbs_pair_conf conf = {.unconnected = true};
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 8,
						.max_send_sge = 1,
						.max_recv_wr = 64,
						.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};

	pair_open(&pair, &conf);
	channel = ibv_create_comp_channel(pair.b.context);
	assert_non_null(channel);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	cq = ibv_create_cq(pair.b.context, 256, &pair, channel, 0);
	assert_non_null(cq);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(pair.b.pd, &attr);
	assert_non_null(qp);
	pair_to_init(qp);
	pair_to_rtr(&pair.conf, qp, &pair.a.gid, pair.a.qp[0]->qp_num);
	pair_to_rts(&pair.conf, qp);
	pair_to_init(pair.a.qp[0]);
	pair_to_rtr(&pair.conf, pair.a.qp[0], &pair.b.gid, qp->qp_num);
	pair_to_rts(&pair.conf, pair.a.qp[0]);
}

static void
close_channel(void)
{
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	pair_close(&pair);
}

static void
receive_post(uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)pair.b.mem, LEN, pair.b.mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

/* Sends a message that b receives. */
static void
message_send(unsigned flags)
{
	struct ibv_wc wc;

	receive_post(0);
	assert_int_equal(pair_send(&pair.a, 0, 0, 0, LEN, flags | IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, &wc, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static bool
event_read(void)
{
	struct ibv_cq *got = NULL;
	void *context = NULL;
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
	bool readable = poll(&fd, 1, 0) == 1;

	if (ibv_get_cq_event(channel, &got, &context) != 0) {
		assert_int_equal(errno, EAGAIN);
		assert_false(readable);
		return false;
	}
	assert_true(readable);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(context, &pair);
	ibv_ack_cq_events(cq, 1);
	return true;
}

TEST(one_event_per_arming)
{
	open_channel();
	message_send(0);
	assert_false(event_read()); /* the CQ was not armed */
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_false(event_read()); /* earlier completions raise no event */
	message_send(0);
	message_send(0);
	assert_true(event_read());
	assert_false(event_read());
	message_send(0);
	assert_false(event_read());
	close_channel();
}

TEST(solicited_arming_ignores_unsolicited)
{
	open_channel();
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	message_send(0);
	assert_false(event_read());
	message_send(IBV_SEND_SOLICITED);
	assert_true(event_read());
	/* Arming for solicited completions does not undo arming for all. */
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	message_send(0);
	assert_true(event_read());
	/* An error counts as solicited. */
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	receive_post(1);
	pair_modify_state(qp, IBV_QPS_ERR);
	assert_true(event_read());
	close_channel();
}

TEST(channel_of_other_device_is_refused)
{
	struct ibv_comp_channel *foreign;

	open_channel();
	assert_int_equal(ibv_req_notify_cq(pair.b.send_cq, 0), EINVAL); /* no channel */
	foreign = ibv_create_comp_channel(pair.a.context);
	assert_non_null(foreign);
	assert_null(ibv_create_cq(pair.b.context, 8, NULL, foreign, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_comp_channel(foreign), 0);
	/* Destroying the CQ removes its unread event. */
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	message_send(0);
	close_channel();
}

/* Arming again while an event is unread allows one more event. */
TEST(rearming_allows_one_more_event)
{
	open_channel();
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0); /* arming twice counts once */
	message_send(0);
	message_send(0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	message_send(0);
	assert_true(event_read());
	assert_true(event_read());
	assert_false(event_read());
	/* Arming for any completion after arming for solicited ones. */
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	message_send(0);
	assert_true(event_read());
	/* Polling the completion does not remove the event. */
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	message_send(IBV_SEND_SOLICITED);
	{
		struct ibv_wc wc[16];

		assert_true(ibv_poll_cq(cq, 16, wc) > 0);
	}
	assert_true(event_read());
	close_channel();
}

static bool destroying, destroyed;

static void *
destroyer(void *arg)
{
	__atomic_store_n(&destroying, true, __ATOMIC_RELEASE);
	assert_int_equal(ibv_destroy_cq(arg), 0);
	__atomic_store_n(&destroyed, true, __ATOMIC_RELEASE);
	return NULL;
}

static int
moderate(uint16_t count, uint16_t period_us)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = count, .cq_period = period_us}};

	return ibv_modify_cq(cq, &attr);
}

static uint64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

TEST(moderated_cq_raises_few_events)
{
	uint64_t begin;

	open_channel();
	/* By number: the period is longer than the three messages take, or they take so long that
	 * it has ended. */
	assert_int_equal(moderate(3, UINT16_MAX), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	begin = now_us();
	message_send(0);
	message_send(0);
	assert_true(!event_read() || now_us() - begin >= UINT16_MAX);
	message_send(0);
	assert_true(event_read() || now_us() - begin >= UINT16_MAX);
	/* By time. */
	assert_int_equal(moderate(1000, 2000), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	begin = now_us();
	message_send(0);
	await_by(pair_poll(&pair), event_read());
	assert_true(now_us() - begin >= 2000);
	/* Without. */
	assert_int_equal(moderate(0, 0), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	message_send(0);
	assert_true(event_read());
	/* A CQ whose event waits is destroyed. */
	assert_int_equal(moderate(1000, UINT16_MAX), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	message_send(0);
	close_channel();
}

static bool
destroy_waits(void)
{
	await(__atomic_load_n(&destroying, __ATOMIC_ACQUIRE));
	/* The thread has ended, or waits. */
	await(threads_asleep());
	return !__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE);
}

/* ibv_destroy_cq() waits until each event that was read is acknowledged. */
TEST(destroy_waits_for_acknowledgements)
{
	struct ibv_cq *got;
	pthread_t thread;
	void *context;

	open_channel();
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		message_send(0);
	}
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	destroying = destroyed = false;
	assert_int_equal(pthread_create(&thread, NULL, destroyer, cq), 0);
	assert_true(destroy_waits());
	ibv_ack_cq_events(cq, 1);
	assert_true(destroy_waits());
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* The third event was not read; destroying the CQ removed it. */
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	pair_close(&pair);
}

/* An application arms the CQ, polls, and sleeps in poll(2) while threads run the
 * engines: a message each round. */
static void
wakeups(unsigned rounds, bool moderated)
{
	struct ibv_wc wc;
	unsigned seen = 0;

	open_channel();
	pair_threads_start(&pair);
	for (unsigned i = 0; i < rounds; i++) {
		/* On and off, while completions are written. */
		if (moderated && i % 64 == 0)
			assert_int_equal(moderate(4, i % 128 == 0 ? 100 : 0), 0);
		receive_post(i);
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		while (pair_send(&pair.a, 0, i, 0, LEN, IBV_SEND_SIGNALED) != 0)
			while (ibv_poll_cq(pair.a.send_cq, 1, &wc) == 1)
				;
		while (seen <= i) {
			if (ibv_poll_cq(cq, 1, &wc) == 1) {
				assert_int_equal(wc.wr_id, i);
				seen++;
				continue;
			}
			if (!await_readable(channel->fd))
				fail_msg("round %u: no event", i);
			if (event_read())
				assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		}
		while (ibv_poll_cq(pair.a.send_cq, 1, &wc) == 1)
			;
	}
	pair_threads_stop(&pair);
	while (event_read())
		;
	close_channel();
}

TEST(no_wakeup_is_lost)
{
	wakeups(5000, false);
}

TEST(no_moderated_wakeup_is_lost)
{
	wakeups(1000, true);
}
