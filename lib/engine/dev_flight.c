/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "base/base_log.h"
#include "base/own_thread.h"
#include "engine/dev_control.h"
#include "engine/dev_flight.h"

/* The thread prints a record at most this often: hosts can provoke faults. */
#define PRINT_INTERVAL_NS (50 * NS_PER_MS)

struct flight_printer {
	struct flight_log log;
	struct own_thread thread;
	pid_t process; /* that the thread is in: a child of fork() has none */
	unsigned next; /* slot to look at */
	bool stop;
};

bool
flight_recorder_wanted(void)
{
	const char *value = getenv("ROCADE_FLIGHT_RECORDER");

	return value != NULL && strcmp(value, "0") != 0;
}

static void
line_log(const char *line, void *arg)
{
	(void)arg;
	log_warn("%s", line);
}

/* Prints up to `most` of the copies that wait. */
static void
copies_print(struct flight_printer *p, unsigned most)
{
	for (unsigned i = 0; i < FLIGHT_COPIES && most != 0; i++) {
		/* Behind the last one: in a flood of faults each slot has its turn. */
		struct flight_slot *slot = &p->log.slots[p->next++ % FLIGHT_COPIES];

		/* Pairs with the release in flight_error(). */
		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != FLIGHT_WAITS)
			continue;
		flight_print(&slot->copy, line_log, NULL);
		/* Pairs with the acquire in flight_error(): the copy has been read. */
		__atomic_store_n(&slot->state, FLIGHT_FREE, __ATOMIC_RELEASE);
		most--;
	}
}

static void
lost_print(struct flight_log *log)
{
	uint32_t lost = __atomic_exchange_n(&log->lost, 0, __ATOMIC_RELAXED);

	if (lost != 0)
		log_warn("records of %u more QPs that entered ERR were not kept", lost);
}

static void *
flight_printer_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = PRINT_INTERVAL_NS};
	struct flight_printer *p = arg;

	for (;;) {
		while (sem_wait(&p->log.waiting) != 0)
			;
		copies_print(p, 1);
		lost_print(&p->log);
		if (__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
			copies_print(p, FLIGHT_COPIES);
			return NULL;
		}
		(void)nanosleep(&pause, NULL);
	}
}

int
flight_printer_start(struct flight_printer **out)
{
	struct flight_printer *p = alloc_get(&alloc_plain, "flight records", sizeof(*p));
	int err;

	if (p == NULL)
		return -ENOMEM;
	sem_init(&p->log.waiting, 0, 0);
	p->process = getpid();
	p->thread = (struct own_thread){
		.name = "rocade-flight", .main = flight_printer_main, .arg = p};
	err = own_thread_start(&p->thread);
	if (err != 0) {
		sem_destroy(&p->log.waiting);
		alloc_put(&alloc_plain, p, sizeof(*p));
		return -err;
	}
	*out = p;
	return 0;
}

void
flight_printer_stop(struct flight_printer *p)
{
	if (p->process == getpid()) {
		__atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
		(void)sem_post(&p->log.waiting);
		pthread_join(p->thread.id, NULL);
	}
	sem_destroy(&p->log.waiting);
	alloc_put(&alloc_plain, p, sizeof(*p));
}

struct flight_log *
flight_printer_log(struct flight_printer *p)
{
	return &p->log;
}
