/* SPDX-License-Identifier: BSD-3-Clause */
/* librdmacm in a program that embeds Rocade: the unmodified library finds the open ports, and
 * its channels are served in the process. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "case.h"
#include "rdmacm_fixture.h"

/* The first test: librdmacm reads the device list once, when it finds a device. */
TEST(without_a_port_there_is_no_device)
{
	struct rdma_cm_id *id;
	int n = 7;

	errno = 0;
	assert_null(rdma_create_event_channel());
	assert_int_equal(errno, ENODEV);
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), -1);
	assert_int_equal(errno, ENODEV);
	assert_null(rdma_get_devices(&n));
	assert_int_equal(n, 0);
}

/* A child does not serve librdmacm, although the parent has no channel yet. */
TEST(fork_comes_before_the_first_channel)
{
	pid_t pid;

	ports_open();
	pid = fork();
	if (pid == 0)
		_exit(rdma_create_event_channel() == NULL ? 0 : 1);
	assert_int_equal(await_child(pid), 0);
	ports_close();
}

TEST(connects_over_the_wire)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct end a, b;

	ports_open();
	channel = channel_new();
	listener = listener_new(channel, ADDR_B, PORT);
	assert_ptr_equal(listener->verbs->device, rocade_port_device(ports[1]));
	ends_connect(channel, ADDR_A, ADDR_B, PORT, &a, &b);
	assert_ptr_equal(a.id->verbs->device, rocade_port_device(ports[0]));
	assert_ptr_equal(b.id->verbs->device, rocade_port_device(ports[1]));
	/* The library holds contexts of both. */
	assert_int_equal(rocade_close_port(ports[0]), EBUSY);
	ends_talk(&a, &b, "from a to b");
	ends_talk(&b, &a, "and back");
	assert_true(port_stat(0, "rx_roce") >= 3); /* a REP, an ACK, a SEND */
	assert_true(port_stat(1, "rx_roce") >= 4); /* a REQ, an RTU, a SEND, an ACK */
	ends_disconnect(channel, &a, &b);
	all_close(channel, listener);
}

/* Within one port, to a wildcard listener. */
TEST(connects_within_a_port)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct end a, b;

	ports_open();
	channel = channel_new();
	listener = listener_new(channel, "0.0.0.0", PORT);
	assert_null(listener->verbs);
	ends_connect(channel, ADDR_B, ADDR_B, PORT, &a, &b);
	assert_ptr_equal(b.id->verbs->device, rocade_port_device(ports[1]));
	ends_talk(&a, &b, "within");
	ends_disconnect(channel, &a, &b);
	ends_connect(channel, ADDR_B, ADDR_A, PORT, &a, &b);
	assert_ptr_equal(b.id->verbs->device, rocade_port_device(ports[0]));
	ends_talk(&b, &a, "the other device");
	ends_disconnect(channel, &a, &b);
	all_close(channel, listener);
}

TEST(other_addresses_are_refused)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *listener;
	struct end end;
	struct rdma_conn_param param = {.retry_count = 7};

	ports_open();
	channel = channel_new();
	assert_int_equal(bind_errno(channel, "10.0.0.1", PORT), EADDRNOTAVAIL);
	listener = listener_new(channel, ADDR_A, PORT);
	assert_int_equal(bind_errno(channel, ADDR_A, PORT), EADDRINUSE);
	assert_int_equal(bind_errno(channel, ADDR_B, PORT), 0);
	id = id_new(channel, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)addr_of("10.0.0.1", 0),
				 (struct sockaddr *)addr_of(ADDR_B, PORT), 2000),
		-1);
	assert_int_equal(errno, EADDRNOTAVAIL);
	assert_int_equal(rdma_destroy_id(id), 0);
	/* A port without a listener. */
	id = id_routed(channel, RDMA_PS_TCP, NULL, ADDR_B, 9);
	end_prepare(&end, id);
	assert_int_equal(rdma_connect(id, &param), 0);
	event_take_status(channel, RDMA_CM_EVENT_REJECTED, 8);
	end_free(&end);
	all_close(channel, listener);
}

