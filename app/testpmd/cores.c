/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "run.h"

#define HELD_NS 50000 /* sleep of a held core whose engines have nothing to do */
#define WAIT_NS 10000 /* sleep of the main thread while a core ends its pass */
#define EVENT_MS 1

struct core {
	struct run *run;
	unsigned index;
	unsigned n_engines;
	struct rocade_engine *engines[PORTS_MAX * ENGINES_MAX]; /* that it polls */
	struct ticker ticker;
	uint64_t seen; /* atomic: the turn, as the core saw it last */
} __attribute__((aligned(64)));

/* ---- The loop of a core ---- */

static unsigned
core_engines_poll(struct core *core)
{
	unsigned moved = 0;

	for (unsigned i = 0; i < core->n_engines; i++)
		moved += rocade_engine_poll(core->engines[i]);
	return moved;
}

/* The host of its first peer. */
static struct host *
core_host(const struct core *core, unsigned port)
{
	return host_at(&core->run->hosts[port], core->index);
}

static void
core_tick(struct core *core)
{
	for (unsigned i = 0; i < core->run->n_hosts; i++) {
		struct host *head = &core->run->hosts[i];

		for (unsigned c = core->index; c < head->n_hosts;
			c += core->run->cores.n) {
			host_tick(host_at(head, c), true, core->ticker.now_ns);
			host_publish(host_at(head, c));
		}
	}
}

static bool
core_is_active(const struct core *core, struct host *head)
{
	bool active = false;

	for (unsigned c = core->index; c < head->n_hosts; c += core->run->cores.n)
		active |= host_active(host_at(head, c));
	return active;
}

/* --events: waits for the completion events of this core's CQs. */
static void
events_await(const struct core *core)
{
	struct pollfd fds[PORTS_MAX];

	for (unsigned i = 0; i < core->run->n_hosts; i++) {
		const struct host *host = core_host(core, i);

		/* One that is done takes no events. */
		fds[i] = (struct pollfd){.fd = core_is_active(core, host->head)
						       ? host->verbs.channel->fd
						       : -1,
			.events = POLLIN};
	}
	(void)poll(fds, core->run->n_hosts, EVENT_MS);
}

static void
core_pass(struct core *core)
{
	const struct conf *conf = &core->run->conf;
	unsigned moved = core_engines_poll(core);

	for (unsigned i = 0; i < core->run->n_hosts; i++)
		moved += hosts_pass(core_host(core, i));
	if (moved == 0 && conf->events && core->n_engines == 0 && conf->rate.per_s == 0) {
		events_await(core);
		ticker_hurry(&core->ticker);
	}
	if (ticker_is_due(&core->ticker))
		core_tick(core);
}

static int
core_run(void *arg)
{
	static const struct timespec held = {.tv_nsec = HELD_NS};
	struct core *core = arg;
	struct cores *cores = &core->run->cores;

	while (!__atomic_load_n(&cores->ends, __ATOMIC_ACQUIRE)) {
		uint64_t turn = __atomic_load_n(&cores->turn, __ATOMIC_ACQUIRE);

		/* pairs with cores_hold(): no host is touched after this store, before the turn is
		 * seen to be even */
		if (turn != core->seen)
			__atomic_store_n(&core->seen, turn, __ATOMIC_RELEASE);
		if ((turn & 1) == 0)
			core_pass(core);
		else if (core_engines_poll(core) == 0)
			nanosleep(&held, NULL);
	}
	__atomic_store_n(&core->seen, 0, __ATOMIC_RELEASE); /* pairs with cores_end() */
	return 0;
}

/* ---- For the main thread ---- */

void
cores_hold(struct run *run)
{
	static const struct timespec wait = {.tv_nsec = WAIT_NS};
	struct cores *cores = &run->cores;

	if (cores->n == 0 || cores->held)
		return;
	cores->held = true;
	__atomic_store_n(&cores->turn, cores->turn + 1, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < cores->n; i++) {
		while (__atomic_load_n(&cores->list[i].seen, __ATOMIC_ACQUIRE) !=
			cores->turn)
			nanosleep(&wait, NULL);
	}
}

