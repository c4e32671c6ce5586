/* SPDX-License-Identifier: BSD-3-Clause */
/* A progress thread, and an engine whose other end the test plays. It runs in real time: each wait is
 * for a condition, not for a duration. */
#ifndef ROCADE_TEST_THREAD_FIXTURE_H
#define ROCADE_TEST_THREAD_FIXTURE_H

#include "shm_fixture.h"
#include "engine/engine.h"
#include "engine/engine_lock.h"
#include "engine/engine_state.h"
#include "await.h"
#include "engine_link.h"
#include "../../lib/pages.h"

#define DAEMON_INDEX 77

static struct engine_link fixture;
static struct link_qp a, b;
static uint32_t refreshed;
static struct sw_device described;

/* Replaces the request to the daemon. */
int
session_device(struct session *s, struct sw_device *device)
{
	(void)s;
	*device = described;
	__atomic_store_n(&refreshed, refreshed + 1, __ATOMIC_RELEASE);
	return device->net.addr_count != 0 ? 0 : -EPROTO;
}

/* In place of those of the port and of the session: the daemon waits for packets. */
static uint32_t takes, takes_answered, answer;

void
shm_take_received(struct shm *shm)
{
	(void)shm;
	__atomic_fetch_add(&takes, 1, __ATOMIC_RELAXED);
}

int
session_call(struct session *s, const struct sw_request *request, struct sw_reply *reply,
	int *fds, unsigned fd_count)
{
	(void)s, (void)reply, (void)fds, (void)fd_count;
	assert_int_equal(request->type, SW_TAKEN);
	takes_answered = __atomic_load_n(&takes, __ATOMIC_RELAXED);
	__atomic_store_n(&answer, request->qpn, __ATOMIC_RELEASE);
	return 0;
}

/* In place of those of the pairs. */
static uint32_t pairs_served, deadline_asked;
static uint64_t deadline;

/* NULL, or the flag that the application's arming of a CQ sets meanwhile, and the number that it gets. */
static uint32_t *serve_arms, armed_number;

/* NULL, or the flag that the thread may not have set meanwhile, and whether it had. */
static const uint32_t *serve_flag;
static bool served_asleep;

void
pairs_serve(struct shm *shm)
{
	served_asleep = serve_flag != NULL && asleep_is_set(serve_flag);
	if (serve_arms != NULL) {
		asleep_set(serve_arms);
		armed_number = *serve_arms;
		serve_arms = NULL;
	}
	__atomic_store_n(&shm->pairs.spoiled, false, __ATOMIC_RELAXED);
	__atomic_fetch_add(&pairs_served, 1, __ATOMIC_RELEASE);
}

uint64_t
pairs_deadline(const struct shm *shm)
{
	(void)shm;
	__atomic_fetch_add(&deadline_asked, 1, __ATOMIC_RELAXED);
	return deadline == 0 ? TIME_NEVER : engine_clock() + deadline;
}

static int partner_fd = -1; /* the thread's end of the connection with a partner */

unsigned
pairs_poll_fds(const struct shm *shm, struct pollfd *fds)
{
	(void)shm;
	fds[0] = (struct pollfd){.fd = partner_fd, .events = POLLIN};
	return partner_fd >= 0;
}

bool
pairs_wakes_read(struct shm *shm, const struct pollfd *fds, unsigned count)
{
	uint8_t why;

	(void)shm;
	return count != 0 && fds[0].revents != 0 && read(partner_fd, &why, 1) == 1 &&
	       why == PAIR_LAGS;
}

static inline void
relieved(void *arg)
{
	const struct shm *shm = container_of(arg, struct shm, progress_thread);

	if (__atomic_load_n(&shm->pairs.count, __ATOMIC_RELAXED) != 0)
		progress_thread_wake(arg);
}

/* Frames come right after the thread has set its flag. */
static bool sleep_delivers;

static inline void
sleep_shown(void *arg)
{
	struct progress_thread *t = arg;

	if (!asleep_is_set(t->asleep) ||
		!__atomic_exchange_n(&sleep_delivers, false, __ATOMIC_ACQ_REL))
		return;
	engine_lock(t->engine);
	engine_link_deliver(&fixture);
	engine_lock_release(t->engine); /* runs no pass */
}

struct thread_fixture {
	struct shm shm;
	struct region region;
	int session, wake; /* the daemon's ends */
};

static inline void
fixture_open(struct thread_fixture *k)
{
	static const struct link_qp_conf plain = {.wr = 64};
	struct region_geom geom = reply_valid().geom;
	int ends[2];

	memset(k, 0, sizeof(*k));
	engine_link_init(&fixture, NULL);
	link_qp_create(&fixture.a, &a, &plain);
	link_qp_create(&fixture.b, &b, &plain);
	link_qp_connect(&a, &b, &plain);
	dev_srq_add(fixture.a.dev, &fixture.a.srq);
	k->shm.dev = fixture.a.dev;
	k->shm.daemon_index = DAEMON_INDEX;
	region_init(&k->region, pages_make(region_client_size(&geom)),
		pages_make(region_daemon_size(&geom)), &geom);
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends),
		0);
	k->wake = ends[0];
	k->shm.progress_thread.wake_fd = ends[1];
	k->shm.progress_thread.self_wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	k->session = ends[0];
	k->shm.engine_thread =
		(struct engine_progress_thread){.wake = progress_thread_wake,
			.arg = &k->shm.progress_thread,
			.asleep = &k->region.client->rx_asleep,
			.asleep_shown = sleep_shown,
			.relieved = relieved};
	engine_set_progress_thread(fixture.a.dev->engines[0], &k->shm.engine_thread);
	assert_int_equal(progress_thread_start(&k->shm.progress_thread,
				 fixture.a.dev->engines[0], ends[1], &k->region),
		0);
}

static inline void
fixture_close(struct thread_fixture *k)
{
	progress_thread_stop(&k->shm.progress_thread);
	progress_thread_stop(&k->shm.progress_thread); /* a second stop does nothing */
	engine_set_progress_thread(fixture.a.dev->engines[0], NULL);
	close(k->shm.progress_thread.wake_fd);
	close(k->shm.progress_thread.self_wake_fd);
	close(k->shm.progress_thread.session_fd);
	if (k->session >= 0)
		close(k->session);
	if (k->wake >= 0)
		close(k->wake);
	free(k->region.client);
	free(k->region.daemon);
	dev_srq_remove(fixture.a.dev, &fixture.a.srq);
	link_qp_destroy(&a);
	link_qp_destroy(&b);
	engine_link_fini(&fixture);
}

static inline void
wait_until_set(const uint32_t *word, uint32_t value)
{
	await(__atomic_load_n(word, __ATOMIC_ACQUIRE) == value);
}

/* Waits for a sleep of the thread that the caller has not seen. */
static inline void
wait_until_asleep(const uint32_t *asleep, uint32_t *woken)
{
	await(asleep_wake_wanted(asleep, woken));
}

#endif
