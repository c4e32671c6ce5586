/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that a thread of the application makes with locks held are no cancellation points: a thread
 * that pthread_cancel(3) is about to end returns from them. */
#include "pair_fixture.h"

#include "base/base_log.h"
#include "engine/engine_wake.h"
#include "queue/event_queue.h"
#include "../../lib/cancelled.h"

static struct pair_fixture f;

/* Expects that the function returns in a thread that is to end. */
static void
expect_return(void (*fn)(void *arg), void *arg)
{
	struct cancelled c = {.fn = fn, .arg = arg};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, cancelled_main, &c), 0);
	assert_true(cancelled_after_return(thread, &c));
}

/* ---- The client's port ---- */

static void
send_with_the_lock(uint32_t qpn)
{
	struct engine *e = f.a.dev->engines[0];

	engine_lock(e);
	(void)side_send(&f.a, qpn, 1, 1);
	engine_lock_release(e);
}

static void
send_by_the_daemon(void *arg)
{
	(void)arg;
	send_with_the_lock(QP_UD);
}

static void
send_to_the_partner(void *arg)
{
	(void)arg;
	send_with_the_lock(QP_1);
}

TEST(a_post_wakes_the_daemon)
{
	uint64_t count;

	fixture_open(&f);
	asleep_set(&f.a.d.region.daemon->tx_asleep);
	expect_return(send_by_the_daemon, NULL);
	assert_int_equal(read(f.a.d.daemon_wake_fd, &count, sizeof(count)), 8);
	assert_int_equal(daemon_finds(&f.a), 1);
	fixture_close(&f);
}

TEST(a_post_wakes_the_partner)
{
	fixture_open(&f);
	asleep_set(&f.b.shm->region.client->rx_asleep);
	pairs_show_asleep(f.b.shm);
	expect_return(send_to_the_partner, NULL);
	assert_int_equal(side_woken(&f.b), WOKEN);
	side_expect(&f.b, 1, 1);
	fixture_close(&f);
}

static void
request_make(void *arg)
{
	uint32_t qpn;

	(void)arg;
	(void)shm_hooks.qpn_take(f.a.shm, &qpn);
}

static void
data_fetch(void *arg)
{
	static const struct sw_request req = {.type = SW_STATUS};

	(void)session_fetch(&f.a.shm->session, &req, arg);
}

TEST(requests_get_their_replies)
{
	const size_t head = offsetof(struct sw_data_reply, bytes);
	static struct sw_data_reply data, got;
	struct sw_reply reply;

	fixture_open(&f);
	reply = reply_valid();
	reply_send(f.a.d.fd, &reply, sizeof(reply), NULL, 0);
	expect_return(request_make, NULL);
	assert_int_equal(request_recv(f.a.d.fd).type, SW_QPN_TAKE);
	data = (struct sw_data_reply){.magic = SW_PROTO_MAGIC,
		.version = SW_PROTO_VERSION,
		.len = 1,
		.bytes = {1}};
	reply_send(f.a.d.fd, &data, head + 1, NULL, 0);
	expect_return(data_fetch, &got);
	assert_int_equal(request_recv(f.a.d.fd).type, SW_STATUS);
	assert_int_equal(got.bytes[0], 1);
	fixture_close(&f);
}

/* ---- The library ---- */

static void
event_raise_one(void *event)
{
	event_raise(event, IBV_EVENT_COMM_EST);
}

static void
event_purge_all(void *event)
{
	(void)event_purge(event);
}

TEST(events_are_raised_and_purged)
{
	struct async_event event;
	struct event_queue queue;

	assert_int_equal(event_queue_init(&queue), 0);
	async_event_init(&event, &queue, NULL);
	expect_return(event_raise_one, &event);
	expect_return(event_purge_all, &event);
	event_queue_fini(&queue);
}

static void
engine_wake_one(void *e)
{
	engine_wake_if_asleep(e);
}

TEST(an_engine_is_woken)
{
	struct dev *dev = lock_device_make();
	struct engine *e = dev->engines[0];
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t count;

	e->sleep.wake_fd = fd + 1;
	e->doorbells.asleep = 1;
	expect_return(engine_wake_one, e);
	assert_int_equal(read(fd, &count, sizeof(count)), 8);
	engine_wake_close(e);
	lock_device_free(dev);
}

static void
line_take(enum log_level level, const char *line, void *lines)
{
	(void)level;
	(void)line;
	pthread_testcancel();
	++*(unsigned *)lines;
}

static void
line_log(void *arg)
{
	(void)arg;
	log_err("a line");
}

TEST(a_line_is_logged)
{
	unsigned lines = 0;

	log_set_sink(line_take, &lines);
	expect_return(line_log, NULL);
	log_set_sink(NULL, NULL);
	assert_int_equal(lines, 1);
}