void
cores_go(struct run *run)
{
	struct cores *cores = &run->cores;

	if (cores->n == 0 || !cores->held || !run->active)
		return;
	for (unsigned i = 0; i < run->n_hosts; i++) {
		for (unsigned c = 0; c < run->hosts[i].n_hosts; c++)
			host_publish(host_at(&run->hosts[i], c));
	}
	cores->held = false;
	/* pairs with core_run(): what the main thread has changed is there first */
	__atomic_store_n(&cores->turn, cores->turn + 1, __ATOMIC_RELEASE);
}

static enum host_state
state_seen(const struct host *head, unsigned i)
{
	const struct host *host = i == 0 ? head : &head->others[i - 1];

	return __atomic_load_n(&host->view.state, __ATOMIC_RELAXED);
}

static bool
state_is_active(enum host_state state)
{
	return state >= HOST_WAITING && state <= HOST_LINGERING;
}

bool
cores_active(const struct run *run, unsigned port)
{
	const struct host *head = &run->hosts[port];
	bool active = false;

	for (unsigned c = 0; c < head->n_hosts; c++)
		active |= state_is_active(state_seen(head, c));
	return active;
}

static bool
one_has_failed(const struct run *run, unsigned port)
{
	const struct host *head = &run->hosts[port];
	bool failed = false;

	for (unsigned c = 0; c < head->n_hosts; c++)
		failed |= state_seen(head, c) == HOST_FAILED;
	return failed;
}

bool
cores_report(const struct run *run)
{
	bool over = true, initiators = false;

	for (unsigned i = 0; i < run->n_hosts; i++) {
		if (!cores_active(run, i))
			continue;
		if (one_has_failed(run, i))
			return true; /* the others of this port are to end, too */
		over = false;
		initiators |= !run->hosts[i].passive;
	}
	return over || (run->conf.loop && !initiators);
}

/* ---- Start and end ---- */

bool
cores_have(const struct cores *cores, unsigned lcore)
{
	for (unsigned i = 0; i < cores->n; i++) {
		if (cores->lcore[i] == lcore)
			return true;
	}
	return false;
}

/* Lists the worker lcores: "1, 2". Returns how many there are. */
static unsigned
workers_print(char text[256])
{
	unsigned lcore, n = 0;
	size_t len = 0;

	text[0] = '\0';
	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		if (len < 240)
			len += (size_t)snprintf(
				text + len, 256 - len, "%s%u", n != 0 ? ", " : "", lcore);
		n++;
	}
	return n;
}

/* The lcores of a list are worker lcores. */
static int
lcore_list_check(const char *option, const uint16_t *list, unsigned n,
	const char *workers, char err[ERR_MAX])
{
	for (unsigned i = 0; i < n; i++) {
		if (list[i] >= RTE_MAX_LCORE || !rte_lcore_is_enabled(list[i]) ||
			list[i] == rte_get_main_lcore())
			return error_set(err,
				"invalid value '%u' for --%s: expected worker lcores "
				"of EAL (-l): %s",
				list[i], option, workers);
	}
	return 0;
}