/* An application's own epoll set, and a channel that does not block. */
TEST(channel_is_a_descriptor)
{
	struct epoll_event wanted = {.events = EPOLLIN}, got;
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int set = epoll_create1(EPOLL_CLOEXEC);

	ports_open();
	channel = channel_new();
	assert_int_equal(
		fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, channel->fd, &wanted), 0);
	errno = 0;
	assert_int_equal(rdma_get_cm_event(channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(epoll_wait(set, &got, 1, 0), 0);
	id = id_new(channel, RDMA_PS_TCP);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rdma_resolve_addr(id, NULL,
					 (struct sockaddr *)addr_of(ADDR_A, 1), 2000),
			0);
		await(epoll_wait(set, &got, 1, 0) == 1);
		event_take(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		assert_int_equal(epoll_wait(set, &got, 1, 0), 0);
		assert_int_equal(rdma_destroy_id(id), 0);
		id = id_new(channel, RDMA_PS_TCP);
	}
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
	close(set);
	ports_close();
}

struct waiter {
	struct rdma_event_channel *channel;
	pthread_t thread;
	pid_t tid; /* atomic */
};

static void *
event_wait(void *arg)
{
	struct waiter *w = arg;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	if (rdma_get_cm_event(w->channel, &event) != 0)
		return NULL;
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

/* Returns when the thread sleeps. */
static void
waiter_start(struct waiter *w, struct rdma_event_channel *channel)
{
	*w = (struct waiter){.channel = channel};
	assert_int_equal(pthread_create(&w->thread, NULL, event_wait, w), 0);
	await(__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) != 0);
	await(thread_sleeps(w->tid));
}

static void
on_signal(int number)
{
	(void)number;
}

/* A thread sleeps in rdma_get_cm_event() while another one polls the engines. It sleeps on after a
 * signal whose handler restarts calls. */
TEST(waits_in_another_thread)
{
	struct sigaction restart = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct waiter waiter;
	uint64_t sleeps;
	int free_fd;
	void *got;

	ports_open();
	channel = channel_new();
	id = id_new(channel, RDMA_PS_TCP);
	free_fd = dup(0);
	assert_int_equal(close(free_fd), 0);
	assert_int_equal(sigaction(SIGUSR1, &restart, &old), 0);
	waiter_start(&waiter, channel);
	sleeps = thread_sleep_count(waiter.tid);
	pthread_kill(waiter.thread, SIGUSR1);
	await(thread_sleep_count(waiter.tid) > sleeps && thread_sleeps(waiter.tid));
	assert_int_equal(
		rdma_resolve_addr(id, NULL, (struct sockaddr *)addr_of(ADDR_B, 1), 2000),
		0);
	assert_int_equal(pthread_join(waiter.thread, &got), 0);
	assert_ptr_equal(got, id);
	assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
#ifndef __SANITIZE_ADDRESS__ /* librdmacm does not free the event of such a thread */
	/* pthread_cancel() ends a thread that waits. */
	waiter_start(&waiter, channel);
	assert_int_equal(pthread_cancel(waiter.thread), 0);
	assert_int_equal(pthread_join(waiter.thread, &got), 0);
	assert_ptr_equal(got, PTHREAD_CANCELED);
	assert_int_equal(dup(0), free_fd); /* the thread has left no descriptor */
	assert_int_equal(close(free_fd), 0);
#endif
	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(channel);
	ports_close();
}

/* Calls block, with no event channel of the program: the polling thread does all the work. */
TEST(synchronous_calls_work)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *info;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct rdma_cm_id *id;

	ports_open();
	assert_int_equal(rdma_getaddrinfo(ADDR_B, "7471", &hints, &info), 0);
	assert_int_equal(rdma_create_ep(&id, info, NULL, &attr), 0);
	assert_ptr_equal(id->verbs->device, rocade_port_device(ports[1]));
	assert_non_null(id->qp);
	errno = 0;
	assert_int_equal(rdma_connect(id, NULL), -1); /* there is no listener */
	assert_int_equal(errno, ECONNREFUSED);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(info);
	ports_close();
}

