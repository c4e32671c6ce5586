/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of a client that wait for completion events: the daemon wakes one of them directly. Events of
 * the port. */
#include "client_fixture.h"

#include "server/server.h"
#include "switch/sw.h"

#include "../../e2e/flow_end.h"
#include "../../lib/emulated.h"

#define MESSAGES 300
#define ENDS 2

/* An end that is connected to itself, and the thread that waits for its events. */
struct listener {
	struct end end;
	pthread_t thread;
	uint32_t events;
	const char *failure;
};

static void *
listener_main(void *arg)
{
	struct listener *l = arg;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	for (uint32_t received = 0; received != MESSAGES;) {
		if (ibv_get_cq_event(l->end.channel, &cq, &context) != 0 ||
			cq != l->end.cq) {
			l->failure = "ibv_get_cq_event";
			break;
		}
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0) != 0) {
			l->failure = "ibv_req_notify_cq";
			break;
		}
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			if (wc.status != IBV_WC_SUCCESS)
				l->failure = ibv_wc_status_str(wc.status);
			received += wc.opcode == IBV_WC_RECV;
		}
		__atomic_store_n(&l->events, received, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void
listener_open(struct listener *l)
{
	memset(l, 0, sizeof(*l));
	end_open(&l->end);
	assert_int_equal(qp_init(l->end.qp), 0);
	assert_int_equal(qp_connect(l->end.qp, l->end.qp->qp_num), 0);
	assert_int_equal(ibv_req_notify_cq(l->end.cq, 0), 0);
	thread_start(&l->thread, listener_main, l);
}

static void
message_send(struct listener *l, uint32_t number)
{
	assert_int_equal(recv_post(&l->end, 0), 0);
	assert_int_equal(send_post(&l->end, DEPTH), 0);
	await(__atomic_load_n(&l->events, __ATOMIC_ACQUIRE) == number ||
		l->failure != NULL);
	if (l->failure != NULL)
		fail_msg("message %u: %s", number, l->failure);
}

/* Returns the events that waiting threads made themselves, as the client counts them. */
static unsigned
events_waited(void)
{
	static const char name[] = "\"events_waited\": ";
	struct await answer = {.pauses = 0};
	const char *found = NULL;
	unsigned number = 0;
	char *text;

	while (found == NULL) {
		assert_true(await_pause(&answer));
		assert_int_equal(rocade_status(NULL, &text), 0);
		found = strstr(text, name);
		if (found != NULL)
			number = (unsigned)atoi(found + strlen(name));
		free(text);
	}
	return number;
}

/* Two threads wait at a time, for channels of their own. */
static void
check_events(bool waited)
{
	struct listener l[ENDS];
	struct client_fixture f;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	for (unsigned i = 0; i < ENDS; i++)
		listener_open(&l[i]);
	for (uint32_t n = 1; n <= MESSAGES; n++) {
		for (unsigned i = 0; i < ENDS; i++)
			message_send(&l[i], n);
	}
	for (unsigned i = 0; i < ENDS; i++) {
		assert_int_equal(pthread_join(l[i].thread, NULL), 0);
		assert_null(l[i].failure);
	}
	if (waited)
		assert_true(events_waited() > MESSAGES / 10);
	else
		assert_int_equal(events_waited(), 0);
	for (unsigned i = 0; i < ENDS; i++)
		assert_int_equal(end_close(&l[i].end), 0);
	fixture_close(&f);
}

TEST(the_daemon_wakes_the_waiting_thread)
{
	SKIP_IF_EMULATED();
	check_events(true);
}

TEST(the_daemon_wakes_the_progress_thread)
{
	setenv("ROCADE_OFF", "event-wait", 1);
	check_events(false);
	unsetenv("ROCADE_OFF");
}

static void
link_set(struct client_fixture *f, bool up)
{
	daemon_pause(f);
	sw_changed(f->d->sw, up);
	daemon_resume(f);
}

TEST(contexts_share_a_port_whose_link_is_down)
{
	struct ibv_async_event event;
	struct client_fixture f;
	struct end e, other;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	link_set(&f, false);
	assert_int_equal(ibv_get_async_event(e.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	ibv_ack_async_event(&event);
	end_open(&other);
	daemon_pause(&f);
	assert_non_null(TAILQ_FIRST(&f.d->conns));
	assert_null(TAILQ_NEXT(TAILQ_FIRST(&f.d->conns), link));
	daemon_resume(&f);
	assert_int_equal(end_close(&e), 0);
	assert_int_equal(end_close(&other), 0);
	fixture_close(&f);
}
