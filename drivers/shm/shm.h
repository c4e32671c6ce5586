/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a client of the daemon: a pair of rings and a packet pool in memory that
 * both processes share. Needs no EAL, no root and no hugepages. For the files of this
 * folder, which name their callers below. */
#ifndef ROCADE_SHM_H
#define ROCADE_SHM_H

#include "base/own_thread.h"
#include "engine/manual_progress.h"
#include "port/port.h"
#include "shm/busy_poll.h"
#include "shm/shm_pairs.h"
#include "shm/session.h"

struct progress_thread {
	struct own_thread thread;
	struct engine *engine;
	int wake_fd;      /* a socket: wake-ups by the daemon */
	int self_wake_fd; /* an eventfd: wake-ups by this process */
	int session_fd;
	uint32_t *asleep;      /* region_client.rx_asleep */
	struct report *report; /* statistics, for the daemon to read */
	/* in the daemon's memory */
	const uint32_t *report_requested; /* generation of the statistics */
	const uint32_t *flight_requested; /* generation of the record of a QP */
	const uint32_t *flight_qpn;       /* the QP */
	const uint32_t *changes;          /* of the daemon's device: how many */
	uint32_t changes_seen;
	const uint32_t *pair_events; /* in the daemon's memory: of the pairs, how many */
	uint32_t pair_events_seen;
	const uint32_t *
		take_requested; /* in the daemon's memory: to take all packets, how often */
	uint32_t take_seen;
	uint32_t drained; /* *asleep, when it last read wake-ups */
	bool moved;       /* packets, since it last slept */
	/* When it woke, packets had not to wake it: the application polls, and this thread looks whether there
	 * are any. */
	bool looks;
	bool told;           /* the daemon woke it */
	bool lags;           /* a partner woke it: its packets are not taken */
	bool polled;         /* the application had, when the thread last looked */
	uint32_t polls_seen; /* of the application, when the thread last looked */
	uint64_t watch_ns;   /* sleep while the application polls, with pairs */
	struct busy_poll busy;
	bool running;
	bool stop;
	bool lost; /* the connection to the daemon has ended */
};

/* Whether the daemon takes what is in the ring to it, for QPs whose timers have expired. */
struct standstill {
	uint32_t taken; /* up to here, when one looked last */
	/* The progress thread is to ask the daemon: relaxed, the wake-up makes it seen. The other members
	 * are the engine's. */
	bool is_due;
	uint64_t since_ns; /* since when it is so; 0: it has taken all */
};

struct shm {
	struct session session;
	struct region region;
	struct ring_prod tx;
	struct ring_cons rx;
	uint32_t rx_next; /* handed to the engine up to here; released up to rx.cons */
	/* the buffers of the tx slots before this one are on the free stack again */
	uint32_t tx_reclaimed;
	uint32_t daemon_woken; /* the daemon's sleep that was ended last */
	uint32_t *slot_buf;    /* buffer in each slot of the tx ring */
	uint32_t *free;        /* a stack of free tx buffers */
	uint32_t free_count;
	uint8_t *rx_done; /* slots released out of order */
	struct shm_pairs pairs;
	const uint64_t *now;          /* of the engine's pass */
	struct port_stats *dev_stats; /* of the engine */
	int daemon_wake_fd;           /* an eventfd that wakes the daemon */
	struct standstill standstill;
	bool dead;   /* in a forked child: the port does no I/O, see fork.c */
	void *queue; /* the port's only queue: points to this struct */
	struct dev *dev;
	/* what the engine needs to wake the progress thread */
	struct engine_progress_thread engine_thread;
	struct progress_thread progress_thread;
	uint32_t daemon_index; /* of the daemon's device: which daemon it is */
	uint32_t client_id;    /* that the daemon has given it */
	struct shm *next;      /* list of the ports of this process, for fork() */
};

/* shm_port.c, for shm_open.c: attaches to the daemon over a session and fills the port.
 * Closes the session on failure; session_error_text() may be called then. Returns 0 or -errno. */
int shm_attach(struct session *session, struct port *port, struct sw_device *device,
	struct shm **out);

extern const struct dev_hooks shm_hooks; /* arg: the struct shm */

/* shm_port.c, for progress_thread.c and shm_rdmacm.c: runs the engine until it has handled what the
 * daemon has put into the port's ring, and partners into their pairs, before this call. */
void shm_take_received(struct shm *shm);

/* progress_thread.c, for shm_open.c: returns 0 or -errno. */
int progress_thread_start(struct progress_thread *t, struct engine *engine,
	int session_fd, const struct region *region);
void progress_thread_wake(void *arg); /* also for the engine; any thread */
void progress_thread_stop(struct progress_thread *t);

/* shm_report.c, for progress_thread.c: writes the statistics that the daemon has
 * requested, and then the generation that it has requested. */
void report_write(struct dev *dev, uint32_t requested_gen, struct report *report);
/* Writes the record of the QP, and then the generation that the daemon has requested. */
void report_flight_write(struct dev *dev, uint32_t qpn, uint32_t requested_gen,
	struct report_flight *flight);

/* fork.c, for shm_open.c and shm_rdmacm.c: how many forks there were from the process that has loaded the
 * library to this one (sw_device_index()). */
uint32_t process_forks(void);
/* fork.c, for the files of this folder: the ports of this process. */
void shm_list_add(struct shm *shm);
void shm_list_remove(struct shm *shm);
void shm_list_each(void (*fn)(struct shm *shm, void *arg), void *arg);

/* advice.c, for shm_open.c: a port was opened, or is about to be closed. At its end the
 * process prints a line if connections over its ports have failed. local: the daemon's
 * device connects this machine only. */
void advice_port_opened(bool local);
void advice_port_closed(struct shm *shm);

#endif