static struct ibv_qp_init_attr
datagram_qp(void)
{
	return (struct ibv_qp_init_attr){.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
}

/* RDMA_PS_UDP: a service is found over the wire; a group is joined. */
TEST(datagram_services_are_found)
{
	struct ibv_qp_init_attr attr = datagram_qp();
	struct rdma_conn_param param = {.private_data_len = 0};
	struct rdma_cm_id *listener, *id, *asked;
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	uint32_t qpn;

	ports_open();
	channel = channel_new();
	listener = id_new(channel, RDMA_PS_UDP);
	assert_int_equal(
		rdma_bind_addr(listener, (struct sockaddr *)addr_of(ADDR_B, PORT)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	id = id_routed(channel, RDMA_PS_UDP, ADDR_A, ADDR_B, PORT);
	assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	asked = event_take(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	attr = datagram_qp();
	assert_int_equal(rdma_create_qp(asked, NULL, &attr), 0);
	qpn = asked->qp->qp_num;
	param.qp_num = qpn;
	assert_int_equal(rdma_accept(asked, &param), 0);
	assert_int_equal(rdma_get_cm_event(channel, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(event->param.ud.qp_num, qpn);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	assert_int_equal(
		rdma_join_multicast(id, (struct sockaddr *)addr_of("239.1.1.1", 0), NULL),
		0);
	assert_ptr_equal(event_take(channel, RDMA_CM_EVENT_MULTICAST_JOIN), id);
	assert_int_equal(
		rdma_leave_multicast(id, (struct sockaddr *)addr_of("239.1.1.1", 0)), 0);
	rdma_destroy_qp(asked);
	rdma_destroy_qp(id);
	assert_int_equal(rdma_destroy_id(asked), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	all_close(channel, listener);
}

/* Returns when closed descriptors have been looked for: one that is closed after the others is found. */
static void
closed_ones_are_found(struct rdma_event_channel *channel)
{
	assert_int_equal(close(raw_listener(PORT + 1, 1)), 0);
	await(bind_errno(channel, ADDR_A, PORT + 1) == 0);
}

/* A descriptor that is closed without DESTROY_ID ends its listener. */
TEST(closed_channel_ends_its_ids)
{
	struct rdma_event_channel *channel;
	int fd, copy;

	ports_open();
	channel = channel_new();
	fd = raw_listener(PORT, 1);
	assert_int_equal(bind_errno(channel, ADDR_A, PORT), EADDRINUSE);
	copy = dup(fd);
	assert_int_equal(close(fd), 0);
	closed_ones_are_found(channel);
	assert_int_equal(bind_errno(channel, ADDR_A, PORT), EADDRINUSE);
	assert_int_equal(close(copy), 0);
	assert_int_equal(bind_errno(channel, ADDR_A, PORT), 0);
	rdma_destroy_event_channel(channel);
	ports_close();
}

/* Starts a process that has copies of all descriptors but fd, and sleeps. It is what a child of
 * posix_spawn() or vfork() is until it calls execve(): handlers of pthread_atfork() do not run. */
static pid_t
sleeper_start(int fd)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		syscall(SYS_close, fd);
		for (;;)
			syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
	}
	assert_true(pid > 0);
	return pid;
}

/* The socket of a channel that the program has closed may outlive the channel. */
TEST(closed_channel_may_have_copies)
{
	struct rdma_event_channel *channel;
	pid_t pid;
	int fd;

	ports_open();
	channel = channel_new();
	fd = raw_listener(PORT, 1);
	pid = sleeper_start(fd);
	assert_int_equal(close(fd), 0);
	await(bind_errno(channel, ADDR_A, PORT) == 0);
	/* A channel in its place, and closed ones are looked for again. */
	fd = raw_listener(PORT, 1);
	closed_ones_are_found(channel);
	assert_int_equal(bind_errno(channel, ADDR_A, PORT), EADDRINUSE);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(WTERMSIG(await_child(pid)), SIGKILL);
	assert_int_equal(close(fd), 0);
	rdma_destroy_event_channel(channel);
	ports_close();
}

static int
child_run(struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	struct rdma_cm_id *another;

	if (rdma_create_event_channel() != NULL)
		return 1;
	if (rdma_create_id(channel, &another, NULL, RDMA_PS_TCP) == 0 || errno != ENODEV)
		return 2;
	if (rdma_listen(id, 1) == 0 || errno != ENODEV)
		return 3;
	return 0;
}

TEST(fork_leaves_the_parent_alone)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *bound;
	struct end a, b;
	pid_t pid;

	ports_open();
	channel = channel_new();
	listener = listener_new(channel, ADDR_B, PORT);
	bound = id_new(channel, RDMA_PS_TCP);
	assert_int_equal(
		rdma_bind_addr(bound, (struct sockaddr *)addr_of(ADDR_A, PORT)), 0);
	ends_connect(channel, ADDR_A, ADDR_B, PORT, &a, &b);
	pid = fork();
	if (pid == 0)
		_exit(child_run(channel, bound));
	assert_int_equal(await_child(pid), 0);
	ends_talk(&a, &b, "still here");
	ends_disconnect(channel, &a, &b);
	assert_int_equal(rdma_destroy_id(bound), 0);
	all_close(channel, listener);
}
