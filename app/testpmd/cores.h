/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --nb-cores: traffic loops on worker lcores. Core c runs the hosts of core c of all ports, while a run
 * is active. When the main thread needs the hosts, for a command or at the end of a run, it holds the
 * cores: each ends its pass and touches no host until they go on. Engines that have no lcore of their own
 * are polled by the cores at all times.
 */
#ifndef TESTPMD_CORES_H
#define TESTPMD_CORES_H

#include <stdbool.h>
#include <stdint.h>

#include <common/options.h>

struct run;
struct core;

struct cores {
	struct core *list;
	unsigned n;      /* 0: the main loop runs the traffic */
	unsigned *lcore; /* of each core */
	bool held;
	bool ends;     /* atomic: the loops return */
	uint64_t turn; /* atomic: odd while the cores are held */
};

/* Before the ports are opened: chooses the lcores. Returns 0, or -1 with a message in err. */
int cores_choose(struct run *run, bool eal, char err[ERR_MAX]);
/* Whether a traffic loop runs on this lcore. */
bool cores_have(const struct cores *cores, unsigned lcore);
/* Starts the loops, which are held. engines: they poll the engines. Returns 0, or -1 with a message in
 * err. */
int cores_launch(struct run *run, bool engines, char err[ERR_MAX]);
/* Returns when no loop runs any more. */
void cores_end(struct run *run);
/* Returns when no core uses a host. Without --nb-cores does nothing, as cores_go(). */
void cores_hold(struct run *run);
/* Lets the cores use the hosts, if a run is active. */
void cores_go(struct run *run);
/* While the cores use the hosts: whether the port with this index is active. */
bool cores_active(const struct run *run, unsigned port);
/* While the cores use the hosts: looks whether one has failed, or all are done. The main
 * thread then holds the cores. */
bool cores_report(const struct run *run);

#endif
