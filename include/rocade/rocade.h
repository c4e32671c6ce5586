/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rocade: RoCEv2 in user space on any DPDK port, behind the standard verbs API.
 *
 * A program opens a port, which then is a verbs device ("rocade0") in ibv_get_device_list(3),
 * and uses standard verbs on it. Somebody has to run its engines: the program's own loop
 * (rocade_engine_poll()) or an EAL lcore (rocade_engine_launch()).
 *
 * Functions return 0 or a positive errno value unless they say otherwise (as verbs do);
 * rocade_error() has a sentence about the last failure in this thread.
 */
#ifndef ROCADE_ROCADE_H
#define ROCADE_ROCADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rocade_port;
struct rocade_engine;

/* "0.1.0". */
const char *rocade_version(void);

/* One sentence on why the last rocade_* call of this thread failed; "" before any did. Valid
 * until the thread's next rocade_* call. */
const char *rocade_error(void);

/* ---- Ports ---- */

struct rocade_port_conf {
	size_t size;		/* sizeof(struct rocade_port_conf): lets the structure grow */
	const char *name;	/* of the verbs device, NULL: rocade0, rocade1 ... */
	const char *addresses;	/* "192.0.2.1/24,2001:db8::1/64"; at least one. A link-local
				 * IPv6 address is added */
	const char *gateway4;	/* default gateways, NULL: none */
	const char *gateway6;
	uint32_t mtu;		/* IP MTU in bytes; 0: the port's. Path MTU 4096 needs 4180 */
	uint16_t vlan;		/* 802.1Q id, 0: untagged */
	uint16_t ethdev;	/* rte_ethdev port id (rocade_open_port only) */
	uint16_t engines;	/* RX/TX queue pairs, an engine each: 1..16; 0: 1 */
	uint16_t rx_desc;	/* ring sizes; 0: 1024. For a loop: rx_desc of the first */
	uint16_t tx_desc;
	uint32_t qpn_base;	/* the first QPN: 2..0xFFFFFE; 0: random */
	uint32_t max_qp;	/* 0: 65536; at most 131072 */
	uint32_t peer_window;	/* unacknowledged packets towards one peer, all QPs of an engine
				 * together; 0: half of the receive ring */
	bool no_cksum_offload;	/* compute IPv4 header checksums in software */
};

/*
 * Takes over an ethdev port: configures and starts it, and adds the verbs device. EAL must be
 * initialised; the calling thread owns *port until rocade_close_port(). EINVAL: a member of
 * conf is wrong; ENODEV: no such ethdev port; EBUSY: it is started already; ENOMEM; EEXIST: the
 * name is taken; EIO: the PMD refused.
 */
int rocade_open_port(const struct rocade_port_conf *conf, struct rocade_port **port);

/* Two devices joined in this process by a wire of memory: complete frames, no EAL, no root.
 * conf[0] and conf[1] have the same number of engines (else EINVAL). */
int rocade_open_loop(const struct rocade_port_conf conf[2], struct rocade_port *ports[2]);

/* EBUSY while a context of the device is open or an engine of it is launched. The ethdev port
 * is stopped and closed. */
int rocade_close_port(struct rocade_port *port);

/* The device; stays valid until the port is closed. */
struct ibv_device *rocade_port_device(struct rocade_port *port);

/* Whether packets for this GID could leave: 0: its next hop is known; EAGAIN: it is being asked
 * for, try again; EHOSTUNREACH: nobody answers; ENETUNREACH: no route. EINVAL: not an address of
 * a host. */
int rocade_port_resolve(struct rocade_port *port, const union ibv_gid *gid);

/* Replaces addresses and gateways while running (NULL: keep). */
int rocade_port_set_addresses(struct rocade_port *port, const char *addresses,
	const char *gateway4, const char *gateway6);

bool rocade_port_link_up(struct rocade_port *port);

/* Takes the link down, or up again, where the port can: EOPNOTSUPP, or what the PMD says. What
 * is sent meanwhile is lost. Contexts get IBV_EVENT_PORT_ERR and _ACTIVE. */
int rocade_port_set_link(struct rocade_port *port, bool up);

/* Text <-> GID; IPv4 as a.b.c.d. EINVAL. buf: 46 bytes suffice. */
int rocade_gid_parse(const char *text, union ibv_gid *gid);
const char *rocade_gid_format(const union ibv_gid *gid, char *buf, size_t size);

/* ---- Engines ---- */

