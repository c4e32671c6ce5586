/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host: one port with its device, its QPs (flows) and what they do. All of it is used
 * by the main thread alone; engines run there too, or on worker lcores.
 */
#ifndef TESTPMD_HOST_H
#define TESTPMD_HOST_H

#include <common/hist.h>
#include <rocade/rocade.h>

#include "conf.h"
#include "rxq.h"
#include "tx.h"

#define ENGINES_MAX 16
#define STATS_MAX 96
#define NS_PER_SECOND UINT64_C(1000000000)

/* One QP. Messages of it are numbered from its last connect. */
struct flow {
	struct ibv_qp *qp;
	uint32_t qpn;
	bool connected; /* modified since RESET */
	bool failed;    /* a request completed in error: connect anew */
	bool greeted;   /* the peer answered on it since the connect */
	bool last_wqe;  /* the event came */
	bool resetting; /* on its way to RESET: posts nothing */
	struct rocade_cm_id *id; /* cm.c: its connection, or NULL */
	bool up; /* ... is established */
	union ibv_gid cm_peer;

	/* Sending. */
	uint64_t posted;
	uint64_t acked;      /* slots up to here came back with a polled completion */
	uint64_t limit;      /* message to stop before */
	uint32_t unsignaled; /* posted behind the last signaled one */
	uint32_t slot;       /* buffer of the next message */
	uint32_t size_i;     /* its size */
	uint8_t *tx;
	uint64_t served_ns; /* pingpong: when the ball left */
	bool owed;          /* pingpong: the answer waits for room */

	/* Receiving. */
	struct rxq *rxq;
	uint64_t received;
	uint32_t rx_size_i;

	/* restart.c */
	uint32_t seen_psn;
	uint64_t seen_duplicates, seen_naks;
	unsigned strikes;
};

enum host_state {
	HOST_IDLE,
	HOST_WAITING, /* for the peer's first answer or message */
	HOST_RUNNING,
	HOST_DRAINING,  /* nothing new is sent; waits for what is under way */
	HOST_LINGERING, /* a receiver that has everything: answers what the peer repeats
			 */
	HOST_DONE,
	HOST_FAILED
};

/* Of one run. */
struct tally {
	uint64_t messages, bytes; /* acknowledged, received, or round trips: what the mode
				     is about */
	uint64_t sent, sent_bytes; /* acknowledged */
	uint64_t verified_bytes, bad_bytes, bad_messages;
	uint64_t refills; /* after an SRQ limit event */
	uint64_t limit_events;
	uint64_t restarts; /* of the peer that were noticed */
	uint64_t start_ns; /* of `start` */
	uint64_t first_ns, last_ns;
};

struct snapshot {
	unsigned n;
	struct rocade_stat rows[STATS_MAX];
};

struct host;

struct mode_ops {
	bool sends, receives;
	void (*start)(struct host *host);
	unsigned (*reap)(struct host *host); /* polls completions, posts receives */
	unsigned (*push)(struct host *host); /* posts sends */
	/* No new messages; the host comes to HOST_DONE by itself. */
	void (*stop)(struct host *host);
	void (*tick)(struct host *host, uint64_t now_ns); /* about every millisecond */
};

extern const struct mode_ops send_ops, sink_ops, pingpong_ops;

struct host {
	unsigned index;
	const struct conf *conf;
	struct port_conf *pc;
	const struct mode_ops *ops;
	enum host_state state;
	bool passive; /* the peer sets the pace: sink, or the answering end of pingpong */
	bool reconnect; /* the next start connects every flow anew */
	bool by_cm;	/* `listen` or `connect` was given */
	struct rocade_cm *cm;
	struct rocade_cm_listener *listener;

	struct rocade_port *port;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_device_attr attr;
	struct rocade_engine *engines[ENGINES_MAX];
	unsigned n_engines;
	bool launched; /* worker lcores run the engines */

	struct flow *flows;
	unsigned n_flows;
	unsigned n_greeted;
	unsigned n_owed;
	union ibv_gid peer, own;
	uint8_t sgid_index;
	enum ibv_mtu mtu;
	struct tx tx;
	struct rxq *rxqs; /* one for the SRQ, or one for each flow */
	unsigned n_rxqs;

