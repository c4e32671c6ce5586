/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host is one port with its device, its QPs and their traffic, or with --nb-cores or several peers the
 * share of one core and one peer: a port then has a host for each core and each peer, with QPs, CQs and
 * counters of its own. The host of core 0 and the first peer is the head of the port, and also has what
 * the port has once.
 *
 * One thread at a time uses a host: the main thread, or with --nb-cores, while a run is active and the
 * cores are not held, the core's (cores.h). Engines run in the main thread, on worker lcores of their
 * own, or in the loops of the cores.
 */
#ifndef TESTPMD_HOST_H
#define TESTPMD_HOST_H

#include <rocade/rocade.h>

#include "testpmd_conf.h"
#include "exchange.h"
#include "mws.h"
#include "peers.h"
#include "rxq.h"
#include "testpmd_rate.h"
#include "testpmd_tx.h"
#include "verify.h"
#include "target.h"

#define ENGINES_MAX 16
/* More than a port and a QP have counters. A test compares those of a port. */
#define STATS_MAX 192
#define QP_STATS_MAX 32
#define SEEN_MAX 1024  /* datagrams that may overtake each other */
#define GRH_LEN 40     /* before the payload of a received datagram */
#define ALL_HOSTS (-1) /* of all cores, or of all peers */
#define NS_PER_SECOND UINT64_C(1000000000)

/* The QP's ring in the target of the peer. Counts of WRITEs from the last connect on. */
struct conn_ring {
	uint64_t posted, acked, flushed; /* the last: before a complete FLUSH, or all */
	uint64_t checked;                /* by the peer, as far as this end knows */
	uint64_t asked_ns; /* of the check that this end waits for; 0: none */
	uint64_t asked;    /* how many WRITEs it is about */
	bool finished;     /* the peer has found the end of the run right */
};

/* The QP's ring in the own target. */
struct conn_checked {
	uint64_t writes;   /* of the peer */
	struct op_walk at; /* the next one to check */
};

/* One QP. Its messages are numbered from its last connect. */
struct conn {
	struct ibv_qp *qp;
	struct ibv_qp *
		xrc_target; /* that receives, with the QPN behind that of qp; else NULL */
	uint32_t qpn;
	uint32_t peer_qpn; /* of the QP that it is connected with */
	/* The bytes of the messages that it sends, and of those that it receives, are computed from these
	 * (verify_seed()), which are made of the QPNs of both ends. */
	uint32_t flow_out, flow_in;
	bool connected; /* modified since RESET */
	bool failed;    /* a request failed, or the peer restarted: reconnect */
	bool answered;  /* the peer acknowledged a message since the connect */
	/* The LAST_WQE_REACHED event came. Where cores share an SRQ, another one may get it. */
	bool last_wqe;
	bool resetting;          /* on its way to RESET: must not post */
	struct rocade_cm_id *id; /* RDMA-CM connection (testpmd_cm.c), or NULL */
	bool established;        /* the RDMA-CM connection is established */
	bool asked;              /* this end has requested it, and has not accepted it */
	bool outdated;           /* an option of the connection has changed since */
	uint64_t ask_ns;         /* when the request is sent again; 0: it is not */
	union ibv_gid cm_peer;   /* the other end of id */

	/* Sending. */
	uint64_t posted;
	uint64_t acked;      /* messages before this number are complete */
	uint64_t limit;      /* number of the message to stop before */
	uint32_t unsignaled; /* requests posted since the last signaled one */
	uint32_t slot;       /* buffer of the next message */
	uint32_t size_i;     /* index of its size in conf->sizes */
	uint8_t *tx;         /* send buffers of this QP, in host->tx.mem */
	uint64_t sent_ns;    /* pingpong: when the last message was sent */
	bool reply_pending;  /* pingpong: the reply waits for send queue space */

	/* Receiving. */
	struct rxq *rxq;
	uint64_t received;  /* messages */
	uint32_t rx_size_i; /* index of the next message's size in conf->sizes */

