/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts EAL and opens the port. */
#include <sched.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include <rocade/rocade.h>

#include <common/eal_end.h>
#include <common/eal_start.h>
#include <common/number.h>

#include "settings.h"

static ssize_t
eal_log_write(void *cookie, const char *text, size_t size)
{
	size_t len = size != 0 && text[size - 1] == '\n' ? size - 1 : size;

	(void)cookie;
	rocade_daemon_notice("%.*s", (int)len, text);
	return (ssize_t)size;
}

/* EAL would write to standard error and to syslog(3), and wait for both. */
static void
eal_log_redirect(void)
{
	FILE *file =
		fopencookie(NULL, "w", (cookie_io_functions_t){.write = eal_log_write});

	if (file != NULL && rte_openlog_stream(file) != 0)
		fclose(file);
}

static cpu_set_t start_cpus; /* before EAL binds this thread to its main lcore */

/* EAL keeps pointers into its arguments: *s must outlive it. */
static int
rocaded_eal_start(const struct conf *s, int argc, char **argv)
{
	static char *all[2 * EAL_ARGS_MAX + 2];
	int n = 0;

	if (argc > EAL_ARGS_MAX) {
		fprintf(stderr, PROGRAM ": more than %d EAL arguments\n", EAL_ARGS_MAX);
		return -1;
	}
	if (sched_getaffinity(0, sizeof(start_cpus), &start_cpus) != 0)
		CPU_ZERO(&start_cpus);
	all[n++] = argv[0];
	for (unsigned i = 0; i < s->eal_count; i++)
		all[n++] = s->eal[i];
	for (int i = 1; i < argc; i++)
		all[n++] = argv[i];
	if (eal_start(PROGRAM, n, all) != 0)
		return -1;
	eal_log_redirect();
	return 0;
}

static int
port_find(const char *name, uint16_t *id)
{
	uint64_t number;

	if (name == NULL)
		name = "0";
	if (rte_eth_dev_get_port_by_name(name, id) == 0)
		return 0;
	if (parse_number(name, 0, RTE_MAX_ETHPORTS - 1, &number) &&
		rte_eth_dev_is_valid_port((uint16_t)number)) {
		*id = (uint16_t)number;
		return 0;
	}
	fprintf(stderr,
		PROGRAM ": --port: invalid value '%s': expected one of the %u ports "
			"of EAL (-a and --vdev add ports)\n",
		name, rte_eth_dev_count_avail());
	return -1;
}

/* Each queue is served by an lcore: the first one by the main lcore. */
static int
lcores_check(const struct conf *s)
{
	if (s->queues <= rte_lcore_count())
		return 0;
	fprintf(stderr,
		PROGRAM
		": --queues: %u queues need as many lcores, EAL has %u: give it more, "
		"for example with -l 0-%u or --lcores '(0-%u)@0'\n",
		s->queues, rte_lcore_count(), s->queues - 1u, s->queues - 1u);
	return -1;
}

int
rocaded_port_open(
	const struct conf *s, int argc, char **argv, struct rocade_daemon_port **port)
{
	struct rocade_daemon_ethdev conf = {.size = sizeof(conf),
		.rx_desc = s->rx_desc,
		.tx_desc = s->tx_desc,
		.queues = s->queues,
		.mtu = s->daemon.mtu};

	if (rocaded_eal_start(s, argc, argv) != 0)
		return -1;
	if (lcores_check(s) == 0 && port_find(s->port, &conf.ethdev) == 0) {
		if (rocade_daemon_open_ethdev(&conf, port) == 0)
			return 0;
		fprintf(stderr, PROGRAM ": %s\n", rocade_error());
	}
	eal_end();
	return -1;
}

void
rocaded_other_cpus(cpu_set_t *cpus)
{
	unsigned lcore;

	*cpus = start_cpus;
	RTE_LCORE_FOREACH(lcore)
	{
		rte_cpuset_t used = rte_lcore_cpuset(lcore);

		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
			if (CPU_ISSET(cpu, &used))
				CPU_CLR(cpu, cpus);
		}
	}
	if (CPU_COUNT(cpus) == 0)
		*cpus = start_cpus;
}

/* A queue of the daemon, for the lcore that runs it. */
static struct queue_run {
	struct rocade_daemon *daemon;
	unsigned queue;
} queue_runs[RTE_MAX_LCORE];

static int
queue_main(void *arg)
{
	const struct queue_run *run = arg;

	return rocade_daemon_run_queue(run->daemon, run->queue);
}

int
rocaded_queues_start(const struct conf *s, struct rocade_daemon *daemon)
{
	unsigned lcore, queue = 1;

	RTE_LCORE_FOREACH_WORKER(lcore)
	{
		if (queue >= s->queues)
			break;
		queue_runs[lcore] = (struct queue_run){daemon, queue};
		if (rte_eal_remote_launch(queue_main, &queue_runs[lcore], lcore) != 0) {
			fprintf(stderr, PROGRAM ": lcore %u cannot run queue %u\n", lcore,
				queue);
			return -1;
		}
		queue++;
	}
	return 0;
}

void
rocaded_queues_stop(struct rocade_daemon *daemon)
{
	rocade_daemon_stop_queues(daemon);
	rte_eal_mp_wait_lcore();
}
