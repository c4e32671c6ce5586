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
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "shared_pair.h"

#include <cmocka.h>

#define LIMIT_S 300
#define EXCHANGES 500
#define LOST_WAKES (EXCHANGES / 50) /* on a loaded machine, see completion_wait() */
/* The timer of an engine without work ends its sleep after 100 ms. */
#define SHORT_SLEEP_S 0.09
#define ACK_TIMEOUT 12 /* 17 ms, and at most four times that (IBA 9.7.6.1.3) */
#define PLAIN_SLEEPS 20
#define PLAIN_SLEEP_MS 100
/* On a loaded machine the engine's timer may end a sleep while the call runs, so that one call
 * alone does not show who woke the engine. It does not end all of this number. */
#define WAKES 20

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer does not see the locks of EAL and net_memif, which are built without it: it ignores
 * their calls of libc, such as those of EAL's interrupt thread. In rte_ring's mode RTS, of
 * rocade_engine_input(), the producer stores 8 bytes and the consumer loads 4 of them, which
 * ThreadSanitizer takes for two atomic variables. */
const char *__tsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *
__tsan_default_suppressions(void)
{
	return "called_from_lib:librte_eal.so\n"
	       "called_from_lib:librte_net_memif.so\n"
	       "race:__rte_ring_enqueue_elems_64\n"
	       "race:__rte_ring_dequeue_elems_64\n";
}
#endif

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

/* Returns the timer that the engine's descriptor waits for. */
static int
timer_of(int fd)
{
	int found = -1, inner;
	struct itimerspec left;
	char text[256];
	FILE *info;

	snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", fd);
	info = fopen(text, "r");
	assert_non_null(info);
	while (fgets(text, sizeof(text), info) != NULL)
		if (sscanf(text, "tfd: %d", &inner) == 1 &&
			timerfd_gettime(inner, &left) == 0)
			found = inner;
	fclose(info);
	assert_true(found >= 0);
	return found;
}

/* Returns whether the timer has ended the sleep, and nothing else. */
static bool
is_ended_by_timer(int fd, int timer_fd)
{
	struct epoll_event events[4];

	return is_readable(timer_fd, 0) && epoll_wait(fd, events, 4, 0) == 1;
}

static uint64_t
stat_of(const struct side *s, const char *name)
{
	struct rocade_stat stats[256];
	unsigned n = rocade_port_stats(s->port, -1, stats, 256);

	for (unsigned i = 0; i < n; i++)
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	fail_msg("no counter %s", name);
	return 0;
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

/* The pair that all tests use. */
static int
pair_open(void **state)
{
	app_start(state);
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
	return app_end() != 0 ? -1 : 0;
}

/* Connects the QPs anew, with a short ACK timeout. */
static void
pair_reconnect(void)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ibv_modify_qp(sides[i].qp, &reset, IBV_QP_STATE), 0);
		sides[i].timeout = ACK_TIMEOUT;
	}
	side_connect(&sides[0], &sides[1]);
	side_connect(&sides[1], &sides[0]);
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

