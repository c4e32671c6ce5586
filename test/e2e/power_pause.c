/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into a program, does what an application may do that keeps its port: before it starts
 * the port it has DPDK's librte_power pause the thread whenever receive queue 0 stays empty.
 * POWER_PAUSE=0 leaves that out. Prints at the end how often the queue was polled, and in how much
 * time of the polling thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_power_pmd_mgmt.h>

#define POLLS_PER_CLOCK 4096

static uint64_t polls, counted, first_ns, last_ns;

static uint64_t
thread_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

static uint16_t
poll_count(uint16_t port, uint16_t queue, struct rte_mbuf *frames[], uint16_t n,
	uint16_t most, void *arg)
{
	(void)port;
	(void)queue;
	(void)frames;
	(void)most;
	(void)arg;
	if (polls++ % POLLS_PER_CLOCK == 0) {
		counted = polls - 1;
		last_ns = thread_ns();
		if (first_ns == 0)
			first_ns = last_ns;
	}
	return n;
}

/* librte_power times the instruction PAUSE here, a quarter of a millisecond. A thread that loses
 * its core meanwhile would get shorter pauses, or none. */
static int
pauses_enable(uint16_t port)
{
	struct sched_param first = {.sched_priority = 1}, normal = {0};
	bool raised = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
	int rc = rte_power_ethdev_pmgmt_queue_enable(
		rte_lcore_id(), port, 0, RTE_POWER_MGMT_TYPE_PAUSE);

	if (raised)
		(void)sched_setscheduler(0, SCHED_OTHER, &normal);
	return rc;
}

__attribute__((visibility("default"))) int
rte_eth_dev_start(uint16_t port)
{
	int (*next)(uint16_t) = (int (*)(uint16_t))dlsym(RTLD_NEXT, "rte_eth_dev_start");
	const char *pause = getenv("POWER_PAUSE");
	int rc = 0;

	if (pause == NULL || strcmp(pause, "0") != 0)
		rc = pauses_enable(port);
	if (rc != 0) {
		fprintf(stderr, "power_pause: librte_power: %s\n", strerror(-rc));
		return rc;
	}
	if (rte_eth_add_rx_callback(port, 0, poll_count, NULL) == NULL)
		return -ENOMEM;
	return next(port);
}

__attribute__((destructor)) static void
polls_print(void)
{
	fprintf(stderr, "power_pause: %" PRIu64 " polls in %" PRIu64 " ns\n", counted,
		last_ns - first_ns);
}
