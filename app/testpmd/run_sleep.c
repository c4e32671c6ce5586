/* SPDX-License-Identifier: BSD-3-Clause */
/* --sleep: the main loop waits for the engines' descriptors when there is nothing to do. */
#include <errno.h>
#include <poll.h>

#include "run.h"

#define SLEEP_MS                                                                         \
	10 /* as often the loop looks at the clock, for commands and statistics */
#define FDS_MAX (PORTS_MAX * ENGINES_MAX)

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
run_sleep(struct run *run)
{
	static struct rocade_engine *armed[FDS_MAX];
	static struct pollfd fds[FDS_MAX];
	bool work;
	unsigned n = engines_arm(run, fds, armed, &work);

	if (!work)
		(void)poll(fds, n, SLEEP_MS);
	for (unsigned i = 0; i < n; i++)
		rocade_engine_disarm(armed[i]);
}
