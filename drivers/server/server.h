/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon around a switch and its connections: data that all files of this folder use.
 * Each file's calls are in its own header, which says who may call them. */
#ifndef ROCADE_SERVER_H
#define ROCADE_SERVER_H

#include <sys/queue.h>
#include <sys/types.h>

#include <rocade/daemon.h>

#include "base/core_taken.h"
#include "port/impair.h"
#include "server/ended_memory.h"
#include "server/fd_source.h"
#include "server/passed_fds.h"
#include "server/subuids.h"
#include "switch/proto.h"
#include "switch/socket.h"
#include "switch/uplink.h"
#include "ucm/ucm.h"

#define CONNS_PER_CLIENT 3 /* one attached, one for RDMA-CM, one for queries */

/* A connection of a client process, attached or not. */
struct conn {
	TAILQ_ENTRY(conn) link;
	struct rocade_daemon *daemon;
	struct fd_source socket;
	/* a pidfd: reports the end of the process even if a forked child keeps the socket
	 * open. -1: only the socket reports the end */
	struct fd_source process;
	/* an eventfd that the client writes to wake the daemon; never read, because the
	 * client could make the read block */
	struct fd_source daemon_wake;
	int wake_fd; /* the daemon's end of a socket pair: a write wakes the client */
	struct sw_client *client; /* NULL: not attached */
	struct rdmacm_client *cm; /* NULL: RDMA-CM is not in use */
	struct ucm_taker taker;   /* the client takes packets of its process */
	struct region_geom geom;  /* of the memory that it shares with the daemon */
	void *daemon_mem;         /* written by the daemon. NULL: nothing is shared */
	void *client_mem;         /* written by the client; from SW_START on */
	uint32_t memory_kib;      /* charged for both parts */
	int client_mem_fd, daemon_mem_fd;
	struct account *account; /* of its user */
	/* Shown to users. 0: not known, it has ended or is in another PID namespace. Which
	 * connections are of one process the key tells. */
	pid_t pid;
	uid_t uid;
	bool shares_uid; /* with users whom the daemon cannot tell apart: peer_process.h */
	uint64_t key[2]; /* of its process (switch/proto.h); 0: it has shown none */
	LIST_ENTRY(conn) key_link; /* in by_key of its daemon, once it has shown a key */
	char name[16];             /* of the process: printable, without quotes */
	/* generation of the statistics last requested from this client, 0: none */
	uint32_t requested_gen;
	uint32_t flight_gen; /* of the record of a QP last requested from it, 0: none */
	bool closing;        /* freed at the end of the pass over the events */
};

TAILQ_HEAD(conns, conn);
LIST_HEAD(key_bucket, conn);

#define KEY_BUCKETS 256

/* server_control.c: the time that requests take. */
struct control {
	uint64_t moved_ns;                        /* when packets last moved, 0: never */
	uint64_t due_ns;                          /* no events are handled before */
	TAILQ_HEAD(parked_users, account) parked; /* users with parked sources */
	uint64_t parks;                           /* how often a source was parked */
	uint64_t round;                           /* number of the present one */
	const struct account *asker; /* user of the last request; may be freed already */
	uint64_t asker_changed_ns;   /* when the users of two requests last differed */
};

struct rocade_daemon {
	struct sw *sw;
	struct uplink *up; /* NULL: traffic between clients only */
	uint64_t sleep_us; /* read by the threads of further queues */
	struct core_taken
		cores[SW_THREADS_MAX]; /* of the threads, the first one's first */
	uint32_t rdmacm_connections;   /* of all clients */
	struct sw_device device;
	struct impair_conf impair; /* of the port, else of what clients send */
	/* Of each queue of the port; NULL: not impaired. The threads use the queues. */
	struct impair *impairs[SW_THREADS_MAX];
	struct port_queue impaired_queues[SW_THREADS_MAX];
	struct sockaddr_un addr;
	/* Of each thread. A further queue has clients' eventfds in it only. */
	struct fd_sets sets[SW_THREADS_MAX];
	struct fd_source listen;
	struct passed_fds passed;
	struct fd_source own; /* the pipe of rocade_daemon_connect() */
	int own_fd;           /* its other end */
	struct fd_source stop;
	/* With further queues: an eventfd of each thread. Never read, as those of
	 * clients. */
	struct fd_source thread_wakes[SW_THREADS_MAX];
	bool queues_stopping;
	struct accounts accounts;
	struct subuids subuids; /* whose accounts are those of other uids */
	uint32_t shared_uid;    /* of users without a number here, or PEER_UID_NONE */
	struct control control;
	uint32_t descriptors; /* most that may be open for clients */
	bool others;          /* users other than the socket's owner may connect */
	struct conns conns;
	struct conns closing;
	struct key_bucket by_key[KEY_BUCKETS]; /* connections that have shown a key */
	struct ended_memory ended_memory;
	struct rdmacm *cm;
	uint32_t corrupt_seen; /* last handled value of the switch's corrupt_count */
	/* /dev/null: closed to accept and reject a connection when no descriptor is
	 * left */
	int spare_fd;
	uint32_t requested_gen; /* generation of the statistics last requested */
	uint32_t flight_gen;    /* of requests for the record of a QP: the last one */
	uint64_t requested_ns;
	uint64_t rejected_ns; /* when a rejected client was last logged, 0: never */
	bool bound;
	bool stopping;
};

#endif
