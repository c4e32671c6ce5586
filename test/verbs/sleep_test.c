/* SPDX-License-Identifier: BSD-3-Clause */
/* An application that sleeps while its engine has nothing to do: rocade_engine_fd(),
 * rocade_engine_arm(), rocade_engine_disarm(). On two shared ports of this process, where frames
 * come by rocade_engine_input(), so nothing but the engine's own work wakes it. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "case.h"
#include "shared_pair.h"

#define EXCHANGES 500
/* The timer of an engine without work ends its sleep after 100 ms. */
#define SHORT_SLEEP_S 0.09
#define ACK_TIMEOUT 12 /* 17 ms, and at most four times that (IBA 9.7.6.1.3) */
#define IDLE_SLEEPS 20
#define IDLE_SLEEP_NS 33000000 /* on average: one of 100 ms, two for other timers */
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
is_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
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

	return is_readable(timer_fd) && epoll_wait(fd, events, 4, 0) == 1;
}

/* Passes until the engine has nothing to do, and turns its descriptor on. */
static void
asleep(struct side *s)
{
	int err = EAGAIN;

	await_by(side_pass(s, HOW_FRAMES),
		(err = rocade_engine_arm(engine_of(s))) != EAGAIN);
	assert_int_equal(err, 0);
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
	for (unsigned i = 0; i < 2; i++)
		fd_of(&sides[i]);
	return 0;
}

