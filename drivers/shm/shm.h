/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of a client of the daemon: a pair of rings and a packet pool in memory that
 * both share. No EAL, no root, no hugepages.
 */
#ifndef ROCADE_SHM_H
#define ROCADE_SHM_H

#include "engine/drive.h"
#include "port/port.h"
#include "shm/session.h"

struct keeper {
	pthread_t thread;
	struct engine *engine;
	int wake_fd; /* a socket: the daemon's wake-ups */
	int kick_fd; /* an eventfd: our own */
	int session_fd;
	uint32_t *asleep;
	struct report *report; /* in memory that the daemon asks in */
	const uint32_t *changes; /* moves when the daemon's device has changed */
	uint32_t changes_seen;
	bool running;
	bool stop;
	bool lost; /* the daemon is gone */
};

struct shm {
	struct session session;
	struct region region;
	size_t size;
	struct ring_prod tx;
	struct ring_cons rx;
	uint32_t rx_next;   /* handed to the engine up to here; rx.cons: given back */
	uint32_t tx_back;   /* slots whose buffers we have back */
	uint32_t *slot_buf; /* what is in each slot of the tx ring */
	uint32_t *free;     /* a stack of tx buffers */
	uint32_t free_count;
	uint8_t *rx_done; /* slots given back out of turn */
	int daemon_fd;    /* an eventfd: wakes the daemon */
	bool dead;        /* in a forked child: the memory is the parent's */
	void *queue;      /* this */
	struct dev *dev;
	struct engine_driver driver;
	struct keeper keeper;
	struct shm *next; /* of the process, for fork() */
};

/* Attaches to the daemon over a session and fills the port; closes the session on
 * failure. -errno. */
int
shm_attach(const struct session *session, struct port *port, struct sw_device *device,
	struct shm **out);

extern const struct dev_hooks shm_hooks; /* arg: the struct shm */

/* keeper.c: -errno. */
int
keeper_start(struct keeper *k, struct engine *engine, int session_fd,
	const struct region *region);
void
keeper_kick(void *keeper);
void
keeper_stop(struct keeper *k);

/* report.c: fills the report and answers the daemon's question with it. */
void
report_answer(struct dev *dev, struct report *report);

/* fork.c: the ports of this process. */
void
shm_list_add(struct shm *shm);
void
shm_list_remove(struct shm *shm);

/* open.c: the keeper's: link and addresses as the daemon has them now. */
void
shm_refresh(struct keeper *k);

/* open.c: looks for the daemon and puts its device into the list, or takes it out. */
void
shm_discover(void);

#endif
