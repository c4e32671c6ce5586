/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_lcore.h>

#include "testpmd_parse.h"
#include "testpmd_report.h"
#include "run.h"

#define COMMANDS_NS (NS_PER_SECOND / 50)
#define PASSES_BEFORE_SLEEP 4 /* in a row, without work */
#define IDLE_NS 50000         /* sleep per pass while no run is active */
#define CORES_NS 200000       /* sleep per pass while cores run the traffic */
#define STOP_NS (15 * NS_PER_SECOND)

static volatile sig_atomic_t signals;

static void
run_on_signal(int number)
{
	(void)number;
	signals++;
}

/* net_virtio_user writes to its socket, whose other end may be gone. The program ends only if
 * its output has lost its reader. */
static void
run_on_broken_pipe(int number)
{
	struct pollfd out = {.fd = STDOUT_FILENO};
	int saved = errno;

	if (poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0)
		run_on_signal(number);
	errno = saved;
}

void
run_catch_signals(void)
{
	struct sigaction pipe_action = {
		.sa_handler = run_on_broken_pipe, .sa_flags = SA_RESTART};
	struct sigaction action = {.sa_handler = run_on_signal};

	/* A second signal ends the program at once. */
	action.sa_flags = (int)SA_RESETHAND;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGPIPE, &pipe_action, NULL);
}

/* Returns the next worker lcore that runs no traffic loop, and behind the last one the first;
 * RTE_MAX_LCORE: there is none. */
static unsigned
next_lcore(const struct run *run, unsigned lcore)
{
	for (unsigned round = 0; round < 2; round++) {
		while ((lcore = rte_get_next_lcore(lcore, 1, 0)) < RTE_MAX_LCORE) {
			if (!cores_have(&run->cores, lcore))
				return lcore;
		}
		lcore = (unsigned)-1;
	}
	return RTE_MAX_LCORE;
}

/* The lcore of the nth engine of all ports; last: that of the one before. */
static unsigned
engine_lcore(const struct run *run, unsigned n, unsigned last)
{
	const struct conf *conf = &run->conf;

	return conf->n_engine_lcores != 0 ? conf->engine_lcores[n % conf->n_engine_lcores]
					  : next_lcore(run, last);
}

int
run_launch_engines(struct run *run, char err[ERR_MAX])
{
	unsigned n = 0, lcore = engine_lcore(run, 0, (unsigned)-1);

	if (lcore >= RTE_MAX_LCORE)
		return run->cores.n != 0 ? cores_launch(run, true, err) : 0;
	for (unsigned i = 0; i < run->n_hosts; i++) {
		struct host *host = &run->hosts[i];

		host->runner = ENGINES_BY_LCORE;
		for (unsigned e = 0; e < host->n_engines; e++) {
			if (rocade_engine_launch(host->engines[e], lcore) != 0)
				return error_set(err,
					"cannot use lcore %u for engine %u: %s", lcore, e,
					rocade_error());
			host->engine_lcores[e] = lcore;
			lcore = engine_lcore(run, ++n, lcore);
		}
	}
	return run->cores.n != 0 ? cores_launch(run, false, err) : 0;
}

void
run_stop_engines(struct run *run)
{
	for (unsigned i = 0; i < run->n_hosts; i++) {
		struct host *host = &run->hosts[i];

		for (unsigned e = 0;
			e < host->n_engines && host->runner == ENGINES_BY_LCORE; e++)
			rocade_engine_stop(host->engines[e]);
		host->runner = ENGINES_BY_MAIN;
	}
	cores_end(run);
}

static void run_step(struct run *run);

static void
tally_begin(struct host *host)
{
	host->tally = (struct tally){.start_ns = clock_ns()};
	host->progress = host->progress_ns = 0;
	host->base.limit_events = host->base.refills = 0;
}

int
run_await_cm(struct run *run, struct host *host, int peer)
{
	const struct conf *conf = host->conf;
	unsigned qps =
		(unsigned)(peer == ALL_HOSTS ? conf->qps : conf_qps(conf, host->pc));
	/* An interactive listener without --wait has no limit, as its user still has to
	 * start the other end. */
	bool no_limit = host->listener != NULL && conf->interactive && !conf->wait_given;
	uint64_t wait_s = no_limit ? 0 : conf->wait_s;
	uint64_t until = clock_ns() + wait_s * NS_PER_SECOND;
	struct host *of = host_of_peer(host, peer);

	tally_begin(host);
	while (host_cm_established(host, peer) != qps &&
		port_failed(host, peer) == NULL) {
		if (signals != 0)
			host_fail(of, "stopped before all QPs were connected (%u of %u)",
				host_cm_established(host, peer), qps);
		else if (wait_s != 0 && clock_ns() >= until)
			host_fail(of,
				"%u of %u QPs are connected after %" PRIu64 " s (--wait)",
				host_cm_established(host, peer), qps, wait_s);
		else
			run_step(run);
	}
	return port_failed(host, peer) != NULL ? -1 : 0;
}

