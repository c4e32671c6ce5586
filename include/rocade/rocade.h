/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rocade: RoCEv2 in user space on any DPDK port, with the standard verbs API.
 *
 * An application opens a port. The port is then a verbs device ("rocade0") in
 * ibv_get_device_list(3), used with standard verbs. The port's engines must be run: by
 * the application's own loop (rocade_engine_poll()) or by an EAL lcore
 * (rocade_engine_launch()).
 *
 * Functions that return int return 0 or a positive errno value, as verbs do, unless they
 * say otherwise; rocade_error() then describes the failure. Any thread may call any
 * function, but rocade_close_port() must be the last call on its port. Strings passed in
 * are copied. A port does not survive fork().
 *
 * A pointer that is NULL where the description does not allow it gives EINVAL, NULL, 0 or false, or
 * nothing happens, and rocade_error() names the argument. To save time in a poll loop, the pointers of
 * rocade_engine_poll(), rocade_engine_input(), rocade_engine_exceptions() and rocade_wc_mbuf() must be valid.
 *
 * Structures may get members at their end in later releases, except struct rocade_peer_window, which is
 * part of another. A program tells the library how long its structures are: by their first
 * member, size, or in a function of this header, which calls rocade_*_sized(). A function that fills a
 * structure fills what the program has, and sets to 0 what the library does not know.
 */
#ifndef ROCADE_ROCADE_H
#define ROCADE_ROCADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
/* A function may have the name of the structure that it fills: -Wshadow of g++ warns of that. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

struct rocade_port;
struct rocade_engine;
struct rte_mempool;

/* Returns a constant string, for example "0.1.0". */
const char *rocade_version(void);

/* Returns one sentence that describes why the last failed rocade_* call of this thread
 * failed, or "" if none has failed. Valid until the thread's next rocade_* call. */
const char *rocade_error(void);

/* ---- Ports ---- */

/* Congestion control (docs/protocol.md 17.2). */
enum rocade_cc {
	ROCADE_CC_SWIFT, /* by round trips, losses and CNPs */
	ROCADE_CC_OFF,
};
struct rocade_cc_conf {
	size_t size; /* sizeof(struct rocade_cc_conf): lets the structure grow */
	enum rocade_cc algorithm;
	/* Of ROCADE_CC_SWIFT, each 0: its default. */
	/* lowest delay target in microseconds, 1..1000; 0: 25. On virtual devices (--vdev of EAL)
	 * delays count only if it is not 0 */
	uint32_t target_us;
	uint32_t window; /* first window in packets, 1..65535; 0: 8 */
	/* lost packets of 1000 that are not taken for congestion, 1..1000; 0: 20 */
	uint32_t loss_permille;
};
/* Fills in cc from "off", or "swift", also with ",target=US", ",window=PACKETS" and ",loss=PERMILLE"
 * behind it. NULL: the default, "swift". EINVAL: the text is another one, or cc is NULL; *cc is
 * unchanged. */
int rocade_cc_parse_sized(const char *text, struct rocade_cc_conf *cc, size_t size);
static inline int
rocade_cc_parse(const char *text, struct rocade_cc_conf *cc)
{
	return rocade_cc_parse_sized(text, cc, sizeof(*cc));
}