	/* Other operations than SEND (tx_op.c). */
	uint32_t op_i;       /* index of the next message's operation in the mix */
	struct op_walk ack;  /* the next message to be acknowledged */
	struct op_walk take; /* the next message that completes a receive */
	uint64_t seen[SEEN_MAX /
		      64]; /* UC, UD: the last SEEN_MAX of them, by number % SEEN_MAX */
	bool incomplete;   /* UC, UD: what the sender asked for last was not there yet */
	struct conn_ring ring;
	struct conn_checked checked;
	uint64_t fadd_sum; /* acknowledged */
	uint64_t cas_posted,
		cas_value; /* when all that is posted, or acknowledged, is done */

	/* restart.c: values at the last check */
	uint32_t seen_psn;
	uint64_t seen_duplicates, seen_naks;
	unsigned stalled_checks;
	uint64_t repeated_ns; /* of the last one that saw duplicates */
	/* The peer has repeated its first message for long: it got no acknowledgement. */
	bool unheard;
};

enum host_state {
	HOST_IDLE,
	HOST_WAITING, /* for the peer's first answer or message */
	HOST_RUNNING,
	HOST_DRAINING, /* sends nothing new; waits for outstanding requests */
	/* a receiver that has everything: still acknowledges retransmissions */
	HOST_LINGERING,
	HOST_DONE,
	HOST_FAILED
};

/* RDMA-CM: whether this end disconnects the connections of a host, and until when it waits. */
enum closing {
	CLOSING_NOT,
	CLOSING_CONFIRM, /* until the peer has confirmed */
	CLOSING_REUSE    /* until the QPs can be connected with the same peer again */
};

/* Counters of one run. */
struct tally {
	/* send: acknowledged; sink, pingpong and both: received */
	uint64_t messages, bytes;
	uint64_t sent, sent_bytes; /* acknowledged */
	uint64_t of_op
		[OP_KINDS]; /* messages acknowledged, with other operations than SEND */
	uint64_t verified_bytes, bad_bytes, bad_messages;
	uint64_t lost, late, duplicates; /* messages; of UC and UD */
	uint64_t refills;                /* after an SRQ limit event */
	uint64_t limit_events;
	uint64_t cq_events;
	uint64_t restarts; /* noticed restarts of the peer */
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
	bool paced; /* --rate is for it */
	void (*start)(struct host *host);
	unsigned (*reap)(struct host *host); /* polls completions, posts receives */
	unsigned (*push)(struct host *host); /* posts sends */
	/* Stops new messages. The host then reaches HOST_DONE by itself. */
	void (*stop)(struct host *host);
	void (*tick)(struct host *host, uint64_t now_ns); /* about every millisecond */
};

extern const struct mode_ops send_ops, sink_ops, pingpong_ops, both_ops;

struct host_verbs {
	struct ibv_context *ctx;          /* that of lender() */
	struct ibv_comp_channel *channel; /* --events, one for all peers; else NULL */
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
	uint32_t srqn; /* of an XRC SRQ, else 0 */
	struct ibv_device_attr attr;
	bool send_ready, recv_ready; /* contexts of the CQs, for cq_events.c */
};

/* The path to the peer. */
struct host_path {
	union ibv_gid peer, own;
	uint8_t sgid_index;
	enum ibv_mtu mtu;
	uint64_t resolve_ns; /* when to resolve the next hop again */
	int resolve_rc;      /* result of rocade_port_resolve(); -1: not called yet */
};

/* Counters at an earlier time. */
struct host_base {
	struct snapshot run;  /* at `start` */
	struct snapshot show; /* at `clear` */
	struct snapshot engine[ENGINES_MAX];
	struct rocade_impair_stats impair; /* at `start` */
	/* At `clear`. */
	struct rocade_impair_stats show_impair;
	uint64_t limit_events, refills; /* of this run */
	uint64_t *qps;                  /* QP_STATS_MAX of each QP; NULL: all 0 */
};

/* The main thread may read this copy while the core uses the host, which writes it about every
 * millisecond. Only atomic accesses. */
struct host_view {
	uint64_t messages, bytes, bad_bytes;
	enum host_state state;
} __attribute__((aligned(64)));

enum engine_runner {
	ENGINES_BY_MAIN,  /* the main loop */
	ENGINES_BY_LCORE, /* worker lcores that do nothing else */
	ENGINES_BY_CORES  /* the traffic loops of --nb-cores */
};

/* restart.c */
struct host_restart {
	uint64_t check_ns; /* time of the next check */
	uint64_t mark;     /* sum of the counters that a restarted peer increases */
	uint64_t logged_ns;
};

