/* SPDX-License-Identifier: BSD-3-Clause */
/* A hostile client of the daemon:
 *
 *   hostile WAY SECONDS SEED
 *   scribble   random words anywhere in the shared memory
 *   liar       correct rings, but random descriptors and frames, which change while the
 *              daemon reads them; it declares every QPN near its own its peer
 *   block      fills the descriptors that wake it, makes them blocking, and has the
 *              daemon wake it
 *   talk       random bytes, descriptors and oversized messages on the socket, without
 *              reading the replies
 *   linger     descriptors whose last close waits, over each socket of the daemon
 *   boast      fills its stats snapshot with the largest values
 *   places     as many connections as possible, each with rings
 *   qpns       allocates all QPNs, again and again
 *   crowd      16 processes with as many connections with rings as the daemon admits, until
 *              its input ends
 *   flood      status requests over 16 connections
 *   drain      joins the correct clients' group, fills its own ring, and takes half of it
 *              whenever it is full
 *   peers      registers QPs of hosts that do not exist, one after the other
 *   ports      listens at as many RDMA-CM ports as it gets, and closes all at once
 *   linger-pair  such a descriptor in the connection of a pair, which then ends
 *   asks       expensive requests wait in as many connections as 24 processes get
 *   again      asks for the descriptors of a pair again and again, and reads no reply
 *   sockets    connections with such a descriptor and many others, one after the other
 *   refused    the same, but the daemon refuses the connections
 *   locked     starts while a thread has its memory locked; needs CAP_SYS_PTRACE
 *   nests      another one attaches while it keeps the kernel's lock for epoll sets in other
 *              ones; needs CAP_SYS_PTRACE
 *   pair-WAY   forms a pair with another client (hostile_pair.c, hostile_pair_ways.c)
 *
 * Prints its counts. The exit status is 0 if the daemon still runs at the end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "hostile.h"

static uint64_t seed, until;
static double seconds;

uint64_t
random_next(void)
{
	uint64_t z = seed += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

bool
time_left(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec < until;
}

void
time_begin(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	until = (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec +
		(uint64_t)(seconds * 1e9);
}

/* The client's part is mapped for writing. The kernel must refuse that for the daemon's. */
static void
region_map(struct me *me, const struct region_geom *geom)
{
	size_t own = region_client_size(geom), size = region_daemon_size(geom);
	int fd = me->fds[SW_FD_CLIENT_MEM], read_only = me->fds[SW_FD_DAEMON_MEM];
	void *client, *daemon;

	if (fallocate(fd, 0, 0, (off_t)own) != 0 ||
		fallocate(read_only, 0, 0, (off_t)size) != 0)
		abort();
	client = mmap(NULL, own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	daemon = mmap(NULL, size, PROT_READ, MAP_SHARED, read_only, 0);
	if (client == MAP_FAILED || daemon == MAP_FAILED ||
		fcntl(fd, F_ADD_SEALS, REGION_WRITER_SEALS) != 0 ||
		mprotect(daemon, size, PROT_READ | PROT_WRITE) == 0 ||
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, read_only, 0) !=
			MAP_FAILED)
		abort();
	region_init(&me->region, client, daemon, geom);
}

int
attach(struct me *me)
{
	struct sw_request req = {.type = SW_ATTACH}, start = {.type = SW_START};
	struct sw_reply reply;
	int rc = session_open(&me->session, NULL);

	if (rc != 0)
		return rc;
	rc = session_call(&me->session, &req, &reply, me->fds, SW_ATTACH_FDS);
	if (rc != 0) {
		session_close(&me->session);
		return rc;
	}
	me->device = reply.device;
	region_map(me, &reply.geom);
	return session_call(&me->session, &start, &reply, NULL, 0);
}

/* ENODEV: the connection has ended without an answer. A user who was told of many refusals is told of no more. */
bool
is_refusal(int rc)
{
	return rc == -ENOSPC || rc == -ENOMEM || rc == -EMFILE || rc == -ENODEV;
}

/* Other attacks of the same user may have all that it may have, until they end. */
int
attach_waiting(struct me *me)
{
	for (unsigned tries = 0;; tries++) {
		int rc = attach(me);

		if (!is_refusal(rc) || tries == 400)
			return rc;
		others_run_us(50000);
	}
}

void
detach(struct me *me)
{
	munmap(me->region.client, region_client_size(&me->region.geom));
	munmap(me->region.daemon, region_daemon_size(&me->region.geom));
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++)
		close(me->fds[i]);
	session_close(&me->session);
}

int
daemon_call(struct me *me, uint32_t type, uint32_t qpn, uint32_t dest, uint32_t *out)
{
	struct sw_request req = {.type = type, .qpn = qpn, .dest_qpn = dest};
	struct sw_reply reply;
	int rc;

	memcpy(req.sgid, me->device.net.addr[0].gid, 16);
	memcpy(req.dgid, me->device.net.addr[0].gid, 16);
	rc = session_call(&me->session, &req, &reply, NULL, 0);
	if (rc == 0 && out != NULL)
		*out = reply.qpn;
	return rc;
}

void
daemon_notify(const struct me *me)
{
	const uint64_t one = 1;
	ssize_t n = write(me->fds[SW_FD_DAEMON_WAKE], &one, sizeof(one));

	(void)n;
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} ways[] = {{"scribble", mode_scribble}, {"liar", mode_liar},
		{"block", mode_block}, {"talk", mode_talk}, {"linger", mode_linger},
		{"boast", mode_boast}, {"places", mode_places}, {"qpns", mode_qpns},
		{"crowd", mode_crowd}, {"flood", mode_flood}, {"drain", mode_drain},
		{"peers", mode_peers}, {"ports", mode_ports},
		{"linger-pair", mode_linger_pair}, {"asks", mode_asks},
		{"again", mode_again}, {"sockets", mode_sockets},
		{"refused", mode_refused}, {"locked", mode_locked},
		{"nests", mode_nests}};

	signal(SIGPIPE, SIG_IGN);
	if (argc == 4) {
		seconds = atof(argv[2]);
		time_begin();
		seed = strtoull(argv[3], NULL, 10);
		if (strncmp(argv[1], "pair-", 5) == 0)
			return mode_pair(argv[1] + 5);
	}
	for (unsigned i = 0; argc == 4 && i < RTE_DIM(ways); i++) {
		if (strcmp(argv[1], ways[i].name) == 0)
			return ways[i].run();
	}
	fprintf(stderr,
		"usage: hostile WAY SECONDS SEED\n"
		"WAY: scribble, liar, block, talk, linger, boast, places, qpns, crowd, "
		"flood, drain, peers, ports, linger-pair, asks, again, sockets, refused, "
		"locked, nests or pair-WAY\n");
	return 2;
}
