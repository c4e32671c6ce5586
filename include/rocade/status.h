/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a daemon and its clients, as printed by `rocade-status`. These functions
 * are part of Rocade's programs; no installed library contains them. Pointers must be valid, or NULL
 * where a description allows that. */
#ifndef ROCADE_STATUS_H
#define ROCADE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Asks the daemon at this socket for its state (NULL: the socket that clients use). The
 * daemon asks its clients, which have 200 ms to answer. *json is a text that the caller
 * must free():
 *
 * {"socket": PATH,
 *  "daemon": {"device": {...}, "port": {...}, "queues": [...], "rdma_cm": {...},
 *             "limits": {...}, "hidden": {"clients": 0, "users": 0}, "departed": {...},
 *             "users": [{"uid": 0, ...}, ...],
 *             "clients": [{"id": 1, "pid": ..., ...}, ...],
 *             "latencies": [{"id": 1, "latencies": [{"type": "RC", "operation": "send",
 *                            "count": 3, "sum_ns": 7000, "buckets": {"512": 0, ...,
 *                            "inf": 0}}, ...]}, ...],
 *             "slowest": [{"id": 1, "slowest": [{"type": "RC", "operation": "send",
 *                          "requests": [{"ended_ns": ..., "took_ns": 9000,
 *                                        "spent_ns": {"queue": 0, ...}, ...}, ...]},
 *                          ...]}, ...]},
 *  "reports": [{"id": 1, "answered": true, "engine": {...}, "srq_count": N,
 *               "srqs": [...], "qps": [...]}, ...]}
 *
 * "port" is absent without a port, "queues" unless it has several. "departed" is the sum
 * of the counters of disconnected clients. "latencies" has a row for each client of which a
 * request was measured, and one with the id 0 for the disconnected clients of all users: how many measured requests of a type of QP and
 * an operation took how long, by the longest time that a bucket counts, in nanoseconds. "slowest" has a row for each client of which
 * a request was measured within five minutes: the slowest of them, and where their time went (struct
 * rocade_slow_request); "ended_ns" counts from 1970. Rows have room for about 30 requests of a client. A
 * report contains the statistics of the client with the same id, with up to 256 SRQs and
 * 1024 QPs; "answered" is false if the client has not answered in time. Root and the
 * daemon's user get all rows, other callers those of their own user, and that with the id 0:
 * "hidden" counts what is left out.
 *
 * Returns 0 or a positive errno value; rocade_error() then describes the failure. ENOENT,
 * ECONNREFUSED: no daemon at the socket. EPERM: it is of another user than root, the
 * caller and $ROCADE_DAEMON_UID. Any thread.
 */
int rocade_status(const char *socket, char **json);

/* The same over a connection to the daemon at the socket, which is used for nothing else and closed
 * at the end. Without qps the reports have no QPs, which are most of the text. */
int rocade_status_over(int fd, const char *socket, bool qps, char **json);

/*
 * Calls line for each line of text about the last events of a QP of a client with
 * ROCADE_FLIGHT_RECORDER, oldest first; the first line is a heading. The daemon asks the
 * client, which has 200 ms to answer.
 *
 * Returns 0 or a positive errno value; rocade_error() then describes the failure. ENOENT: the
 * caller may see no client with this id, or it has no such QP. ENOTSUP: the client keeps no
 * events. ETIMEDOUT: it has not answered. Else as rocade_status(). Any thread.
 */
int rocade_flight(const char *socket, uint32_t client, uint32_t qpn,
	void (*line)(const char *text, void *arg), void *arg);

/* The sets of counters in that text. */
enum rocade_counters {
	ROCADE_COUNTERS_ENGINE, /* "engine" of a report, "port" */
	ROCADE_COUNTERS_CLIENT, /* of "clients", "departed" */
	ROCADE_COUNTERS_QP,     /* of "qps" */
	ROCADE_COUNTERS_CM,     /* of "rdma_cm" */
	ROCADE_COUNTERS_QUEUE   /* of "queues" */
};

struct rocade_counter {
	const char *name; /* the member's */
	const char *text; /* what it counts */
	bool error;       /* losses, refusals or retries */
};

/* Returns the counter with index i of a set, which stays valid. After the last one both
 * texts are NULL. Any thread. */
struct rocade_counter rocade_counter(enum rocade_counters set, unsigned i);

/*
 * Makes the files by which programs find the daemon's device in /sys and /dev, below the directory root, a
 * descriptor: in such as a mount namespace has for that. The directories of rocade_sysfs_root() must be
 * ones in which files can be made. rocade_sysfs_refresh() writes those that change: when the
 * daemon has ended, that the port is down.
 *
 * Both return as rocade_status(), or what the kernel returned. One thread.
 */
int rocade_sysfs_make(const char *socket, int root);
int rocade_sysfs_refresh(const char *socket, int root);
/* Returns the path with index i below which these files are, or NULL after the last one. */
const char *rocade_sysfs_root(unsigned i);

/* Removes what programs of this user have left for devices of daemons that have ended. Any thread. */
void rocade_sysfs_sweep(void);

#define ROCADE_NAME_MAX 64

/* Asks the daemon for the name of its device. Returns as rocade_status() does; EPROTO:
 * the daemon has another version. Any thread. */
int rocade_device_name(const char *socket, char name[ROCADE_NAME_MAX]);

#ifdef __cplusplus
}
#endif

#endif
