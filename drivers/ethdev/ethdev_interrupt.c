/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_interrupts.h>

#include "ethdev/ethdev_interrupt.h"

/* The descriptors of PMDs differ in how an interrupt is taken off: some must not be read.
 * rte_epoll_wait() knows, so each queue has an epoll set for it. */
int
ethdev_interrupt_open(struct ethdev_queue *q)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), rc;

	if (epoll_fd < 0)
		return -errno;
	rc = rte_eth_dev_rx_intr_ctl_q(
		q->port_id, q->queue_id, epoll_fd, RTE_INTR_EVENT_ADD, NULL);
	if (rc == 0)
		rc = rte_eth_dev_rx_intr_enable(q->port_id, q->queue_id);
	if (rc == 0)
		rc = rte_eth_dev_rx_intr_disable(q->port_id, q->queue_id);
	/* -ENOTSUP: a descriptor of the kernel (net_tap), which is always on. */
	if (rc != 0 && rc != -ENOTSUP) {
		close(epoll_fd);
		return rc < 0 ? rc : -EIO;
	}
	q->wait_fd = epoll_fd;
	return 0;
}

void
ethdev_interrupt_close(struct ethdev_queue *q)
{
	if (q->wait_fd < 0)
		return;
	(void)rte_eth_dev_rx_intr_ctl_q(
		q->port_id, q->queue_id, q->wait_fd, RTE_INTR_EVENT_DEL, NULL);
	close(q->wait_fd);
	q->wait_fd = -1;
}

void
ethdev_rx_arm(void *queue, bool on)
{
	const struct ethdev_queue *q = queue;
	struct rte_epoll_event event;

	if (q->wait_fd < 0)
		return;
	if (on) {
		(void)rte_eth_dev_rx_intr_enable(q->port_id, q->queue_id);
		return;
	}
	(void)rte_eth_dev_rx_intr_disable(q->port_id, q->queue_id);
	(void)rte_epoll_wait(q->wait_fd, &event, 1, 0);
}
