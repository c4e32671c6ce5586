/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads write one word without a lock. ThreadSanitizer must report it, or the stage
 * proves nothing. With an argument the threads take a DPDK lock, and there must be no
 * report. */
#include <pthread.h>
#include <stddef.h>

#include <rte_spinlock.h>

static rte_spinlock_t lock = RTE_SPINLOCK_INITIALIZER;
static unsigned word;

static void *
locked(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		rte_spinlock_lock(&lock);
		word++;
		rte_spinlock_unlock(&lock);
	}
	return arg;
}

static void *
unlocked(void *arg)
{
	for (int i = 0; i < 1000; i++)
		word++;
	return arg;
}

int
main(int argc, char **argv)
{
	pthread_t thread[2];

	(void)argv;
	for (int i = 0; i < 2; i++) {
		if (pthread_create(
			    &thread[i], NULL, argc > 1 ? locked : unlocked, NULL) != 0)
			return 1;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