static int
pair_close(void **state)
{
	side_close(&sides[0]);
	side_close(&sides[1]);
	return app_end(state);
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

/* Returns the engine of the first of two ports without announcements of packets. */
static struct rocade_engine *
loop_open(struct rocade_port **loop)
{
	struct rocade_port_conf conf[2] = {
		{.size = sizeof(conf[0]), .addresses = "192.0.2.1/24"},
		{.size = sizeof(conf[1]), .addresses = "192.0.2.2/24"}};

	assert_int_equal(rocade_open_loop(conf, loop), 0);
	return rocade_port_engine(loop[0], 0);
}

TEST(wrong_use_is_refused)
{
	struct rocade_port *loop[2];
	struct rocade_engine *engine;
	int fd, again;

	engine = loop_open(loop);
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
TEST(port_without_announcements_is_polled)
{
	struct rocade_port *loop[2];
	struct rocade_engine *engine;
	int fd;

	engine = loop_open(loop);
	assert_int_equal(rocade_engine_fd(engine, &fd), 0);
	await(rocade_engine_arm(engine) != EAGAIN);
	assert_true(await_readable(fd));
	rocade_engine_disarm(engine);
	assert_false(is_readable(fd));
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

/* The call is over when the descriptor is looked at, so the wake-up must be there. On a loaded machine
 * the timer may have ended the sleep, too. */
static void
side_0_is_woken(void)
{
	int fd = fd_of(&sides[0]);

	assert_true(is_readable(fd));
	assert_false(is_ended_by_timer(fd, timer_of(fd)));
	rocade_engine_disarm(engine_of(&sides[0]));
	assert_false(is_readable(fd));
}

static void
expect_woken(void *(*call)(void *arg), void *arg)
{
	pthread_t thread;

	asleep(&sides[0]);
	assert_int_equal(pthread_create(&thread, NULL, call, arg), 0);
	pthread_join(thread, NULL);
	side_0_is_woken();
}

static unsigned
sides_completed(void)
{
	unsigned got = 0;
	struct ibv_wc wc;

	for (unsigned i = 0; i < 2; i++) {
		if (ibv_poll_cq(sides[i].cq, 1, &wc) != 1)
			continue;
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		got |= 1u << i;
	}
	return got;
}

static void
message_arrives(void)
{
	unsigned got = 0;

	await_by(sides_pass(HOW_FRAMES), (got |= sides_completed()) == 3);
}

TEST(posts_and_calls_of_other_threads_wake)
{
	for (unsigned i = 0; i < WAKES; i++) {
		recv_post(&sides[1], 0);
		expect_woken(post_from_thread, &sides[0]);
		message_arrives();
		/* A post of the thread that has armed the engine. */
		recv_post(&sides[1], 0);
		asleep(&sides[0]);
		send_post(&sides[0], 1);
		side_0_is_woken();
		message_arrives();
		expect_woken(modify_from_thread, &sides[0]);
	}
	expect_woken(resolve_from_thread, &sides[0]);
}

/* An idle engine is woken ten times in a second, for the state of its link. The waits for it are sleeps in
 * the kernel, unless the thread had no core until the timer had expired, and IDLE_SLEEPS of them take a
 * while. All threads but this one sleep. */
TEST(idle_engine_sleeps)
{
	uint64_t before = thread_sleep_count(gettid());
	int fd = fd_of(&sides[0]);
	struct await a = {.pauses = 0};
	struct timespec begin, end;
	unsigned waits = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (; waits < IDLE_SLEEPS || thread_sleep_count(gettid()) - before < IDLE_SLEEPS;
		waits++) {
		assert_true(await_goes_on(&a));
		asleep(&sides[0]);
		assert_true(await_readable(fd));
		rocade_engine_disarm(engine_of(&sides[0]));
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true(((uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000 +
			    (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec) /
			    waits >=
		    IDLE_SLEEP_NS);
	await(threads_asleep());
}

/* ---- Each engine in a thread of its own, asleep between any two messages ---- */

struct sleeper {
	struct side *side;
	bool first; /* sends first */
	unsigned sleeps;
	uint64_t
		begin; /* frames that have been taken and not received, before the first exchange */
	int fd, timer_fd;
	bool lost_wake, failed;
};

/* Frames that the application has passed to a side, and its engine has not received. Those that are
 * for both are copied, and not counted among the former. */
static uint64_t
frames_left(const struct side *s)
{
	uint64_t taken = __atomic_load_n(&s->taken, __ATOMIC_ACQUIRE);

	return taken - side_stat(s, "rx_packets");
}

/* One sleep. A frame that the application had passed before the look at the descriptors was to end the
 * sleep: if only the timer has, the wake-up is lost. */
static void
engine_sleep(struct sleeper *s)
{
	uint64_t left;

	if (rocade_engine_poll(engine_of(s->side)) != 0 ||
		rocade_engine_arm(engine_of(s->side)) != 0)
		return;
	s->sleeps++;
	s->failed |= !await_readable(s->fd);
	left = frames_left(s->side);
	s->lost_wake |=
		is_ended_by_timer(s->fd, s->timer_fd) && (int64_t)(left - s->begin) > 0;
	rocade_engine_disarm(engine_of(s->side));
}

static bool
has_completed(struct sleeper *s, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(s->side->cq, 1, &wc) == 1) {
		s->failed |= wc.status != IBV_WC_SUCCESS;
		if (wc.opcode == opcode)
			return true;
	}
	return s->failed || s->lost_wake;
}

static void *
sleeper_run(void *arg)
{
	struct sleeper *s = arg;

	for (unsigned i = 0; i < EXCHANGES && !s->failed && !s->lost_wake; i++) {
		recv_post(s->side, 0);
		if (s->first)
			send_post(s->side, 1);
		s->failed |= !awaited_by(engine_sleep(s), has_completed(s, IBV_WC_RECV));
		if (!s->first)
			send_post(s->side, 1);
	}
	/* A post in the thread that has armed the engine leaves in the next pass. */
	rocade_engine_poll(engine_of(s->side));
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

TEST(two_sleepers_exchange_messages)
{
	struct sleeper s[2] = {{.side = &sides[0], .first = true}, {.side = &sides[1]}};
	pthread_t threads[2], receiver;
	bool stop = false;

	for (unsigned i = 0; i < 2; i++) {
		s[i].fd = fd_of(&sides[i]);
		s[i].timer_fd = timer_of(s[i].fd);
		asleep(&sides[i]); /* the engine has received all */
		s[i].begin = frames_left(&sides[i]);
		rocade_engine_disarm(engine_of(&sides[i]));
	}
	assert_int_equal(pthread_create(&receiver, NULL, frames_pass, &stop), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, sleeper_run, &s[i]), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(receiver, NULL);
	print_message("# %u and %u sleeps\n", s[0].sleeps, s[1].sleeps);
	assert_false(s[0].lost_wake || s[1].lost_wake);
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

/* Sleeps until the ACK timeout. The engine's timer is set for that and for the tail-loss probe, not for
 * the longest sleep. How long the sleep lasts depends on the load. Returns how many sleeps there were. */
static unsigned
sleep_until_timeout(void)
{
	int fd = fd_of(&sides[0]), timer_fd = timer_of(fd);
	uint64_t timeouts = side_stat(&sides[0], "ack_timeouts");
	struct await a = {.pauses = 0};
	unsigned sleeps = 0;

	while (side_stat(&sides[0], "ack_timeouts") == timeouts) {
		assert_true(await_goes_on(&a));
		if (rocade_engine_arm(engine_of(&sides[0])) != 0)
			continue;
		sleeps++;
		assert_true(timer_left(timer_fd) < SHORT_SLEEP_S);
		assert_true(await_readable(fd));
		rocade_engine_disarm(engine_of(&sides[0]));
	}
	return sleeps;
}

/* Nothing arrives: a tail-loss probe and the ACK timeout are the next work. A thread that had no core
 * until then has not slept: once more. */
TEST(timers_wake)
{
	struct await a = {.pauses = 0};
	unsigned sleeps = 0;

	pair_reconnect();
	/* The next hop is known after this, and needs no polls. */
	recv_post(&sides[1], 0);
	send_post(&sides[0], 1);
	message_arrives();
	while (sleeps == 0) {
		assert_true(await_goes_on(&a));
		recv_post(&sides[1], 0);
		send_post(&sides[0], 1);
		sleeps = sleep_until_timeout();
		message_arrives();
	}
}

TEST_GROUP(pair_open, pair_close)