struct rocade_port_conf {
	size_t size; /* sizeof(struct rocade_port_conf): lets the structure grow */
	/* name of the verbs device, at most 63 characters; NULL: the first free one of
	 * rocade0, rocade1 ... */
	const char *name;
	/* 1 to 7 IP addresses with prefix lengths, separated by commas: "192.0.2.1/24,2001:db8::1/64".
	 * The first one is GID 0. A link-local IPv6 address is added. */
	const char *addresses;
	const char *gateway4; /* default gateway for IPv4; NULL: none */
	const char *gateway6;
	/* IP MTU in bytes, 576 to 9000; 0: the port's present MTU, at most 9000, or 4184
	 * for a loop. A path MTU of 4096 needs 4184. */
	uint32_t mtu;
	uint16_t vlan;    /* 802.1Q VLAN ID, 1..4094; 0: untagged */
	uint16_t ethdev;  /* port id of rte_ethdev (rocade_open_port() only) */
	uint16_t engines; /* engines, each with a pair of RX and TX queues: 1..16; 0: 1 */
	/* Descriptors of an RX and of a TX queue. 0: 1024. An ethdev port adjusts the
	 * numbers to the limits of the PMD. A loop uses conf[0].rx_desc for both sides,
	 * up to 32768, rounded up to a power of two, and ignores tx_desc. */
	uint16_t rx_desc;
	uint16_t tx_desc;
	/* first QPN, 2..0xFFFFFE; 0: random. qpn_base + max_qp must not exceed 24 bits. */
	uint32_t qpn_base;
	uint32_t max_qp; /* QPs, up to 131072; 0: 65536 */
	/* Limit of unacknowledged packets to one peer, for all QPs of an engine together.
	 * 0: half of the receive ring. */
	uint32_t peer_window;
	bool no_cksum_offload; /* compute IPv4 header checksums in software */
	bool no_cnp;           /* send no CNPs for packets that a switch has marked */
	bool no_sack; /* no selective acknowledgements, and no host is asked for them */
	/* Congestion control. NULL: ROCADE_CC_SWIFT with its defaults. The environment variable
	 * ROCADE_CC, a text as for rocade_cc_parse(), overrides it. */
	const struct rocade_cc_conf *cc;
	/* While a context of the device is open, handle SIGSEGV and SIGBUS of engines
	 * whose registered memory was unmapped, see docs/verbs.md. On-demand regions need it. */
	bool mr_fault_handler;
	/* UDP source ports over which an RC or XRC QP spreads SENDs and WRITEs to a peer
	 * that is a Rocade, too: 1..8; 0: 1. See docs/protocol.md 20.7. */
	uint16_t paths;
	/* Set up receive interrupts of an ethdev port, for rocade_engine_arm(). Where the PMD has none, a
	 * sleeping engine looks for packets every millisecond, and every 4 ms when none came for a while. */
	bool rx_interrupts;
	/* Each QP records its last 256 events, in 4 KiB of memory: for rocade_qp_events(), and a
	 * QP that enters the error state because of a fault writes them to the log, as
	 * warnings. The environment variable ROCADE_FLIGHT_RECORDER=1 does the same. */
	bool flight_recorder;
	/* rocade_open_port(): where the port's frames come from, in both directions. Of
	 * rte_pktmbuf_pool_create(), with room for the MTU and 18 bytes behind the headroom, and
	 * for each engine as many buffers as an RX and a TX queue have descriptors, and 2048. It may
	 * serve other ports, too, and must outlive this one. NULL: a pool of Rocade. */
	struct rte_mempool *pool;
	/* 1 + the NUMA node of all memory of rocade_open_port(); 0: the node of the port. Choose the
	 * node of the lcores that run the engines. */
	uint32_t numa;
	/* Entries of the port's neighbour table, and connections of rocade/cm.h and of rocade/rdmacm.h (the
	 * most of the ports open at the first use), each a power of two, 1024 to 65536; 0: 4096. */
	uint32_t max_peers;
};

/*
 * Takes an ethdev port that is not started: configures and starts it, and adds the verbs
 * device. EAL must be initialised. *port is valid until rocade_close_port(). EINVAL: a
 * member of conf is wrong, or EAL is not initialised. EOPNOTSUPP: a secondary process of
 * DPDK. ENODEV: no such ethdev port. EBUSY: the port is started already. EEXIST: the name is
 * in use. EIO: the PMD refused. ENOMEM.
 * A failure can leave the ethdev port closed, as after rte_eth_dev_close().
 */
int rocade_open_port(const struct rocade_port_conf *conf, struct rocade_port **port);

/* Creates two devices connected by a link in memory, which carries complete frames within
 * this process; needs neither EAL nor root. EINVAL: a member of conf is wrong, or the two
 * differ in size or engines. EEXIST: a name is in use. ENOMEM. */
int rocade_open_loop(const struct rocade_port_conf conf[2], struct rocade_port *ports[2]);

/* Closes the port (an ethdev port is stopped and closed), removes the verbs device, and
 * frees port. EBUSY: a context of the device is open, or an engine is launched. With
 * librocade-rdmacm in the process, only contexts with objects give EBUSY: then no other thread
 * may be in a verbs call on the device, except ibv_open_device() and ibv_close_device(). */