	struct tally tally;
	struct hist hist;
	struct snapshot run_base;  /* counters at `start` */
	struct snapshot show_base; /* counters at `clear` */
	struct snapshot engine_base[ENGINES_MAX];
	struct rocade_impair_stats impair_base; /* at `start` */
	uint64_t event_turn;
	uint64_t resolve_ns; /* when to ask for the next hop again */
	int resolve_rc;
	uint64_t drain_ns;             /* when HOST_DRAINING or HOST_LINGERING began */
	uint64_t quiet_mark, quiet_ns; /* what the count was, and since when */
	uint64_t restart_ns;           /* restart.c: next look */
	uint64_t restart_mark;
	uint64_t restart_said_ns;
	char reason[ERR_MAX]; /* why the run failed; "" when not */
};

uint64_t clock_ns(void);

/* now may be a few turns older than since. */
static inline uint64_t
elapsed_ns(uint64_t now_ns, uint64_t since_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* host.c. 0 or -1 with a sentence in err and everything undone. */
int hosts_open(struct host *hosts, unsigned n, struct conf *conf, char err[ERR_MAX]);
void host_close(struct host *host);
unsigned host_poll_engines(struct host *host);
/* Asynchronous events that have come; prints those that a person should know of. */
void host_events(struct host *host);

static inline struct flow *
host_flow(struct host *host, uint32_t qpn)
{
	uint32_t i = qpn - host->flows[0].qpn;

	return i < host->n_flows ? &host->flows[i] : NULL;
}

static inline bool
host_active(const struct host *host)
{
	return host->state >= HOST_WAITING && host->state <= HOST_LINGERING;
}

/* One sentence, once: the first is the one that matters. fail: the run of this host ends.
 */
void host_blame(struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void host_fail(struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void host_say(const struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* connect.c: brings these flows (all: NULL) from any state to RTS, numbered from 0 again.
 * 0, or -1 and host_fail() was called. */
int host_connect(struct host *host, bool (*which)(const struct flow *flow));
/* The same as far as INIT, receives posted. */
int host_ready(struct host *host, bool (*which)(const struct flow *flow));
/* Address of the peer, path MTU and source GID from the configuration. 0 or -1 and a
 * sentence. */
int host_set_path(struct host *host, char err[ERR_MAX]);

/* cm.c: 0, or -1 and a sentence in err. host_dial() only asks: host_cm_up() counts the answers
 * that host_cm_tick() has taken. */
int host_listen(struct host *host, uint16_t port, char err[ERR_MAX]);
int host_dial(struct host *host, const char *peer, uint16_t port, char err[ERR_MAX]);
unsigned host_cm_up(const struct host *host);
void host_cm_tick(struct host *host);
/* All connections. */
void host_hang_up(struct host *host);
void host_cm_close(struct host *host);

/* control.c: changes while the host is open. 0, or -1 and a sentence. */
int host_impair(struct host *host, char err[ERR_MAX]);
int host_srq_limit(struct host *host, uint32_t limit, char err[ERR_MAX]);
int host_srq_resize(struct host *host, uint32_t size, char err[ERR_MAX]);
void host_clear(struct host *host);

/* restart.c: notices that the peer starts from its first PSN again, and reconnects. */
void host_watch_restart(struct host *host, uint64_t now_ns);
bool flow_failed(const struct flow *flow);

/* stats.c */
void snapshot_take(struct host *host, int engine, struct snapshot *snapshot);
uint64_t snapshot_value(const struct snapshot *snapshot, const char *name);
/* What was done to received frames on purpose since `start`. */
void host_run_impair(struct host *host, struct rocade_impair_stats *stats);
/* The counter since `start`. */
uint64_t host_run_stat(struct host *host, const char *name);

/* progress.c: what the modes have in common. */
void host_running(struct host *host);
void host_done(struct host *host);
/* Whether the wait for the peer is over in vain: then the host has failed. */
bool host_wait_over(struct host *host, uint64_t now_ns, const char *what);
/* Whether the path to the peer is known; asks for it. */
bool host_resolved(struct host *host, uint64_t now_ns);
bool host_duration_over(const struct host *host, uint64_t now_ns);
/* When a receiving host has had enough. */
void host_tick_passive(struct host *host, uint64_t now_ns);
/* For how long mark has not changed; quiet_ns 0 starts it. */
uint64_t host_quiet_for(struct host *host, uint64_t mark, uint64_t now_ns);
/* For an end that sends: fails when nothing moves and the link is down. */
void host_watch_link(struct host *host, uint64_t now_ns);
/* Connects the flows that failed anew, from the first PSN: by now the peer may have
 * started. Whether there were any. */
bool host_retry(struct host *host);
/* Messages of this flow in a run of conf->count. */
uint64_t host_share(const struct host *host, const struct flow *flow);

#endif