struct host {
	unsigned index;
	unsigned core;       /* 0 without --nb-cores */
	unsigned peer;       /* index among the peers of the port */
	unsigned two_qpns;   /* 1: each of conns has two (conf_qpns()), else 0 */
	unsigned first_conn; /* index of conns[0] among the QPs of the port */
	struct host *head;   /* the host of core 0 and peer 0 */
	struct host *first;  /* the host of this core and peer 0 */
	struct host *others; /* of the head: the other hosts of the port */
	unsigned n_hosts;    /* of the head: hosts of the port */
	struct host *
		teller; /* of the head, atomic: the host of the port that printed its error */
	struct host_view view;
	const struct conf *conf;
	struct port_conf *pc;
	const struct mode_ops *ops;
	enum host_state state;
	/* only reacts to the peer: sink, or the end of pingpong that replies */
	bool passive;
	bool reconnect;       /* without RDMA-CM: the next start reconnects every QP */
	bool by_cm;           /* `listen` or `connect` was given */
	uint16_t cm_port;     /* of `connect` */
	unsigned asks_later;  /* QPs of the port with ask_ns; of the head */
	uint64_t asks_end_ns; /* no request is sent again after that; 0: none was */
	enum closing closing;
	struct rocade_cm *cm;
	struct rocade_cm_listener *listener;

	struct rocade_port *port;
	struct app_port *app_port; /* --shared; else NULL */
	struct rocade_engine *engines[ENGINES_MAX];
	unsigned n_engines;
	enum engine_runner runner;
	unsigned engine_lcores[ENGINES_MAX]; /* that run them, unless ENGINES_BY_MAIN */
	struct host_verbs verbs;
	struct host_path path;

	struct conn *conns;
	unsigned n_conns;
	unsigned n_answered;
	unsigned n_replies_pending;
	bool drains; /* inside rx_drain() */
	struct tx tx;
	struct target target; /* of a receiver */
	struct mws mws;       /* of send-inv */
	struct exchange exchange;
	struct rate rate; /* of a sender */
	struct rxq *rxqs; /* one for the SRQ, or one per QP */
	unsigned n_rxqs;

	struct tally tally;
	struct hist hist;
	struct host_base base;
	uint64_t progress,
		progress_ns; /* messages at the last tick, and when they changed */
	uint64_t drain_ns;   /* when HOST_DRAINING or HOST_LINGERING began */
	uint64_t lingered;   /* --mode both, HOST_LINGERING: messages at the last look */
	bool stopping;       /* both: by the user */
	bool follows; /* both: a QP sends when it has received the peer's first message */
	/* the count given to host_idle_for(), and since when it has not changed */
	uint64_t idle_mark, idle_since_ns;
	struct host_restart restart;
	char reason[ERR_MAX]; /* why the run failed; empty if it did not */
};

uint64_t clock_ns(void);

