/* SPDX-License-Identifier: BSD-3-Clause */
/* An application that sleeps while its engine has nothing to do: rocade_engine_fd(),
 * rocade_engine_arm(), rocade_engine_disarm(). On two shared ports of this process, where frames
 * come by rocade_engine_input(), so nothing but the engine's own work wakes it. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shared_pair.h"

#include <cmocka.h>

#define LIMIT_S 30
#define EXCHANGES 500
/* On a loaded machine the engine's timer may end a sleep while the call runs, so that one call
 * alone does not show who woke the engine. It does not end all of this number. */
#define WAKES 20

static struct rocade_engine *
engine_of(const struct side *s)
{
	return rocade_port_engine(s->port, 0);
}

static int
fd_of(const struct side *s)
{
	int fd = -1;

	assert_int_equal(rocade_engine_fd(engine_of(s), &fd), 0);
	assert_true(fd >= 0);
	return fd;
}

static bool
is_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* Passes until the engine has nothing to do, and turns its descriptor on. */
static void
asleep(struct side *s)
{
	double end = clock_s() + LIMIT_S;
	int err;

	while ((err = rocade_engine_arm(engine_of(s))) == EAGAIN) {
		side_pass(s, HOW_FRAMES);
		assert_true(clock_s() < end);
	}
	assert_int_equal(err, 0);
}

/* The engines have announced their addresses: no timer is left that wakes them soon. */
static void
announcements_take(void)
{
	double end = clock_s() + 4;

	while (clock_s() < end) {
		side_pass(&sides[0], HOW_FRAMES);
		side_pass(&sides[1], HOW_FRAMES);
		usleep(1000);
	}
}

static int
pair_open(void **state)
{
	for (unsigned i = 0; i < 2; i++)
		side_open(&sides[i], HOW_FRAMES);
	side_connect(&sides[0], &sides[1]);
	side_connect(&sides[1], &sides[0]);
	announcements_take();
	return 0;
}

static int
pair_close(void **state)
{
	side_close(&sides[0]);
	side_close(&sides[1]);
	return 0;
}

static void
wrong_use_is_refused(void **state)
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[1]), .addresses = "192.0.2.2/24"}};
	struct rocade_port *loop[2];
	struct rocade_engine *engine;
	int fd, again;

	assert_int_equal(rocade_open_loop(conf, loop), 0);
	engine = rocade_port_engine(loop[0], 0);
	assert_int_equal(rocade_engine_arm(engine), EINVAL);
	assert_non_null(strstr(rocade_error(), "rocade_engine_fd()"));
	rocade_engine_disarm(engine); /* nothing happens */
	assert_int_equal(rocade_engine_fd(engine, &fd), 0);
	assert_int_equal(rocade_engine_fd(engine, &again), 0);
	assert_int_equal(fd, again);
	rocade_close_port(loop[0]);
	rocade_close_port(loop[1]);
}

/* A port that announces no packets: the engine looks for them every millisecond. */
static void
port_without_announcements_is_polled(void **state)
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[1]), .addresses = "192.0.2.2/24"}};
	struct rocade_port *loop[2];
	struct rocade_engine *engine;
	double end = clock_s() + LIMIT_S;
	int fd;

	assert_int_equal(rocade_open_loop(conf, loop), 0);
	engine = rocade_port_engine(loop[0], 0);
	assert_int_equal(rocade_engine_fd(engine, &fd), 0);
	while (rocade_engine_arm(engine) == EAGAIN)
		assert_true(clock_s() < end);
	assert_true(is_readable(fd, 10000));
	rocade_engine_disarm(engine);
	assert_false(is_readable(fd, 0));
	rocade_close_port(loop[0]);
	rocade_close_port(loop[1]);
}

static void *
post_from_thread(void *arg)
{
	send_post(arg, 1);
	return NULL;
}