int rocade_close_port(struct rocade_port *port);

/* Returns the device, which is valid until the port is closed. */
struct ibv_device *rocade_port_device(struct rocade_port *port);

/* Tells whether packets to this GID can be sent. 0: the MAC address of the next hop is
 * known. EAGAIN: it is being resolved, by ARP or ND; try again while engines run.
 * EHOSTUNREACH: the next hop does not answer. ENETUNREACH: no route. EINVAL: not a
 * unicast address. ENOSPC: the neighbour table is full. */
int rocade_port_resolve(struct rocade_port *port, const union ibv_gid *gid);

/* Replaces addresses and gateways of a running port; NULL keeps the present ones, ""
 * removes a gateway. If the GID table changes, contexts get IBV_EVENT_GID_CHANGE. EINVAL:
 * an address is not valid. */
int rocade_port_set_addresses(struct rocade_port *port, const char *addresses,
	const char *gateway4, const char *gateway6);

/* Returns whether the link is up, as ibv_query_port(3) reports it. */
bool rocade_port_link_up(struct rocade_port *port);

/* Sets the link state. Packets sent while the link is down are lost. Contexts get
 * IBV_EVENT_PORT_ERR and IBV_EVENT_PORT_ACTIVE. EOPNOTSUPP: the port cannot set it; or an
 * errno value of the PMD. */
int rocade_port_set_link(struct rocade_port *port, bool up);

/* Convert between text and GID; an IPv4 address is a.b.c.d. EINVAL: text is not an
 * address. The text takes up to 46 bytes with its NUL; rocade_gid_format() returns
 * buf. */
int rocade_gid_parse(const char *text, union ibv_gid *gid);
const char *rocade_gid_format(const union ibv_gid *gid, char *buf, size_t size);

/* ---- Engines ---- */

unsigned rocade_port_engine_count(struct rocade_port *port);
/* Returns an engine, which is valid until the port is closed; NULL: no such index. */
struct rocade_engine *rocade_port_engine(struct rocade_port *port, unsigned index);

/*
 * Runs one pass of the engine's poll loop, for an application with a loop of its own.
 * Returns the number of packets received and sent, 0 when idle. Any thread may call it,
 * also while an lcore runs the engine; it waits at most for another thread's pass.
 */
unsigned rocade_engine_poll(struct rocade_engine *engine);

/*
 * Sleeping, for an application that runs the engine in its own loop:
 *
 *   rocade_engine_fd(engine, &fd);                    once; add fd to your epoll set
 *   ...
 *   while (rocade_engine_poll(engine) != 0) ...       nothing to do?
 *   if (rocade_engine_arm(engine) == 0) {
 *           if (ibv_poll_cq(...) found nothing)
 *                   epoll_wait(...);
 *           rocade_engine_disarm(engine);
 *   }
 *
 * The descriptor is readable when a packet may have arrived, when a timer of the engine is due,
 * and after another thread has posted to one of its QPs or called a function that gives it work.
 * Completions are not announced: look for them between arm and wait. No thread may poll the engine
 * between rocade_engine_arm() and rocade_engine_disarm().
 */

/* Creates the descriptor, which is valid until the port is closed, and only to be waited for.
 * EBUSY: the engine is launched. EOPNOTSUPP: the engine runs without rocade_engine_poll(), or the
 * kernel lacks membarrier(2). EMFILE, ENFILE, ENOMEM. */
int rocade_engine_fd(struct rocade_engine *engine, int *fd);
/* Turns the descriptor on. EAGAIN: the engine had work; it did some, and the descriptor is off.
 * EINVAL: there is no descriptor. EBUSY: the engine is launched. */
int rocade_engine_arm(struct rocade_engine *engine);
/* Turns the descriptor off. */
void rocade_engine_disarm(struct rocade_engine *engine);

/*
 * Lets an EAL worker lcore run this engine until rocade_engine_stop(). An lcore can run
 * up to 64 engines, one after another. EINVAL: no such lcore, it is the main lcore, or
 * EAL is not initialised. EBUSY: the lcore runs something else or 64 engines, or the
 * engine is launched already.
 */