/* A thread that sleeps and does nothing else. Stores its CPU time. */
static void *
plain_sleeper_run(void *arg)
{
	for (unsigned i = 0; i < PLAIN_SLEEPS; i++)
		poll(NULL, 0, PLAIN_SLEEP_MS);
	*(double *)arg = clock_of_s(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

/* An idle engine is woken ten times in a second, for the state of its link. The process may take a
 * hundred times the CPU time of a thread that sleeps beside it, which has the same load around. */
static void
idle_engine_sleeps(void **state)
{
	double before = clock_of_s(CLOCK_PROCESS_CPUTIME_ID), end = clock_s() + 2, used,
	       plain;
	int fd = fd_of(&sides[0]);
	unsigned sleeps = 0;
	pthread_t sleeper;

	assert_int_equal(pthread_create(&sleeper, NULL, plain_sleeper_run, &plain), 0);
	while (clock_s() < end) {
		asleep(&sides[0]);
		is_readable(fd, 1000);
		rocade_engine_disarm(engine_of(&sides[0]));
		sleeps++;
	}
	pthread_join(sleeper, NULL);
	used = clock_of_s(CLOCK_PROCESS_CPUTIME_ID) - before - plain;
	print_message("# %u sleeps, %.2f ms of CPU time; %.2f ms for %d plain ones\n",
		sleeps, used * 1e3, plain * 1e3, PLAIN_SLEEPS);
	assert_in_range(sleeps, 1, 60);
	assert_true(used < 100 * plain);
}

/* ---- Each engine in a thread of its own, asleep between any two messages ---- */

struct sleeper {
	struct side *side;
	bool first; /* sends first */
	unsigned sleeps, lost_wakes;
	int fd, timer_fd;
	bool failed;
};

/* Without a wake-up the timer ends the sleep, and the engine then finds packets that have come
 * before. A packet that comes between the look at the descriptors and the end of the sleep looks
 * like that, too. It is rare: the thread must lose its core there, after such a sleep. */
static bool
completion_wait(struct sleeper *s, enum ibv_wc_opcode opcode, double end)
{
	struct rocade_engine *engine = engine_of(s->side);
	struct ibv_wc wc;

	while (clock_s() < end && s->lost_wakes <= LOST_WAKES) {
		uint64_t received;
		bool by_timer;

		while (ibv_poll_cq(s->side->cq, 1, &wc) == 1) {
			if (wc.status != IBV_WC_SUCCESS)
				return false;
			if (wc.opcode == opcode)
				return true;
		}
		if (rocade_engine_poll(engine) != 0 || rocade_engine_arm(engine) != 0)
			continue;
		s->sleeps++;
		is_readable(s->fd, 5000);
		by_timer = is_ended_by_timer(s->fd, s->timer_fd);
		rocade_engine_disarm(engine);
		if (!by_timer)
			continue;
		received = stat_of(s->side, "rx_packets");
		rocade_engine_poll(engine);
		s->lost_wakes += stat_of(s->side, "rx_packets") != received;
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

	for (unsigned i = 0; i < 2; i++) {
		s[i].fd = fd_of(&sides[i]);
		s[i].timer_fd = timer_of(s[i].fd);
	}
	assert_int_equal(pthread_create(&receiver, NULL, frames_pass, &stop), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, sleeper_run, &s[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(receiver, NULL);
	print_message("# %u and %u sleeps, without a wake-up: %u and %u\n", s[0].sleeps,
		s[1].sleeps, s[0].lost_wakes, s[1].lost_wakes);
	assert_in_range(s[0].lost_wakes + s[1].lost_wakes, 0, LOST_WAKES);
	assert_false(s[0].failed || s[1].failed);
	assert_true(s[0].sleeps > 0 && s[1].sleeps > 0);
}

/* ---- Timers ---- */

/* Returns in how many seconds the engine's timer ends the sleep. */
static double
timer_left(int timer_fd)
{
	struct itimerspec left;

	assert_int_equal(timerfd_gettime(timer_fd, &left), 0);
	return (double)left.it_value.tv_sec + (double)left.it_value.tv_nsec / 1e9;
}

/* Nothing arrives: a tail-loss probe and the ACK timeout are the next work. The engine's timer is
 * set for these, not for the longest sleep. How long the sleep lasts depends on the load. */
static void
timers_wake(void **state)
{
	int fd = fd_of(&sides[0]), timer_fd = timer_of(fd);
	double end = clock_s() + LIMIT_S;
	uint64_t timeouts = stat_of(&sides[0], "ack_timeouts");
	unsigned sleeps = 0;

	pair_reconnect();
	/* The next hop is known after this, and needs no polls. */
	recv_post(&sides[1], 0);
	send_post(&sides[0], 1);
	message_arrives();
	recv_post(&sides[1], 0);
	send_post(&sides[0], 1);
	while (stat_of(&sides[0], "ack_timeouts") == timeouts) {
		assert_true(clock_s() < end);
		if (rocade_engine_arm(engine_of(&sides[0])) != 0)
			continue;
		sleeps++;
		assert_true(timer_left(timer_fd) < SHORT_SLEEP_S);
		assert_true(is_readable(fd, 10000));
		rocade_engine_disarm(engine_of(&sides[0]));
	}
	assert_true(sleeps > 0);
	message_arrives();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_use_is_refused),
		cmocka_unit_test(port_without_announcements_is_polled),
		cmocka_unit_test(posts_and_calls_of_other_threads_wake),
		cmocka_unit_test(idle_engine_sleeps),
		cmocka_unit_test(two_sleepers_exchange_messages),
		cmocka_unit_test(timers_wake),
	};

	return cmocka_run_group_tests_name("sleep", tests, pair_open, pair_close);
}