static int
host_start(struct run *run, struct host *host)
{
	char err[ERR_MAX];

	if (host_set_path(host, err) != 0) {
		host_fail(host, "%s", err);
		run->wrong = true;
		return -1;
	}
	for (unsigned i = 0; i < host->n_conns; i++)
		host->reconnect |= host->conns[i].failed;
	if (!host->by_cm && (host->reconnect || host->ops == &pingpong_ops) &&
		host_connect(host, NULL) != 0)
		return -1;
	host->reconnect = false;
	tally_begin(host);
	host->restart.check_ns = 0;
	if (exchange_start(host) != 0 || rate_start(host) != 0)
		return -1;
	host->ops->start(host);
	if (host->state == HOST_FAILED)
		return -1;
	host->state = HOST_WAITING;
	return 0;
}

/* Before anything starts. */
static int
port_run_check(struct run *run, struct host *head)
{
	char err[ERR_MAX];

	head->teller = NULL;
	for (unsigned i = 0; i < head->n_hosts; i++) {
		host_at(head, i)->reason[0] = '\0';
		host_at(head, i)->state = HOST_IDLE;
	}
	for (unsigned i = 0; i < head->n_hosts && !head->by_cm; i++) {
		struct host *host = host_at(head, i);

		if (host_set_path(host, err) == 0 && host_check_route(host, err) == 0)
			continue;
		host_fail(host, "%s", err);
		run->wrong = true;
		return -1;
	}
	return 0;
}

/* Starts the hosts of all cores and peers of a port. */
static int
port_run_start(struct run *run, struct host *head)
{
	char err[ERR_MAX];

	if (head->by_cm && host_cm_renew(head, err) != 0) {
		host_fail(head, "%s", err);
		return -1;
	}
	if (head->by_cm && run_await_cm(run, head, ALL_HOSTS) != 0)
		return -1;
	for (unsigned i = 0; i < head->n_hosts; i++) {
		if (host_start(run, host_at(head, i)) != 0)
			return -1;
	}
	host_log(head, "%s, %" PRIu64 " QPs from 0x%x, path MTU %u, peer %s",
		mode_name(head->pc->mode), run->conf.qps, head->conns[0].qpn,
		128u << head->path.mtu, head->pc->peer);
	return 0;
}

int
run_start(struct run *run)
{
	for (unsigned i = 0; i < run->n_hosts; i++) {
		if (port_run_check(run, &run->hosts[i]) != 0) {
			run->failed = true; /* it printed why */
			return -1;
		}
	}
	for (unsigned i = 0; i < run->n_hosts; i++) {
		struct host *head = &run->hosts[i];

		host_snapshot(head, -1, &head->base.run);
		rocade_port_impair_stats(head->port, &head->base.impair);
		if (port_run_start(run, head) != 0) {
			run->failed = true; /* host_start() printed why */
			return -1;
		}
	}
	run->active = true;
	run->now_ns = clock_ns();
	run->line_last_ns = run->now_ns;
	run->line_ns = run->now_ns + run->conf.stats_period * NS_PER_SECOND;
	memset(run->line_messages, 0, sizeof(run->line_messages));
	memset(run->line_bytes, 0, sizeof(run->line_bytes));
	return 0;
}

static void
run_finish(struct run *run)
{
	cores_hold(run);
	run->active = false;
	for (unsigned i = 0; i < run->n_hosts; i++)
		run->failed |= port_reason(&run->hosts[i]) != NULL;
	report_final(run);
}

/* Whether every initiator (host that is not passive: a sender, or the end of pingpong
 * that sends first) is done. */
static bool
initiators_are_done(struct run *run)
{
	for (unsigned i = 0; i < run->n_hosts; i++) {
		if (!run->hosts[i].passive && port_active(&run->hosts[i]))
			return false;
	}
	return true;
}

/* Stops the active hosts of a port. */
static void
port_stop(struct host *head)
{
	for (unsigned c = 0; c < head->n_hosts; c++) {
		struct host *host = host_at(head, c);

		if (host_active(host))
			host->ops->stop(host);
	}
}

/* When one host has failed, the run of the port has. */
static void
port_follow_failure(struct host *head)
{
	bool failed = port_failed(head, ALL_HOSTS) != NULL;

	for (unsigned c = 0; c < head->n_hosts && failed; c++) {
		struct host *host = host_at(head, c);

		if (host_active(host))
			host_fail(host, "the run of the port has failed");
	}
}

/* Whether the run is over. Both ends of --loop are in this process: what the sender knows
 * to be acknowledged has arrived, so neither end needs to linger. */