int rocade_engine_launch(struct rocade_engine *engine, unsigned lcore);
/* Returns when the lcore no longer runs the engine. EINVAL: it is not launched. */
int rocade_engine_stop(struct rocade_engine *engine);

/* Chooses the engine of the QPs that this context creates from now on. -1 (the default):
 * round robin over the engines. Then, when a connected QP becomes RTR, it moves to the engine
 * whose receive queue gets its packets, if the port tells how it spreads them (RSS);
 * rocade_qp_info() says which one that is. A chosen engine stays. EINVAL: not a context of a
 * Rocade device, or no such engine. */
int rocade_context_set_engine(struct ibv_context *context, int engine);

/* ---- Statistics and state: not for the data path ---- */

struct rocade_stat {
	const char *name; /* constant, for example "drop_icrc" */
	const char *text; /* what it counts */
	uint64_t value;
};

/* Fills up to n rows with the counters of an engine (an index, or -1 for the sum of all).
 * Returns how many counters there are. rows may be NULL. An index without an engine gives zeros. */
unsigned rocade_port_stats_sized(struct rocade_port *port, int engine,
	struct rocade_stat *rows, unsigned n, size_t row_size);
static inline unsigned
rocade_port_stats(
	struct rocade_port *port, int engine, struct rocade_stat *rows, unsigned n)
{
	return rocade_port_stats_sized(port, engine, rows, n, sizeof(*rows));
}
/* As rocade_port_stats(), with the counters of a QP; 0 if qp is not of a Rocade device. */
unsigned rocade_qp_stats_sized(
	struct ibv_qp *qp, struct rocade_stat *rows, unsigned n, size_t row_size);
static inline unsigned
rocade_qp_stats(struct ibv_qp *qp, struct rocade_stat *rows, unsigned n)
{
	return rocade_qp_stats_sized(qp, rows, n, sizeof(*rows));
}

/* The functions that fill the following structures return EINVAL if the object is not of
 * a Rocade device, or a pointer is NULL. */
struct rocade_qp_info {
	unsigned engine;
	uint32_t dest_qpn;
	uint32_t sq_max_wr;
	/* slots in use: posted, and not yet freed by polling a CQE */
	uint32_t sq_outstanding;
	/* how many of these are signaled. If the SQ is full and this is 0, no completion
	 * will free a slot: the queue stays full until RESET (ibv_post_send(3)). */
	uint32_t sq_signaled;
	uint32_t sq_full_unsignaled; /* posts refused in that state */
	uint32_t sq_unacked;         /* packets sent and not yet acknowledged */
	uint32_t rq_max_wr;          /* 0 with an SRQ */
	uint32_t rq_outstanding;
	uint32_t sq_psn; /* next PSN to send */
	uint32_t rq_psn; /* next PSN expected */
	uint32_t msn;
	/*
	 * Ages in nanoseconds; 0: there is no such request. A post reads no clock, and no request
	 * has a timestamp: a request counts from the first time at which the library knows that it
	 * was there, so the true age is never less. A look is a call of rocade_qp_info(), or a
	 * report to rocade-status.
	 *
	 * Of the oldest request that is not acknowledged. At least the time since the peer last
	 * acknowledged a packet, or since one was sent while none was unacknowledged, to a
	 * millisecond; RNR NAKs and timeouts do not start it anew. A request that cannot be sent
	 * yet counts from the first look at it, and so does one of a QP with timeout 0.
	 */
	uint64_t sq_unacked_ns;
	/*
	 * Of the oldest unsignaled request that holds its slot, acknowledged or not: its buffer is
	 * the library's until the completion of a later request is polled. RC, XRC: counts from the
	 * first expiry of the QP's timer after the post, at most an ACK timeout later (timeout of
	 * ibv_modify_qp(3)). UC, UD, and RC with timeout 0: from the first look at it. When the
	 * program polls a completion long after it was written, the requests behind it may count
	 * from later ones. 0 also if the oldest 4096 that hold slots are all signaled.
	 */
	uint64_t sq_unsignaled_ns;
};
int rocade_qp_info_sized(struct ibv_qp *qp, struct rocade_qp_info *info, size_t size);
static inline int
rocade_qp_info(struct ibv_qp *qp, struct rocade_qp_info *info)
{
	return rocade_qp_info_sized(qp, info, sizeof(*info));
}

