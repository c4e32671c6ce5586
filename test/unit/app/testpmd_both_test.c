/* SPDX-License-Identifier: BSD-3-Clause */
/* When an end of --mode both ends its run. This file stands for all that sends and receives. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "case.h"
#include "mode_send.h"
#include "testpmd_rx.h"

static bool acked, duration_over, silent, stopped;
static struct conf conf = {.wait_s = 30};
static struct port_conf pc = {.peers = {{.addr = "192.0.2.2"}}};
static struct host host;

void
send_start(struct host *h)
{
	(void)h;
}

unsigned
send_push(struct host *h)
{
	(void)h;
	return 0;
}

void
send_stop(struct host *h)
{
	h->state = HOST_DRAINING;
	stopped = true;
}

bool
send_finished(struct host *h, uint64_t now_ns)
{
	(void)h;
	(void)now_ns;
	return acked;
}

void
exchange_watch(struct host *h, uint64_t now_ns)
{
	(void)h;
	(void)now_ns;
}

void
exchange_tick(struct host *h, uint64_t now_ns)
{
	(void)h;
	(void)now_ns;
}

unsigned
exchange_poll(struct host *h)
{
	(void)h;
	return 0;
}

void
send_drain_fail(struct host *h)
{
	h->state = HOST_FAILED;
}

unsigned
tx_reap(struct host *h)
{
	(void)h;
	return 0;
}

unsigned
rx_reap(struct host *h, void (*taken)(struct host *host, struct conn *conn))
{
	(void)h;
	(void)taken;
	return 0;
}

void
rx_start(struct host *h)
{
	(void)h;
}

void
rx_drain(struct host *h)
{
	(void)h;
}

uint64_t
host_count(const struct host *h)
{
	return h->conf->count;
}

uint64_t
host_idle_for(struct host *h, uint64_t mark, uint64_t now_ns)
{
	(void)mark;
	return now_ns - h->idle_since_ns;
}

bool
send_step(struct host *h, uint64_t now_ns)
{
	(void)now_ns;
	if (duration_over && h->state == HOST_RUNNING)
		send_stop(h);
	return h->state == HOST_RUNNING || h->state == HOST_DRAINING;
}

void
host_linger(struct host *h, uint64_t now_ns)
{
	(void)now_ns;
	if (silent)
		h->state = HOST_DONE;
}

void
host_fail(struct host *h, const char *format, ...)
{
	(void)format;
	h->state = HOST_FAILED;
}

/* An end that has sent 100 messages, and received 99 of 100. */
static int
setup(void **state)
{
	(void)state;
	acked = true;
	duration_over = silent = stopped = false;
	conf.count = 100;
	conf.duration_s = 0;
	host = (struct host){.conf = &conf,
		.pc = &pc,
		.ops = &both_ops,
		.state = HOST_RUNNING,
		.tally.messages = 99};
	return 0;
}

TEST_WITH(an_end_goes_on_until_it_has_received_all, setup, NULL)
{
	host.ops->tick(&host, 1);
	assert_int_equal(host.state, HOST_RUNNING);
	host.tally.messages = 100;
	acked = false;
	host.ops->tick(&host, 2);
	assert_int_equal(host.state, HOST_RUNNING);
	acked = true;
	host.ops->tick(&host, 3);
	assert_int_equal(host.state, HOST_LINGERING);
	assert_int_equal(host.tally.last_ns, 3);
	host.ops->tick(&host, 4);
	assert_int_equal(host.state, HOST_LINGERING);
	silent = true;
	host.ops->tick(&host, 5);
	assert_int_equal(host.state, HOST_DONE);
}

TEST_WITH(an_end_waits_for_the_next_message_as_long_as_wait_says, setup, NULL)
{
	host.ops->tick(&host, 30 * NS_PER_SECOND);
	assert_int_equal(host.state, HOST_RUNNING);
	host.ops->tick(&host, 30 * NS_PER_SECOND + 1);
	assert_int_equal(host.state, HOST_FAILED);
}

/* Without --count an end does not know how many messages come. */
TEST_WITH(an_end_without_a_count_sends_until_its_duration_is_over, setup, NULL)
{
	conf.count = 0;
	host.ops->tick(&host, 1);
	assert_int_equal(host.state, HOST_RUNNING);
	duration_over = true;
	host.ops->tick(&host, 2);
	assert_true(stopped);
	assert_int_equal(host.state, HOST_LINGERING);
}

/* The peer goes on to send. */
TEST_WITH(a_stopped_end_lingers_for_a_second, setup, NULL)
{
	host.ops->stop(&host);
	host.ops->tick(&host, 1);
	assert_int_equal(host.state, HOST_LINGERING);
	host.ops->tick(&host, NS_PER_SECOND);
	assert_int_equal(host.state, HOST_LINGERING);
	host.ops->tick(&host, NS_PER_SECOND + 1);
	assert_int_equal(host.state, HOST_DONE);
}

/* Where the ends tell each other more. */
static int
setup_exchange(void **state)
{
	setup(state);
	host.exchange.on = true;
	host.exchange.asked.heard_ns = 1;
	host.drain_ns = 1;
	return 0;
}

TEST_WITH(an_end_whose_messages_are_right_waits_for_the_end_of_the_peer, setup_exchange,
	NULL)
{
	host.state = HOST_DRAINING;
	host.exchange.ended = true;
	host.ops->tick(&host, 2);
	assert_int_equal(host.state, HOST_DRAINING);
	/* The peer goes on for longer than a sender waits for its answers. */
	host.exchange.asked.heard_ns = DRAIN_NS;
	host.ops->tick(&host, 2 * DRAIN_NS);
	assert_int_equal(host.state, HOST_DRAINING);
	host.exchange.asked.ended = true;
	host.ops->tick(&host, 2 * DRAIN_NS);
	assert_int_equal(host.state, HOST_LINGERING);
}

TEST_WITH(an_end_whose_peer_falls_silent_fails, setup_exchange, NULL)
{
	host.state = HOST_DRAINING;
	host.exchange.ended = true;
	host.ops->tick(&host, DRAIN_NS + 1);
	assert_int_equal(host.state, HOST_DRAINING);
	host.ops->tick(&host, DRAIN_NS + 2);
	assert_int_equal(host.state, HOST_FAILED);
}

TEST_WITH(a_peer_that_goes_on_long_after_the_duration_fails_the_run, setup_exchange, NULL)
{
	conf.duration_s = 1;
	host.state = HOST_DRAINING;
	host.exchange.ended = true;
	host.exchange.asked.heard_ns = DRAIN_NS + 2;
	host.ops->tick(&host, DRAIN_NS + 1);
	assert_int_equal(host.state, HOST_DRAINING);
	host.ops->tick(&host, DRAIN_NS + 2);
	assert_int_equal(host.state, HOST_FAILED);
}

TEST_WITH(an_end_that_gets_no_answer_fails, setup_exchange, NULL)
{
	host.state = HOST_DRAINING;
	acked = false;
	host.ops->tick(&host, DRAIN_NS + 1);
	assert_int_equal(host.state, HOST_DRAINING);
	host.ops->tick(&host, DRAIN_NS + 2);
	assert_int_equal(host.state, HOST_FAILED);
}

TEST_WITH(a_stopped_end_waits_for_no_end_of_the_peer, setup_exchange, NULL)
{
	host.ops->stop(&host);
	host.ops->tick(&host, 2);
	assert_int_equal(host.state, HOST_LINGERING);
}
