/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that keeps the kernel's lock for epoll sets in other ones, of which there is one in the
 * machine. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "hostile.h"
#include "../lib/held_page.h"

struct nest {
	struct held_page page;
	int inner, outer; /* epoll sets */
	int ready;        /* in the inner set */
	pid_t adder;      /* the number of the thread that has the lock; 0: not yet */
};

/* The kernel keeps the set's own lock while it writes the events. */
static void *
waiter_main(void *arg)
{
	const struct nest *n = arg;

	(void)epoll_wait(n->inner, n->page.at, 1, -1);
	return NULL;
}

/* For this the kernel takes the lock of the machine, and then waits for that of the set. */
static void *
adder_main(void *arg)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct nest *n = arg;

	__atomic_store_n(&n->adder, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	(void)epoll_ctl(n->outer, EPOLL_CTL_ADD, n->inner, &event);
	return NULL;
}

/* Returns whether the thread waits in the kernel for a lock. */
static bool
waits_for_lock(pid_t thread)
{
	char path[64], state = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	file = fopen(path, "r");
	if (file == NULL)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	(void)fclose(file);
	return state == 'D';
}

/* Attaches in a child. Returns 0 if the daemon has answered. */
static int
other_attaches(void)
{
	struct me me;
	pid_t child = fork();

	if (child < 0)
		abort();
	if (child == 0)
		_exit(attach(&me) != 0 || answer_ms() < 0);
	return await_child(child) == 0 ? 0 : -1;
}

static int
nest_round(void)
{
	struct nest n = {.inner = epoll_create1(EPOLL_CLOEXEC),
		.outer = epoll_create1(EPOLL_CLOEXEC),
		.ready = eventfd(1, EFD_CLOEXEC)};
	struct epoll_event event = {.events = EPOLLIN};
	pthread_t waiter, adder;
	pid_t thread;
	int rc;

	if (!held_page_open(&n.page) ||
		epoll_ctl(n.inner, EPOLL_CTL_ADD, n.ready, &event) != 0)
		return -1;
	if (pthread_create(&waiter, NULL, waiter_main, &n) != 0 ||
		!await_readable(n.page.fd) ||
		pthread_create(&adder, NULL, adder_main, &n) != 0)
		abort();
	while ((thread = __atomic_load_n(&n.adder, __ATOMIC_ACQUIRE)) == 0 ||
		!waits_for_lock(thread))
		others_run_us(1000);
	rc = other_attaches();
	held_page_close(&n.page);
	pthread_join(waiter, NULL);
	pthread_join(adder, NULL);
	close(n.outer);
	close(n.inner);
	close(n.ready);
	return rc;
}

int
mode_nests(void)
{
	unsigned rounds = 0;

	for (; time_left(); rounds++)
		if (nest_round() != 0)
			return 1;
	printf("rounds %u\n", rounds);
	return rounds == 0;
}
