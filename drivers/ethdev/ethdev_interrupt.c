/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_interrupts.h>

#include "base/base_log.h"
#include "base/no_cancel.h"
#include "ethdev/ethdev_interrupt.h"

#define CALL_WAIT_US 1000000
#define CALL_STEP_US 100

static void
queue_interrupt_close(struct ethdev_queue *q)
{
	if (q->wait_fd < 0)
		return;
	(void)rte_eth_dev_rx_intr_ctl_q(
		q->port_id, q->queue_id, q->wait_fd, RTE_INTR_EVENT_DEL, NULL);
	close(q->wait_fd);
	q->wait_fd = -1;
}

/* The descriptors of PMDs differ in how an interrupt is taken off: some must not be read.
 * rte_epoll_wait() knows, so each queue has an epoll set for it. */
static int
queue_interrupt_open(struct ethdev_queue *q)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), rc;

	if (epoll_fd < 0)
		return -errno;
	rc = rte_eth_dev_rx_intr_ctl_q(
		q->port_id, q->queue_id, epoll_fd, RTE_INTR_EVENT_ADD, NULL);
	if (rc != 0) {
		close(epoll_fd);
		return rc < 0 ? rc : -EIO;
	}
	q->wait_fd = epoll_fd;
	rc = rte_eth_dev_rx_intr_enable(q->port_id, q->queue_id);
	/* net_tap has a descriptor, which the kernel makes readable at any time. */
	q->always_on = rc == -ENOTSUP;
	if (rc == 0) /* mlx5 returns -EAGAIN if there was no interrupt yet */
		(void)rte_eth_dev_rx_intr_disable(q->port_id, q->queue_id);
	if (rc == 0 || q->always_on)
		return 0;
	queue_interrupt_close(q);
	return rc;
}

void
ethdev_interrupts_open(struct ethdev_queue *queues, unsigned n, const char *name)
{
	int rc = 0;

	for (unsigned i = 0; i < n && rc == 0; i++)
		rc = queue_interrupt_open(&queues[i]);
	if (rc == 0)
		return;
	log_info("%s has no receive interrupts (%s): a sleeping engine looks for packets "
		 "every millisecond",
		name, strerror(-rc));
	ethdev_interrupts_close(queues, n);
}

void
ethdev_interrupts_close(struct ethdev_queue *queues, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		queue_interrupt_close(&queues[i]);
}

void
ethdev_rx_arm(void *queue, bool on)
{
	const struct ethdev_queue *q = queue;
	struct rte_epoll_event event;

	/* Not taken off, such a descriptor stays readable for as long as frames wait. The burst of
	 * net_tap may return none for a moment although there are some. */
	if (q->wait_fd < 0 || q->always_on)
		return;
	if (on) {
		(void)rte_eth_dev_rx_intr_enable(q->port_id, q->queue_id);
		return;
	}
	(void)rte_eth_dev_rx_intr_disable(q->port_id, q->queue_id);
	(void)rte_epoll_wait(q->wait_fd, &event, 1, 0);
}

struct interrupt_call {
	void (*call)(void *arg);
	void *arg;
	bool done;
};

static void
interrupt_called(void *arg)
{
	struct interrupt_call *c = arg;

	c->call(c->arg);
	__atomic_store_n(&c->done, true, __ATOMIC_RELEASE);
}

static bool
interrupt_call_is_done(const struct interrupt_call *c)
{
	/* Pairs with the release in interrupt_called(). */
	return __atomic_load_n(&c->done, __ATOMIC_ACQUIRE);
}

/* Calls call(arg) in EAL's interrupt thread, in which no handler of a PMD runs meanwhile, or in this one if
 * that thread does not get to it. */
static void
interrupts_call(void (*call)(void *arg), void *arg)
{
	struct interrupt_call c = {.call = call, .arg = arg};
	int state;

	if (rte_eal_alarm_set(1, interrupt_called, &c) != 0) {
		call(arg);
		return;
	}
	/* The alarm writes into the stack of this thread. */
	state = no_cancel_begin();
	for (unsigned us = 0; us < CALL_WAIT_US && !interrupt_call_is_done(&c);
		us += CALL_STEP_US)
		usleep(CALL_STEP_US);
	rte_eal_alarm_cancel(interrupt_called, &c); /* waits for a running one */
	if (!interrupt_call_is_done(&c))
		call(arg);
	no_cancel_end(state);
}

static void
ethdev_stop_and_close(void *port)
{
	uint16_t id = *(const uint16_t *)port;

	(void)rte_eth_dev_stop(id);
	/* Only this removes the pool's buffers from the descriptor rings. */
	(void)rte_eth_dev_close(id);
}

static void
nothing(void *arg)
{
	(void)arg;
}

void
ethdev_port_close(uint16_t port_id, const char *driver)
{
	/* net_memif frees its control channel while EAL's interrupt thread may be about to call its handler
	 * with it, because the other end closes at this moment: a segmentation fault. */
	if (strcmp(driver, "net_memif") == 0)
		interrupts_call(ethdev_stop_and_close, &port_id);
	else
		ethdev_stop_and_close(&port_id);
	/*
	 * That thread may still be in another handler of the PMD, and rte_eal_cleanup() of DPDK 22.11 unmaps
	 * the memory that the handler uses. An alarm runs in the same thread, so once it has run the handler
	 * has returned.
	 */
	interrupts_call(nothing, NULL);
}
