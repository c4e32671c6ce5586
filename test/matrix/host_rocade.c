/* SPDX-License-Identifier: BSD-3-Clause */
/* Rocade's devices: an ethdev port or a loop, and the threads that run the engines. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/rocade.h>
#include <rte_eal.h>

#include "await.h"
#include "host.h"

#define ARGS_MAX 64
#define IDLE_TURNS 100

static struct rocade_port *ports[2];
static pthread_t runner;
static bool running, stop;

static void *
engine_thread(void *arg)
{
	unsigned idle = 0;

	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		unsigned moved = 0;

		for (unsigned p = 0; p < 2 && ports[p] != NULL; p++) {
			for (unsigned i = 0; i < rocade_port_engine_count(ports[p]); i++)
				moved += rocade_engine_poll(
					rocade_port_engine(ports[p], i));
		}
		idle = moved != 0 ? 0 : idle + 1;
		if (idle > IDLE_TURNS)
			others_run();
		else if (idle != 0)
			sched_yield();
	}
	return NULL;
}

/* Faults in both directions: frames lost, duplicated, delayed, corrupted, per million. */
static struct rocade_impair impair = {.seed = 1};

static const char *
option_parse(struct rocade_port_conf *conf, const char *text)
{
	static char addresses[256];

	if (strncmp(text, "addr=", 5) == 0) {
		snprintf(addresses, sizeof(addresses), "%s", text + 5);
		conf->addresses = addresses;
	} else if (strncmp(text, "port=", 5) == 0) {
		conf->ethdev = (uint16_t)atoi(text + 5);
	} else if (strncmp(text, "mtu=", 4) == 0) {
		conf->mtu = (uint32_t)atoi(text + 4);
	} else if (strncmp(text, "impair=", 7) == 0) {
		if (sscanf(text + 7, "%u,%u,%u,%u", &impair.loss_ppm,
			    &impair.duplicate_ppm, &impair.reorder_ppm,
			    &impair.corrupt_ppm) != 4)
			return "impair=: expected LOSS,DUPLICATE,REORDER,CORRUPT, each "
			       "per million";
	} else if (strncmp(text, "engines=", 8) == 0) {
		conf->engines = (uint16_t)atoi(text + 8);
	} else {
		return "unknown device option: expected port=, addr=, mtu=, engines=, "
		       "impair= or EAL options";
	}
	return NULL;
}

static const char *
loop_open(struct rocade_port_conf *conf)
{
	struct rocade_port_conf both[2] = {*conf, *conf};

	both[0].addresses = "192.0.2.1/24,2001:db8::1/64";
	both[1].addresses = "192.0.2.2/24,2001:db8::2/64";
	return rocade_open_loop(both, ports) != 0 ? rocade_error() : NULL;
}

const char *
host_open(char **options, unsigned count, bool loop)
{
	struct rocade_port_conf conf = {.size = sizeof(conf)};
	char *args[ARGS_MAX] = {(char *)(uintptr_t) "matrix"};
	int n = 1;

	for (unsigned i = 0; i < count && n < ARGS_MAX - 1; i++) {
		const char *why;

		if (strchr(options[i], '=') == NULL || options[i][0] == '-' ||
			strncmp(options[i], "net_", 4) == 0) {
			args[n++] = options[i];
			continue;
		}
		why = option_parse(&conf, options[i]);
		if (why != NULL)
			return why;
	}
	if (loop) {
		const char *why = loop_open(&conf);

		if (why != NULL)
			return why;
	} else {
		if (rte_eal_init(n, args) < 0)
			return "rte_eal_init() failed";
		if (rocade_open_port(&conf, &ports[0]) != 0)
			return rocade_error();
		if (rocade_port_impair(ports[0], &impair) != 0)
			return "impair=: a value exceeds 1000000";
		impair.seed++;
		if (rocade_port_impair_tx(ports[0], &impair) != 0)
			return rocade_error();
	}
	running = pthread_create(&runner, NULL, engine_thread, NULL) == 0;
	return running ? NULL : "no thread";
}

const char *
host_device(unsigned which)
{
	return ibv_get_device_name(rocade_port_device(ports[which]));
}

const char *
host_join(const union ibv_gid *group, unsigned ifindex)
{
	(void)group;
	(void)ifindex;
	return NULL; /* the port joins when a QP is attached */
}

void
host_leave(void)
{
}

void
host_stop(void)
{
	if (!running)
		return;
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(runner, NULL);
	running = false;
}

void
host_report(void)
{
	struct rocade_stat rows[256];

	for (unsigned p = 0; p < 2 && ports[p] != NULL; p++) {
		unsigned n = rocade_port_stats(ports[p], -1, rows, 256);

		for (unsigned i = 0; i < n && i < 256; i++) {
			if (rows[i].value != 0)
				printf("# %s: %s %llu\n", host_device(p), rows[i].name,
					(unsigned long long)rows[i].value);
		}
	}
}

static void
print_impair_stats(const char *what, const struct rocade_impair_stats *n)
{
	printf("# impaired, %s: %llu lost, %llu duplicated, %llu delayed, "
	       "%llu corrupted\n",
		what, (unsigned long long)n->lost, (unsigned long long)n->duplicated,
		(unsigned long long)n->reordered, (unsigned long long)n->corrupted);
}

static void
print_impaired(struct rocade_port *port)
{
	struct rocade_impair_stats rx, tx;

	if ((impair.loss_ppm | impair.duplicate_ppm | impair.reorder_ppm |
		    impair.corrupt_ppm) == 0)
		return;
	rocade_port_impair_stats(port, &rx);
	rocade_port_impair_tx_stats(port, &tx);
	print_impair_stats("received", &rx);
	print_impair_stats("sent", &tx);
}

void
host_close(void)
{
	host_stop();
	if (ports[0] != NULL)
		print_impaired(ports[0]);
	for (unsigned i = 0; i < 2 && ports[i] != NULL; i++) {
		if (rocade_close_port(ports[i]) != 0)
			fprintf(stderr, "matrix: %s\n", rocade_error());
	}
}