static void *
modify_from_thread(void *arg)
{
	struct side *s = arg;
	struct ibv_qp_attr attr = {.min_rnr_timer = 2};

	assert_int_equal(ibv_modify_qp(s->qp, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	return NULL;
}

static void *
resolve_from_thread(void *arg)
{
	struct side *s = arg;
	union ibv_gid gid;

	assert_int_equal(rocade_gid_parse("192.0.2.77", &gid), 0);
	assert_int_equal(rocade_port_resolve(s->port, &gid), EAGAIN);
	return NULL;
}

/* The thread's call is over when the descriptor is looked at, so the wake-up must be there. */
static void
expect_woken(void *(*call)(void *arg), void *arg)
{
	int fd = fd_of(&sides[0]);
	pthread_t thread;

	asleep(&sides[0]);
	assert_int_equal(pthread_create(&thread, NULL, call, arg), 0);
	pthread_join(thread, NULL);
	assert_true(is_readable(fd, 0));
	rocade_engine_disarm(engine_of(&sides[0]));
	assert_false(is_readable(fd, 0));
}

static void
message_arrives(void)
{
	double end = clock_s() + LIMIT_S;
	unsigned got = 0;
	struct ibv_wc wc;

	while (got != 3) {
		assert_true(clock_s() < end);
		side_pass(&sides[0], HOW_FRAMES);
		side_pass(&sides[1], HOW_FRAMES);
		for (unsigned i = 0; i < 2; i++) {
			if (ibv_poll_cq(sides[i].cq, 1, &wc) != 1)
				continue;
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			got |= 1u << i;
		}
	}
}

static void
posts_and_calls_of_other_threads_wake(void **state)
{
	for (unsigned i = 0; i < WAKES; i++) {
		recv_post(&sides[1], 0);
		expect_woken(post_from_thread, &sides[0]);
		message_arrives();
		/* A post of the thread that has armed the engine. */
		recv_post(&sides[1], 0);
		asleep(&sides[0]);
		send_post(&sides[0], 1);
		assert_true(is_readable(fd_of(&sides[0]), 0));
		rocade_engine_disarm(engine_of(&sides[0]));
		message_arrives();
		expect_woken(modify_from_thread, &sides[0]);
	}
	expect_woken(resolve_from_thread, &sides[0]);
}

/* An idle engine is woken ten times in a second, for the state of its link. */
static void
idle_engine_sleeps(void **state)
{
	struct rusage before, after;
	double end = clock_s() + 2, used;
	int fd = fd_of(&sides[0]);
	unsigned sleeps = 0;

	getrusage(RUSAGE_SELF, &before);
	while (clock_s() < end) {
		asleep(&sides[0]);
		is_readable(fd, 1000);
		rocade_engine_disarm(engine_of(&sides[0]));
		sleeps++;
	}
	getrusage(RUSAGE_SELF, &after);
	used = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
	       (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
	       (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6 +
	       (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
	print_message("# %u sleeps, %.2f %% of a core\n", sleeps, used / 2 * 100);
	assert_in_range(sleeps, 1, 60);
	assert_true(used / 2 < 0.01);
}

/* Nothing arrives: the ACK timeout is the next work. */
static void
timers_wake(void **state)
{
	int fd = fd_of(&sides[0]);
	double end = clock_s() + LIMIT_S;
	struct rocade_stat stats[256];
	double first = 0;
	uint64_t timeouts = 0;
	unsigned n;

	/* The next hop is known after this, and needs no polls. */
	recv_post(&sides[1], 0);
	send_post(&sides[0], 1);
	message_arrives();
	recv_post(&sides[1], 0);
	send_post(&sides[0], 1);
	while (timeouts == 0) {
		assert_true(clock_s() < end);
		if (rocade_engine_arm(engine_of(&sides[0])) == 0) {
			double slept = clock_s();

			assert_true(is_readable(fd, 10000));
			if (first == 0)
				first = clock_s() - slept;
			rocade_engine_disarm(engine_of(&sides[0]));
		}
		n = rocade_port_stats(sides[0].port, -1, stats, 256);
		for (unsigned i = 0; i < n; i++) {
			if (strcmp(stats[i].name, "ack_timeouts") == 0)
				timeouts = stats[i].value;
		}
	}
	/* The tail-loss probe comes first, after a few round trips. */
	assert_true(first < 0.09);
	message_arrives();
}

/* ---- Each engine in a thread of its own, asleep between any two messages ---- */

struct sleeper {
	struct side *side;
	bool first; /* sends first */
	unsigned sleeps, long_sleeps;
	bool failed;
};

/* Without a wake-up the sleep lasts 100 ms. */
static bool
completion_wait(struct sleeper *s, enum ibv_wc_opcode opcode, double end)
{
	struct rocade_engine *engine = engine_of(s->side);
	int fd = fd_of(s->side);
	struct ibv_wc wc;
	double slept;

	while (clock_s() < end) {
		while (ibv_poll_cq(s->side->cq, 1, &wc) == 1) {
			if (wc.status != IBV_WC_SUCCESS)
				return false;
			if (wc.opcode == opcode)
				return true;
		}
		if (rocade_engine_poll(engine) != 0 || rocade_engine_arm(engine) != 0)
			continue;
		slept = clock_s();
		s->sleeps++;
		is_readable(fd, 5000);
		s->long_sleeps += clock_s() - slept > 0.09;
		rocade_engine_disarm(engine);
	}
	return false;
}

static void *
sleeper_run(void *arg)
{
	struct sleeper *s = arg;
	double end = clock_s() + LIMIT_S;

	for (unsigned i = 0; i < EXCHANGES && !s->failed; i++) {
		recv_post(s->side, 0);
		if (s->first)
			send_post(s->side, 1);
		s->failed = !completion_wait(s, IBV_WC_RECV, end);
		if (!s->first)
			send_post(s->side, 1);
	}
	return NULL;
}

/* The application's thread that receives. */
static void *
frames_pass(void *arg)
{
	while (!__atomic_load_n((bool *)arg, __ATOMIC_ACQUIRE)) {
		side_input(&sides[0]);
		side_input(&sides[1]);
		sched_yield();
	}
	return NULL;
}

static void
two_sleepers_exchange_messages(void **state)
{
	struct sleeper s[2] = {{.side = &sides[0], .first = true}, {.side = &sides[1]}};
	pthread_t threads[2], receiver;
	bool stop = false;

	assert_int_equal(pthread_create(&receiver, NULL, frames_pass, &stop), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, sleeper_run, &s[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(receiver, NULL);
	print_message("# %u and %u sleeps, long ones: %u and %u\n", s[0].sleeps,
		s[1].sleeps, s[0].long_sleeps, s[1].long_sleeps);
	assert_in_range(s[0].long_sleeps + s[1].long_sleeps, 0, EXCHANGES / 50);
	assert_false(s[0].failed || s[1].failed);
	assert_true(s[0].sleeps > 0 && s[1].sleeps > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_use_is_refused),
		cmocka_unit_test(port_without_announcements_is_polled),
		cmocka_unit_test_setup_teardown(
			posts_and_calls_of_other_threads_wake, pair_open, pair_close),
		cmocka_unit_test_setup_teardown(
			idle_engine_sleeps, pair_open, pair_close),
		cmocka_unit_test_setup_teardown(timers_wake, pair_open, pair_close),
		cmocka_unit_test_setup_teardown(
			two_sleepers_exchange_messages, pair_open, pair_close),
	};
	int failed = cmocka_run_group_tests_name("sleep", tests, app_start, NULL);

	return app_end() != 0 ? 1 : failed;
}