unsigned rocade_port_engine_count(struct rocade_port *port);
struct rocade_engine *rocade_port_engine(struct rocade_port *port, unsigned index); /* or NULL */

/*
 * One turn of the engine's loop, for a program that has a loop of its own: returns the number of
 * packets moved, 0 when idle. Never blocks for longer than another thread's turn. Any thread may
 * call it, also while an lcore runs the engine. The acknowledgement of a message may leave in
 * the turn after it, where messages have been answered before that (docs/embedding.md).
 */
unsigned rocade_engine_poll(struct rocade_engine *engine);

/*
 * Lets an EAL worker lcore run this engine until rocade_engine_stop(). Several engines may be
 * given to one lcore: they take turns. EINVAL: no such lcore, or it is the main one; EBUSY: the
 * lcore runs something else, or the engine is launched already.
 */
int rocade_engine_launch(struct rocade_engine *engine, unsigned lcore);
int rocade_engine_stop(struct rocade_engine *engine); /* EINVAL: not launched */

/* QPs that this context creates from now on live on this engine; -1 (the start): in turn. */
int rocade_context_set_engine(struct ibv_context *context, int engine);

/* ---- Looking inside: control path, any thread ---- */

struct rocade_stat {
	const char *name; /* constant, for example "drop_icrc" */
	const char *text; /* what it counts */
	uint64_t value;
};

/* Fills up to n rows, returns how many there are. engine: index, or -1 for their sum. */
unsigned rocade_port_stats(struct rocade_port *port, int engine, struct rocade_stat *rows,
	unsigned n);
unsigned rocade_qp_stats(struct ibv_qp *qp, struct rocade_stat *rows, unsigned n);

struct rocade_qp_info {
	unsigned engine;
	uint32_t dest_qpn;
	uint32_t sq_max_wr;
	uint32_t sq_outstanding; /* slots not free: posted and not given back by a polled CQE */
	uint32_t sq_signaled;	 /* of those, how many are signaled. 0 with a full SQ: the queue
				  * cannot recover before RESET (ibv_post_send(3)) */
	uint32_t sq_full_unsignaled; /* posts refused in that situation */
	uint32_t sq_unacked;	 /* packets sent and not acknowledged */
	uint32_t rq_max_wr;	 /* 0 with an SRQ */
	uint32_t rq_outstanding;
	uint32_t sq_psn;	 /* next to send */
	uint32_t rq_psn;	 /* next expected */
	uint32_t msn;
};
int rocade_qp_info(struct ibv_qp *qp, struct rocade_qp_info *info);

struct rocade_srq_info {
	uint32_t max_wr, max_sge;
	uint32_t outstanding; /* posted and not taken */
	uint32_t limit;	      /* armed, or 0 */
	uint64_t limit_events; /* raised so far */
	bool error;
};
int rocade_srq_info(struct ibv_srq *srq, struct rocade_srq_info *info);

struct rocade_cq_info {
	uint32_t size;
	uint32_t outstanding; /* written and not polled */
	bool error;
};
int rocade_cq_info(struct ibv_cq *cq, struct rocade_cq_info *info);

struct rocade_neigh {
	union ibv_gid gid;
	uint8_t mac[6];
	const char *state; /* constant: incomplete, reachable, failed */
	uint64_t age_ns;   /* since it last answered */
};
/* Fills up to n rows, returns how many there are. */
unsigned rocade_port_neighs(struct rocade_port *port, struct rocade_neigh *rows, unsigned n);

/* ---- Trouble on purpose ---- */

struct rocade_impair {
	uint32_t loss_ppm; /* of a million frames, each 0..1,000,000 */
	uint32_t duplicate_ppm;
	uint32_t reorder_ppm;
	uint32_t corrupt_ppm;
	uint64_t seed; /* the same seed does the same to the same frames */
};
/* On every queue of the port, from now on; all zero: off. EINVAL: above a million. The one is
 * about frames that are received, the other about those that are sent. */
int rocade_port_impair(struct rocade_port *port, const struct rocade_impair *impair);
int rocade_port_impair_tx(struct rocade_port *port, const struct rocade_impair *impair);

struct rocade_impair_stats {
	uint64_t lost, duplicated, reordered, corrupted;
};
int rocade_port_impair_stats(struct rocade_port *port, struct rocade_impair_stats *stats);
int rocade_port_impair_tx_stats(
	struct rocade_port *port, struct rocade_impair_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
