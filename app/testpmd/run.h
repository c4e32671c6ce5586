/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop: engines, modes, time, signals and the command line, all in the main thread.
 */
#ifndef TESTPMD_RUN_H
#define TESTPMD_RUN_H

#include "host.h"

struct run {
	struct conf conf;
	struct host hosts[PORTS_MAX];
	unsigned n_hosts;
	bool active; /* between start and the end of the run */
	bool failed; /* a run of this program failed */
	bool quit;
	bool polling; /* inside of poll_commands(): not again */
	/* Called every few milliseconds with the command line's turn; may be NULL. */
	void (*poll_commands)(struct run *run);
	uint64_t now_ns; /* a few turns old at most */
	uint64_t tick_ns, commands_ns;
	uint64_t line_ns; /* of the next line with rates */
	uint64_t line_last_ns;
	uint64_t line_messages[PORTS_MAX],
		line_bytes[PORTS_MAX]; /* what the last one said */
	unsigned turn;
};

/* SIGINT and SIGTERM end the run, and then the program. */
void run_catch_signals(void);

/* Gives the engines to the worker lcores, if EAL has any. 0 or -1 with a sentence. */
int run_launch_engines(struct run *run, char err[ERR_MAX]);
void run_stop_engines(struct run *run);

/* Until all QPs of the host are connected by CM, for --wait at the most: 0, or -1 and the host has
 * failed. */
int run_await_cm(struct run *run, struct host *host);

/* 0, or -1 and the sentence has been printed. */
int run_start(struct run *run);
/* Ends a run in order: senders first, then receivers. Reports. */
void run_stop(struct run *run);

/* Turns until until_ns, or until the run is over when that is UINT64_MAX; or a signal. */
void run_loop(struct run *run, uint64_t until_ns);

#endif