/* now_ns may be a few passes older than since_ns. */
static inline uint64_t
elapsed_ns(uint64_t now_ns, uint64_t since_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* testpmd_open.c: returns 0, or -1 with a message in err and everything undone. */
int hosts_open(struct host *hosts, unsigned n, struct conf *conf, char err[ERR_MAX]);
/* testpmd_qp.c: the depth of a send queue, and all QPs of a host, to which QPNs are given in this order. Returns 0,
 * or -1 with a message in err. */
uint32_t host_sq_depth(const struct host *host);
int host_conns_create(struct host *host, char err[ERR_MAX]);
/* Closes the hosts of all cores of a port. */
void port_close(struct host *head);
/* cq_events.c: returns NULL, with errno set, on failure. */
struct ibv_comp_channel *cq_channel_open(struct ibv_context *ctx);
/* As ibv_poll_cq(), with --events. The context of the CQ is a bool: whether it had an event, and was
 * not empty since. */
int host_poll_ready(struct host *host, struct ibv_cq *cq, int n, struct ibv_wc *wc);

static inline int
host_poll_cq(struct host *host, struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return host->verbs.channel == NULL ? ibv_poll_cq(cq, n, wc)
					   : host_poll_ready(host, cq, n, wc);
}

/* testpmd_events.c: handles the pending asynchronous events. Prints those that concern the
 * user. */
void host_events(struct host *host);

/* The hosts of a port: those of its first peer, one for each core, then those of the next peer. */
static inline struct host *
host_at(struct host *head, unsigned i)
{
	return i == 0 ? head : &head->others[i - 1];
}

static inline const char *
host_peer(const struct host *host)
{
	return host->pc->peers[host->peer].addr;
}

/* The host that lends its context to this one. The QPs of an SRQ have one context. With --srq-per-core the context
 * of each core gets the limit events of its SRQ only. */
static inline struct host *
lender(struct host *host)
{
	return host->conf->srq_per_core ? host->first : host->head;
}

/* Whether it receives through the SRQ of lender(). An XRC SRQ has one CQ, and so one peer. */
static inline bool
borrows_srq(struct host *host)
{
	return lender(host) != host && !host->conf->rq && host->conf->type != TYPE_XRC;
}

static inline struct conn *
host_conn(struct host *host, uint32_t qpn)
{
	uint32_t i = (qpn - host->conns[0].qpn) >> host->two_qpns;

	return i < host->n_conns ? &host->conns[i] : NULL;
}

/* Whether the messages that this end sends, or (of_peer) receives, and the area for READs of that end, are of the
 * direction back (verify.h). */
static inline bool
host_is_back(const struct host *host, bool of_peer)
{
	return host->ops == &both_ops && host->follows != of_peer;
}

static inline bool
host_active(const struct host *host)
{
	return host->state >= HOST_WAITING && host->state <= HOST_LINGERING;
}

/* host.c */
/* One pass of the active hosts of a core of a port, the first of which is given, and what any host does
 * about every millisecond. runs: a run is active. */
unsigned hosts_pass(struct host *first);
void host_tick(struct host *host, bool runs, uint64_t now_ns);
unsigned host_poll_engines(struct host *host);
/* As the main loop does: the port, if this program receives for it, and the engines, unless others run
 * them. */
unsigned host_poll_all(struct host *host);
/* The share of conf->count messages that this QP, or all QPs of this host, send or receive in a run. */
uint64_t host_share(const struct host *host, const struct conn *conn);
uint64_t host_count(const struct host *host);
/* Copies to host->view. */
void host_publish(struct host *host);
/* Records and prints the host's first error; later ones are its consequences. host_fail()
 * also ends the host's run. */
void host_set_error(struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void host_fail(struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Records that a message has bad wrong bytes, the first at offset first. */
void host_wrong_bytes(struct host *host, const struct conn *conn, const char *what,
	uint64_t msg, const uint8_t *data, uint64_t len, uint64_t seed, size_t bad,
	size_t first);
void host_log(const struct host *host, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Compares a message, and counts it as verified. Returns false if it is wrong, and has
 * recorded it. */
static inline bool
host_verify(struct host *host, const struct conn *conn, const char *what, uint64_t msg,
	const uint8_t *data, uint64_t len, uint64_t seed)
{
	size_t first = 0, bad = verify_check(data, len, seed, &first);

	host->tally.verified_bytes += len;
	if (bad != 0)
		host_wrong_bytes(host, conn, what, msg, data, len, seed, bad, first);
	return bad == 0;
}

/* testpmd_connect.c: brings the QPs that which() selects (NULL: all) from any state to
 * RTS. Their messages are numbered from 0 again. Returns 0, or -1 after host_fail(). */
int host_connect(struct host *host, bool (*which)(const struct conn *conn));
/* As host_connect(), but only to INIT, with receives posted. */
int host_to_init(struct host *host, bool (*which)(const struct conn *conn));
/* Sets the peer's address, path MTU and source GID from the configuration, and the QPNs of the other end.
 * Returns 0, or -1 with a message in err. */
int host_set_path(struct host *host, char err[ERR_MAX]);
/* Whether there is a route to the peer. Returns 0, or -1 with a message in err. */
int host_check_route(struct host *host, char err[ERR_MAX]);

/* testpmd_cm.c: return 0, or -1 with a message in err. host_cm_connect() only sends the
 * requests to a peer, and returns its number. host_cm_tick() handles all events, with the cores of run (may be
 * NULL) held. host_cm_established(): number of connections with a peer (ALL_HOSTS: all) that are established. */
struct run;
int host_cm_listen(struct host *head, uint16_t port, char err[ERR_MAX]);
int host_cm_connect(
	struct host *head, const char *address, uint16_t port, char err[ERR_MAX]);
unsigned host_cm_established(struct host *head, int peer);
/* The first host of a peer, or (ALL_HOSTS) of the port. */
static inline struct host *
host_of_peer(struct host *head, int peer)
{
	return peer == ALL_HOSTS ? head
				 : host_at(head, (unsigned)peer * conf_cores(head->conf));
}
void host_cm_tick(struct host *head, struct run *run);
/* Notes that an option of the connections has changed. */
void host_cm_outdate(struct host *head);
/* For `start`: a listener closes outdated connections, so that its peer makes new ones; at the
 * other end they are an error, and so are lost ones. */
int host_cm_renew(struct host *head, char err[ERR_MAX]);
void host_cm_close(struct host *head);

/* control.c: changes to an open host. Return 0, or -1 with a message in err. */
int host_impair(struct host *host, char err[ERR_MAX]);
/* testpmd_dump.c: writes the port's frames to a file, whose name it makes of path. Ends a file
 * that is being written first. */
int host_dump(struct host *host, const char *path, char err[ERR_MAX]);
/* Ends the file, if there is one, and prints how many frames it has. */
void host_dump_end(struct host *host);
int host_srq_limit(struct host *host, uint32_t limit, char err[ERR_MAX]);
int host_srq_resize(struct host *host, uint32_t size, char err[ERR_MAX]);
/* Resets the counters of `show`. Returns -1 if there is no memory for those of the QPs. */
int host_clear(struct host *host);

/* restart.c: detects that the peer sends from its first PSN again, and reconnects. */
void host_watch_restart(struct host *host, uint64_t now_ns);
bool conn_has_failed(const struct conn *conn);
/* At the end of a receiver's run: fails the host if the peer does not hear it. fails: the run fails anyway. */
void host_require_heard(struct host *host, bool fails, uint64_t now_ns);

/* testpmd_stats.c: the sum over cores and peers, or those of one core or one peer, and one error. Only
 * while no core uses the hosts. */
void port_tally(struct host *head, int core, int peer, struct tally *sum);
const char *port_reason(struct host *head);
bool port_active(struct host *head);
/* A host of a peer, or (ALL_HOSTS) of any, that has failed, or NULL. */
struct host *port_failed(struct host *head, int peer);
void host_snapshot(struct host *host, int engine, struct snapshot *snapshot);
uint64_t snapshot_value(const struct snapshot *snapshot, const char *name);
/* Received frames impaired on purpose since base. */
void host_impaired_since(struct host *host, const struct rocade_impair_stats *base,
	struct rocade_impair_stats *stats);
/* The increase of the counter since `start`. */
uint64_t host_run_stat(struct host *host, const char *name);

/* progress.c: common to all modes. */
void host_set_running(struct host *host);
void host_set_done(struct host *host);
/* Returns true if the wait for the peer has timed out. The host has then failed. */
bool host_wait_over(struct host *host, uint64_t now_ns, const char *what);
/* Returns true if the path to the peer is resolved; asks for it otherwise. */
bool host_resolved(struct host *host, uint64_t now_ns);
bool host_duration_over(const struct host *host, uint64_t now_ns);
/* HOST_LINGERING: acknowledges what the peer repeats, until the peer is silent. */
void host_linger(struct host *host, uint64_t now_ns);
/* A peer that is silent for five ACK timeouts has the acknowledgements, or has gone. */
#define HOST_QUIET_NS(host) (5 * (UINT64_C(4096) << (host)->conf->timeout))
/* Periodic work of a passive host. Ends its run when it is complete. */
void host_tick_passive(struct host *host, uint64_t now_ns);
/* Returns for how long mark has not changed. Setting idle_since_ns to 0 restarts the
 * measurement. */
uint64_t host_idle_for(struct host *host, uint64_t mark, uint64_t now_ns);
/* For a sending host: fails it if there is no progress and the link is down. */
void host_watch_link(struct host *host, uint64_t now_ns);
/* Reconnects the failed QPs from their first PSN, as the peer may have started by now.
 * Returns true if there were any. */
bool host_retry(struct host *host);

#endif
