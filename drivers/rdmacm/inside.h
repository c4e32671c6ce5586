/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA-CM for librdmacm in a program that embeds Rocade: lib/ucm over QP 1 of each open port.
 * It is started by the first channel. The engines carry its messages and run its timers, so it
 * needs no thread.
 *
 * Locks, in this order: `setup`, locks of a device (dev->lock, engine locks), `lock`.
 */
#ifndef ROCADE_RDMACM_INSIDE_H
#define ROCADE_RDMACM_INSIDE_H

#include <sys/queue.h>

#include "engine/engine_gsi.h"
#include "ucm/ucm.h"
#include "verbs/verbs_port.h"

#define INSIDE_IDS 65536
#define INSIDE_OUT 256 /* messages of a port that wait for its engine; a power of two */

/* An open port. */
struct inside_port {
	TAILQ_ENTRY(inside_port) link;
	struct rocade_port *port;
	struct net_conf net;       /* its addresses, with the link-local one */
	struct ucm_device *device; /* NULL: not served yet */
	uint64_t due;              /* of struct gsi_user; written with lock */
	uint32_t out_head, out_tail;
	struct gsi_msg *out; /* INSIDE_OUT of them; NULL until it is served */
};

/* A descriptor of the program is one end of a pair of sockets. It is readable while the channel
 * has events. */
struct inside_channel {
	TAILQ_ENTRY(inside_channel) link;
	int fd; /* the other end: reports a hang-up when the program has closed its last one */
	uint32_t number;
	struct ucm_channel *ucm;
};

struct inside {
	pthread_mutex_t setup; /* start, end, and the list of ports */
	pthread_mutex_t lock;  /* all else. Taken with an engine lock held */
	struct ucm *ucm;       /* NULL: not started */
	struct ucm_session *session;
	int epoll; /* the channels' ends, for their hang-ups */
	/* when to look for closed channels; TIME_NEVER: there are no channels */
	uint64_t sweep_ns;
	TAILQ_HEAD(, inside_port) ports;
	TAILQ_HEAD(, inside_channel) channels;
	bool forked; /* this is a child: it has no ports */
	bool loaded; /* librocade-rdmacm is in the process; set before main() */
};
extern struct inside inside;

/* ---- inside_state.c ---- */

/* Disables the cancellation of the thread meanwhile: programs end threads that wait for events
 * with pthread_cancel(). Returns what inside_unlock() needs. */
int inside_lock(void);
/* Wakes the engines that have something to do. */
void inside_unlock(int cancel_state);
/* Look for channels that the program has closed, and end them: a batch, so that a pass of an
 * engine stays short. If there may be more, sweep_ns is now. With lock. */
void inside_sweep(uint64_t now);
/* Start and end. With setup and lock. */
int inside_start(uint64_t now);
void inside_end(uint64_t now);

/* From now on a child of fork() is told apart. With setup. Returns 0 or -errno. */
int inside_fork_register(void);

/* ---- inside_port.c: with setup, without lock ---- */

/* Serves all open ports that are not served yet. Returns 0 or -errno. */
int inside_ports_serve(void);

#endif