/* Calls line() for a heading and for each of the QP's last events, at most 256, oldest first:
 * "+12 us: peer answered RNR for PSN 17, wait 0.64 ms, try 3 of 7". The time is that since the
 * event before. The wording may change. EINVAL: not a QP of Rocade. ENOTSUP: the port was opened
 * without flight_recorder. Any thread. */
int rocade_qp_events(
	struct ibv_qp *qp, void (*line)(const char *text, void *arg), void *arg);

struct rocade_srq_info {
	uint32_t max_wr, max_sge;
	uint32_t outstanding;  /* posted and not yet used */
	uint32_t limit;        /* the armed limit (srq_limit), or 0 */
	uint64_t limit_events; /* IBV_EVENT_SRQ_LIMIT_REACHED raised so far */
	bool error;
};
int rocade_srq_info_sized(struct ibv_srq *srq, struct rocade_srq_info *info, size_t size);
static inline int
rocade_srq_info(struct ibv_srq *srq, struct rocade_srq_info *info)
{
	return rocade_srq_info_sized(srq, info, sizeof(*info));
}

/* The resource_type that the allocators of a parent domain are called with
 * (ibv_alloc_parent_domain(3)): what the memory is for. */
enum rocade_resource {
	ROCADE_RESOURCE_QP = 1,
	ROCADE_RESOURCE_SRQ = 2,
	ROCADE_RESOURCE_CQ = 3,
};

struct rocade_cq_info {
	uint32_t size;
	uint32_t outstanding; /* written and not yet polled */
	bool error;
};
int rocade_cq_info_sized(struct ibv_cq *cq, struct rocade_cq_info *info, size_t size);
static inline int
rocade_cq_info(struct ibv_cq *cq, struct rocade_cq_info *info)
{
	return rocade_cq_info_sized(cq, info, sizeof(*info));
}

struct rocade_neigh {
	union ibv_gid gid;
	uint8_t mac[6];
	/* constant: "incomplete", "reachable", "stale" (not used lately), "probe" (being
	 * confirmed) or "failed" */
	const char *state;
	/* time since the neighbour last answered, in nanoseconds; UINT64_MAX: never */
	uint64_t age_ns;
};
/* Fills up to n rows with the port's neighbours. Returns how many there are. rows may be NULL. */
unsigned rocade_port_neighs_sized(
	struct rocade_port *port, struct rocade_neigh *rows, unsigned n, size_t row_size);
static inline unsigned
rocade_port_neighs(struct rocade_port *port, struct rocade_neigh *rows, unsigned n)
{
	return rocade_port_neighs_sized(port, rows, n, sizeof(*rows));
}

/* How many packets may be in flight to or from a peer at once (docs/protocol.md 7.2, 17.2). */
struct rocade_peer_window {
	uint32_t qps_blocked; /* QPs that wait for the window */
	uint32_t inflight;    /* packets on the way */
	uint32_t window; /* their limit; 0: closed until the time of the next packet */
	/* Congestion control, if it is on. cc_paced: its window is below one packet, and each
	 * packet has its time. */
	bool cc_paced;
	double cc_window;      /* packets, also parts of one */
	uint32_t cc_delay_ns;  /* of the last round trip; UINT32_MAX: none measured yet */
	uint32_t cc_target_ns; /* the delay that it aims at; 0: delays do not count */
};

/* A remote address to which an engine has connected RC and XRC QPs. They share its
 * windows. */
struct rocade_peer {
	union ibv_gid gid;
	unsigned engine;
	uint32_t qps;
	uint32_t cap;     /* the most that a window can be */
	uint32_t srtt_ns; /* smoothed round trip; 0: none measured yet */
	bool cc;          /* congestion control is on */
	/* send: packets of SENDs and WRITEs, to the peer. read: packets of the responses of
	 * READs and atomics, from the peer. */
	struct rocade_peer_window send, read;
};
/* Fills up to n rows with the peers of all engines. Returns how many there are. rows may be NULL. */
unsigned rocade_port_peers_sized(
	struct rocade_port *port, struct rocade_peer *rows, unsigned n, size_t row_size);