static bool
run_over(struct run *run)
{
	bool over = true;

	for (unsigned i = 0; i < run->n_hosts; i++)
		port_follow_failure(&run->hosts[i]);
	if (run->conf.loop && initiators_are_done(run)) {
		for (unsigned i = 0; i < run->n_hosts; i++) {
			if (run->hosts[i].passive)
				port_stop(&run->hosts[i]);
		}
	}
	for (unsigned i = 0; i < run->n_hosts; i++)
		over &= !port_active(&run->hosts[i]);
	return over;
}

/* Whether the cores, and not this thread, use the hosts. */
static bool
cores_run(const struct run *run)
{
	return run->cores.n != 0 && !run->cores.held;
}

static void
hosts_tick(struct run *run)
{
	for (unsigned i = 0; i < run->n_hosts; i++)
		host_cm_tick(&run->hosts[i], run);
	for (unsigned i = 0; i < run->n_hosts && !cores_run(run); i++) {
		for (unsigned c = 0; c < run->hosts[i].n_hosts; c++)
			host_tick(host_at(&run->hosts[i], c), run->active, run->now_ns);
	}
	if (!run->active)
		return;
	if (run->conf.stats_period != 0 && run->now_ns >= run->line_ns)
		report_line(run);
	if (cores_run(run)) {
		if (!cores_report(run))
			return;
		cores_hold(run);
	}
	if (run_over(run))
		run_finish(run);
}

static void
run_tick(struct run *run)
{
	if (run->now_ns >= run->tick_ns) {
		run->tick_ns = run->now_ns + TICK_NS;
		hosts_tick(run);
	}
	if (run->poll_commands != NULL && !run->polling &&
		run->now_ns >= run->commands_ns) {
		run->polling = true;
		run->poll_commands(run);
		run->polling = false;
		run->commands_ns = clock_ns() + COMMANDS_NS;
	}
}

static unsigned
run_pass(struct run *run)
{
	unsigned moved = 0;

	cores_go(run);
	for (unsigned i = 0; i < run->n_hosts; i++) {
		struct host *host = &run->hosts[i];

		moved += host_poll_all(host);
		if (run->cores.n == 0 && run->active)
			moved += hosts_pass(host);
	}
	if (++run->pass % PASSES_PER_CHECK == 0) {
		run->now_ns = clock_ns();
		run_tick(run);
	}
	return moved;
}

/* One pass of the loop, and a sleep if there is nothing to do. */
static void
run_step(struct run *run)
{
	static const struct timespec idle = {.tv_nsec = IDLE_NS},
				     watching = {.tv_nsec = CORES_NS};

	if (run_pass(run) != 0) {
		run->empty_passes = 0;
		run->idle_sleeps = 0;
		return;
	}
	if (run->conf.sleep && ++run->empty_passes >= PASSES_BEFORE_SLEEP)
		run_sleep(run);
	else if (!run->active)
		nanosleep(&idle, NULL);
	else if (run->cores.n != 0 && run->conf.shared != SHARED_FRAMES)
		nanosleep(&watching, NULL);
	else if (run->conf.events && run->hosts[0].runner == ENGINES_BY_LCORE &&
		 run->conf.rate.per_s == 0)
		run_await_events(run);
	else
		return;
	run->pass |= PASSES_PER_CHECK - 1; /* read the clock in the next pass */
}

void
run_loop(struct run *run, uint64_t until_ns)
{
	while (!run->quit && run->now_ns < until_ns) {
		if (signals != 0) {
			run_stop(run);
			run->quit = true;
			return;
		}
		if (until_ns == UINT64_MAX && !run->active && run->poll_commands == NULL)
			return;
		run_step(run);
	}
}

/* Whether a host of this kind is active. */
static bool
any_active(struct run *run, bool passive)
{
	bool active = false;

	for (unsigned i = 0; i < run->n_hosts; i++)
		active |= run->hosts[i].passive == passive &&
			  (cores_run(run) ? cores_active(run, i)
					  : port_active(&run->hosts[i]));
	return active;
}

/* Runs the loop until no host of this kind is active, at most for STOP_NS. */
static void
hosts_wait(struct run *run, bool passive)
{
	static const struct timespec watching = {.tv_nsec = CORES_NS};
	uint64_t until_ns = clock_ns() + STOP_NS;

	do {
		run_pass(run);
		if (run->cores.n != 0)
			nanosleep(&watching, NULL);
	} while (any_active(run, passive) && run->active && run->now_ns < until_ns);
}

void
run_stop(struct run *run)
{
	bool polling = run->polling;

	if (!run->active)
		return;
	run->polling = true; /* no commands in the meantime */
	for (int passive = 0; passive < 2; passive++) {
		cores_hold(run);
		for (unsigned i = 0; i < run->n_hosts; i++) {
			if (run->hosts[i].passive == (passive != 0))
				port_stop(&run->hosts[i]);
		}
		hosts_wait(run, passive != 0);
	}
	run->polling = polling;
	if (run->active)
		run_finish(run);
}
