/* SPDX-License-Identifier: BSD-3-Clause */
/* The main loop: time, signals and the command line, and without --nb-cores also the traffic and, without
 * worker lcores, the engines. */
#ifndef TESTPMD_RUN_H
#define TESTPMD_RUN_H

#include "cores.h"
#include "host.h"

struct run {
	struct conf conf;
	struct host hosts[PORTS_MAX];
	unsigned n_hosts; /* ports: the heads of their hosts */
	struct cores cores;
	bool active; /* between start and the end of the run */
	bool failed; /* a run of this program failed */
	bool wrong;  /* because of a value that does not fit the port */
	bool quit;
	bool polling; /* inside poll_commands(): do not call it again */
	/* Called every few milliseconds to run commands; may be NULL. */
	void (*poll_commands)(struct run *run);
	int commands_fd; /* what poll_commands() reads, or -1 at its end */
	uint64_t now_ns; /* at most a few passes old */
	uint64_t tick_ns, commands_ns;
	uint64_t line_ns; /* when the next line with rates is due */
	uint64_t line_last_ns;
	uint64_t line_messages[PORTS_MAX],
		line_bytes[PORTS_MAX]; /* values printed last */
	unsigned pass, empty_passes;   /* without work, in a row */
	unsigned idle_sleeps;          /* since the last pass that had work */
};

/* When a loop reads the clock: once in some passes, and at once after a sleep. */
struct ticker {
	uint64_t now_ns, tick_ns;
	unsigned pass;
};

#define PASSES_PER_CHECK 32 /* passes of a loop between two reads of the clock */
#define TICK_NS (NS_PER_SECOND / 1000)

static inline void
ticker_hurry(struct ticker *ticker)
{
	ticker->pass |= PASSES_PER_CHECK - 1;
}

/* Called in each pass. Returns true about every millisecond. */
static inline bool
ticker_is_due(struct ticker *ticker)
{
	if (++ticker->pass % PASSES_PER_CHECK != 0)
		return false;
	ticker->now_ns = clock_ns();
	if (ticker->now_ns < ticker->tick_ns)
		return false;
	ticker->tick_ns = ticker->now_ns + TICK_NS;
	return true;
}

/* SIGINT and SIGTERM end the run, and then the program. */
void run_catch_signals(void);

/* Launches the engines on the lcores of --engine-lcores, or on the worker lcores that run no traffic loop, if
 * there are any. Returns 0, or -1 with a
 * message in err. */
int run_launch_engines(struct run *run, char err[ERR_MAX]);
void run_stop_engines(struct run *run);

/* run_sleep.c: --sleep. run_sleep_open() is called once; it returns 0, or -1 with a message in
 * err. run_sleep() returns when an engine may have work, or a command has come, or after some
 * milliseconds: few while there was work lately. */
int run_sleep_open(struct run *run, char err[ERR_MAX]);
void run_sleep(struct run *run);
/* --events, where worker lcores run all engines: returns when a completion event has come, or after a
 * millisecond. */
void run_await_events(struct run *run);

/* Waits until the QPs of a peer, or (ALL_HOSTS) of all, are connected by RDMA-CM, at most --wait seconds.
 * Returns 0, or -1 with one of these hosts failed. */
int run_await_cm(struct run *run, struct host *head, int peer);

/* Returns 0, or -1 after printing an error. */
int run_start(struct run *run);
/* Ends a run: senders first, then receivers. Prints the report. */
void run_stop(struct run *run);

/* Runs the loop until until_ns, or a signal. UINT64_MAX: until the run is over. */
void run_loop(struct run *run, uint64_t until_ns);

#endif
