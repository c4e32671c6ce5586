/* SPDX-License-Identifier: BSD-3-Clause */
/* --sleep: the main loop waits for the engines' descriptors when there is nothing to do. */
#include <errno.h>
#include <poll.h>

#include "run.h"

/* The loop looks at the clock and at events this often: first, and after a number of sleeps in a
 * row without work. */
#define SLEEP_MS 10
#define SLEEP_IDLE_MS 100
#define TICK_MS 1
#define IDLE_SLEEPS 100
#define FDS_MAX (PORTS_MAX * ENGINES_MAX + 1) /* the engines, and the commands */

int
run_sleep_open(struct run *run, char err[ERR_MAX])
{
	int fd;

	for (unsigned i = 0; i < run->n_hosts; i++) {
		struct host *host = &run->hosts[i];

		for (unsigned e = 0; e < host->n_engines; e++) {
			if (rocade_engine_fd(host->engines[e], &fd) != 0)
				return error_set(err, "--sleep: %s", rocade_error());
		}
	}
	return 0;
}

/* How long to sleep at most. A line of statistics is not late by more than SLEEP_MS. */
static int
sleep_ms(const struct run *run)
{
	int ms = run->idle_sleeps < IDLE_SLEEPS ? SLEEP_MS : SLEEP_IDLE_MS;
	bool line_is_due =
		run->active && run->conf.stats_period != 0 &&
		run->line_ns < run->now_ns + (uint64_t)ms * (NS_PER_SECOND / 1000);

	return line_is_due ? SLEEP_MS : ms;
}

/* Turns the descriptors on until one engine has work. Returns how many are on. */
static unsigned
engines_arm(struct run *run, struct pollfd fds[FDS_MAX],
	struct rocade_engine *armed[FDS_MAX], bool *work)
{
	unsigned n = 0;

	*work = false;
	for (unsigned i = 0; i < run->n_hosts; i++) {
		struct host *host = &run->hosts[i];

		for (unsigned e = 0; e < host->n_engines; e++) {
			if (rocade_engine_arm(host->engines[e]) != 0) {
				*work = true;
				return n;
			}
			armed[n] = host->engines[e];
			fds[n].events = POLLIN;
			(void)rocade_engine_fd(host->engines[e], &fds[n].fd);
			n++;
		}
	}
	return n;
}

void
run_await_events(struct run *run)
{
	struct pollfd fds[PORTS_MAX];

	for (unsigned i = 0; i < run->n_hosts; i++)
		fds[i] = (struct pollfd){
			.fd = run->hosts[i].verbs.channel->fd, .events = POLLIN};
	(void)poll(fds, run->n_hosts, TICK_MS);
}

void
run_sleep(struct run *run)
{
	static struct rocade_engine *armed[FDS_MAX];
	static struct pollfd fds[FDS_MAX];
	bool work;
	unsigned n = engines_arm(run, fds, armed, &work);
	struct pollfd *commands = &fds[n];

	run->idle_sleeps++;
	/* poll() ignores a negative descriptor. */
	commands->fd =
		run->poll_commands != NULL && !run->polling ? run->commands_fd : -1;
	commands->events = POLLIN;
	if (!work && poll(fds, n + 1, sleep_ms(run)) > 0 && commands->revents != 0)
		run->commands_ns = 0;
	for (unsigned i = 0; i < n; i++)
		rocade_engine_disarm(armed[i]);
}