static int
core_lists_check(const struct conf *conf, bool eal, char err[ERR_MAX])
{
	uint64_t needed = conf->nb_cores + conf->n_engine_lcores;
	char workers[256];
	unsigned n = eal ? workers_print(workers) : 0;

	if (n == 0)
		return error_set(err,
			"invalid value '%" PRIu64 "' for --%s: EAL has no worker lcores; "
			"expected -l 0-%" PRIu64 " or more before --",
			conf->nb_cores != 0 ? conf->nb_cores : conf->engine_lcores[0],
			conf->nb_cores != 0 ? "nb-cores" : "engine-lcores", needed);
	if (lcore_list_check(
		    "corelist", conf->corelist, conf->n_corelist, workers, err) != 0 ||
		lcore_list_check("engine-lcores", conf->engine_lcores,
			conf->n_engine_lcores, workers, err) != 0)
		return -1;
	if (needed <= n)
		return 0;
	if (conf->n_engine_lcores != 0)
		return error_set(err,
			"invalid value '%" PRIu64
			"' for --nb-cores: expected at most %u, as EAL "
			"(-l) has the worker lcores %s, and --engine-lcores has %u of them",
			conf->nb_cores, n - conf->n_engine_lcores, workers,
			conf->n_engine_lcores);
	return error_set(err,
		"invalid value '%" PRIu64 "' for --nb-cores: expected at most %u, as EAL "
		"(-l) has the worker lcores %s",
		conf->nb_cores, n, workers);
}

/* The next worker lcore that runs no engine of --engine-lcores. */
static unsigned
next_core_lcore(const struct conf *conf, unsigned lcore)
{
	do
		lcore = rte_get_next_lcore(lcore, 1, 0);
	while (lcore < RTE_MAX_LCORE && conf_is_engine_lcore(conf, lcore));
	return lcore;
}

int
cores_choose(struct run *run, bool eal, char err[ERR_MAX])
{
	const struct conf *conf = &run->conf;
	struct cores *cores = &run->cores;
	unsigned lcore = (unsigned)-1;

	if (conf->nb_cores == 0 && conf->n_engine_lcores == 0)
		return 0;
	if (core_lists_check(conf, eal, err) != 0)
		return -1;
	if (conf->nb_cores == 0)
		return 0;
	cores->lcore = calloc(conf->nb_cores, sizeof(*cores->lcore));
	cores->list = aligned_alloc(
		_Alignof(struct core), conf->nb_cores * sizeof(*cores->list));
	if (cores->lcore == NULL || cores->list == NULL)
		return error_set(err, "out of memory");
	cores->n = (unsigned)conf->nb_cores;
	for (unsigned i = 0; i < cores->n; i++) {
		lcore = next_core_lcore(conf, lcore);
		cores->lcore[i] = conf->n_corelist != 0 ? conf->corelist[i] : lcore;
	}
	return 0;
}

/* Spreads the engines of all ports over the cores. */
static void
engines_spread(struct run *run)
{
	unsigned n = 0;

	for (unsigned i = 0; i < run->n_hosts; i++) {
		struct host *host = &run->hosts[i];

		for (unsigned e = 0; e < host->n_engines; e++) {
			struct core *core = &run->cores.list[n++ % run->cores.n];

			core->engines[core->n_engines++] = host->engines[e];
			host->engine_lcores[e] = run->cores.lcore[core->index];
		}
		host->runner = ENGINES_BY_CORES;
	}
}

int
cores_launch(struct run *run, bool engines, char err[ERR_MAX])
{
	struct cores *cores = &run->cores;

	for (unsigned i = 0; i < cores->n; i++)
		cores->list[i] = (struct core){.run = run, .index = i};
	if (engines)
		engines_spread(run);
	cores->held = true;
	cores->turn = 1;
	for (unsigned i = 0; i < cores->n; i++) {
		int rc =
			rte_eal_remote_launch(core_run, &cores->list[i], cores->lcore[i]);

		if (rc != 0)
			return error_set(err, "cannot use lcore %u: %s", cores->lcore[i],
				strerror(-rc));
	}
	return 0;
}

void
cores_end(struct run *run)
{
	struct cores *cores = &run->cores;

	__atomic_store_n(&cores->ends, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < cores->n; i++) {
		(void)rte_eal_wait_lcore(cores->lcore[i]);
		(void)__atomic_load_n(&cores->list[i].seen, __ATOMIC_ACQUIRE);
	}
	free(cores->list);
	free(cores->lcore);
	*cores = (struct cores){0};
}
