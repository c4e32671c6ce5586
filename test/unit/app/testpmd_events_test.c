/* SPDX-License-Identifier: BSD-3-Clause */
/* --events of rocade-testpmd, with a CQ that this file stands for. */
#include <stdint.h>
#include <stdlib.h>

#include "case.h"
#include "host.h"

static unsigned entries; /* of the CQ */
static unsigned late;    /* entries that come when the CQ has just been armed */
static unsigned events, acked, polls;
static bool armed, ready;
static struct ibv_cq cq;
static struct host host;

static int
fake_poll_cq(struct ibv_cq *unused, int n, struct ibv_wc *wc)
{
	unsigned taken = entries < (unsigned)n ? entries : (unsigned)n;

	(void)unused;
	(void)wc;
	polls++;
	entries -= taken;
	return (int)taken;
}

static int
fake_req_notify(struct ibv_cq *unused, int solicited)
{
	(void)unused;
	assert_int_equal(solicited, 0);
	/* Before the CQ is armed: they raise no event. */
	entries += late;
	late = 0;
	armed = true;
	return 0;
}

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *ctx)
{
	(void)ctx;
	return NULL;
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **of, void **context)
{
	(void)channel;
	if (events == 0)
		return -1;
	events--;
	*of = &cq;
	*context = cq.cq_context;
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *of, unsigned n)
{
	assert_ptr_equal(of, &cq);
	acked += n;
}

static void
complete(unsigned n)
{
	entries += n;
	events += armed;
	armed = false;
}

static int
setup(void **state)
{
	static struct ibv_context ctx = {
		.ops = {.poll_cq = fake_poll_cq, .req_notify_cq = fake_req_notify}};

	(void)state;
	cq = (struct ibv_cq){.context = &ctx, .cq_context = &ready};
	host = (struct host){0};
	entries = late = events = acked = polls = 0;
	armed = false;
	ready = true;
	return 0;
}

static int
poll_it(void)
{
	struct ibv_wc wc[4];

	return host_poll_ready(&host, &cq, 4, wc);
}

TEST_WITH(a_cq_without_an_event_is_not_polled, setup, NULL)
{
	assert_int_equal(poll_it(), 0); /* empty: armed */
	assert_true(armed);
	polls = 0;
	assert_int_equal(poll_it(), 0);
	assert_int_equal(polls, 0);
	complete(6);
	assert_int_equal(poll_it(), 4);
	assert_int_equal(poll_it(), 2); /* the event is for all of them */
	assert_int_equal(acked, 1);
	assert_int_equal(host.tally.cq_events, 1);
	assert_int_equal(poll_it(), 0);
	assert_true(armed);
}

TEST_WITH(what_comes_before_the_cq_is_armed_is_found, setup, NULL)
{
	late = 6;
	assert_int_equal(poll_it(), 4);
	assert_int_equal(poll_it(), 2);
	assert_int_equal(poll_it(), 0);
	complete(1);
	assert_int_equal(poll_it(), 1);
}

TEST_WITH(a_drain_needs_no_event, setup, NULL)
{
	assert_int_equal(poll_it(), 0);
	entries = 2; /* their event is still on its way */
	assert_int_equal(poll_it(), 0);
	host.drains = true;
	assert_int_equal(poll_it(), 2);
}