static inline unsigned
rocade_port_peers(struct rocade_port *port, struct rocade_peer *rows, unsigned n)
{
	return rocade_port_peers_sized(port, rows, n, sizeof(*rows));
}

/* ---- Impairment: loss and other faults on purpose, for tests ---- */

struct rocade_impair {
	uint32_t loss_ppm; /* frames per million, 0..1000000, as the next three */
	uint32_t duplicate_ppm;
	/* held back until 1 to 8 later frames have passed, the queue was idle for 16 polls, or, of
	 * sent ones, until a QP of the queue ends */
	uint32_t reorder_ppm;
	uint32_t corrupt_ppm; /* one bit flipped, behind the Ethernet header */
	/* The same seed has the same effect on the same sequence of frames of a queue. */
	uint64_t seed;
};
/* Impair the frames received (rocade_port_impair()) or sent (rocade_port_impair_tx()) on
 * every queue of the port from now on. All rates 0: off. EINVAL: a rate exceeds 1000000. ENOMEM. */
int rocade_port_impair_sized(
	struct rocade_port *port, const struct rocade_impair *impair, size_t size);
int rocade_port_impair_tx_sized(
	struct rocade_port *port, const struct rocade_impair *impair, size_t size);
static inline int
rocade_port_impair(struct rocade_port *port, const struct rocade_impair *impair)
{
	return rocade_port_impair_sized(port, impair, sizeof(*impair));
}
static inline int
rocade_port_impair_tx(struct rocade_port *port, const struct rocade_impair *impair)
{
	return rocade_port_impair_tx_sized(port, impair, sizeof(*impair));
}

struct rocade_impair_stats {
	uint64_t lost, duplicated;
	uint64_t reordered; /* overtaken by a later frame */
	uint64_t corrupted;
};
/* The effects on all queues since the port was opened, of frames received and of frames
 * sent. Return 0, or EINVAL for a pointer that is NULL. */
int rocade_port_impair_stats_sized(
	struct rocade_port *port, struct rocade_impair_stats *stats, size_t size);
int rocade_port_impair_tx_stats_sized(
	struct rocade_port *port, struct rocade_impair_stats *stats, size_t size);
static inline int
rocade_port_impair_stats(struct rocade_port *port, struct rocade_impair_stats *stats)
{
	return rocade_port_impair_stats_sized(port, stats, sizeof(*stats));
}
static inline int
rocade_port_impair_tx_stats(struct rocade_port *port, struct rocade_impair_stats *stats)
{
	return rocade_port_impair_tx_stats_sized(port, stats, sizeof(*stats));
}

/* ---- Frames of a port, for Wireshark ---- */

struct rocade_port_dump_conf {
	size_t size;      /* sizeof(struct rocade_port_dump_conf) */
	const char *file; /* pcapng; created, or emptied */
	uint32_t qpn;  /* only packets from and to this QP of the port; 0: all frames */
	uint32_t snap; /* bytes of a frame that are kept at most; 0: all */
	uint32_t
		room_kib; /* for copies that wait to be written, of each engine; 0: 4096 */
	bool no_in, no_out; /* without frames that are received, or sent */
};
/* Writes the frames that the port receives and sends from now on to a file, by a thread of its
 * own. Engines do not wait for it: frames that come too fast are lost for the file, and counted
 * there. EBUSY: the port's frames are being written. EINVAL: a member is wrong. ENOMEM; errors of open(2). */
int rocade_port_dump(struct rocade_port *port, const struct rocade_port_dump_conf *conf);

struct rocade_port_dump_stats {
	uint64_t written, lost; /* frames */
};
/* Writes what waits, and closes the file. stats: may be NULL. rocade_close_port() does the same.
 * ENOENT: no frames are being written. EIO: the file lacks frames, because it could not be
 * written; *stats is valid. */
int rocade_port_dump_stop_sized(
	struct rocade_port *port, struct rocade_port_dump_stats *stats, size_t size);
static inline int
rocade_port_dump_stop(struct rocade_port *port, struct rocade_port_dump_stats *stats)
{
	return rocade_port_dump_stop_sized(port, stats, sizeof(*stats));
}

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
