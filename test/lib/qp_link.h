/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two connected QPs without engine, clock or thread, for scripts of operations, time
 * advances and expectations. Every frame is built, parsed and ICRC-checked, in a buffer
 * of exactly its length. Frames that a host sends are queued on its wire until the script
 * delivers or drops them. For tests of lib/qp. engine_link.h has two devices with their
 * engines, verbs_pair.h two devices opened through the public API.
 */
#ifndef ROCADE_TEST_QP_LINK_H
#define ROCADE_TEST_QP_LINK_H

#include <stdint.h>

#include "case.h"
#include "post.h"
#include "qp/qp.h"
#include "qp/req_time.h"
#include "wire/psn.h"

#define WIRE_MAX 1024 /* most frames queued in one direction */
#define PSN_A 0x1000  /* first PSN from a to b, unless the configuration says otherwise */
#define PSN_B 0x2000
#define QPN_A 0x11
#define QPN_B 0x22
#define PD_A 7 /* of the QP; the PD number has no meaning on the other host */
#define PD_B 9
#define QKEY 0x1234567 /* UD */
#define XRCD 5
#define PD_SRQ 10 /* of an SRQ with conf.srq_pd */

struct qp_link_conf {
	/* of both; 0: RC. XRC_SEND: b is the target, with an SRQ */
	enum ibv_qp_type type;
	bool ipv6;
	bool srq;     /* b receives from an SRQ */
	bool srq_pd;  /* the SRQ's PD differs from that of b's QP */
	bool sig_all; /* for a's QP */
	bool unconnected;
	enum ibv_mtu mtu;
	uint32_t psn[2]; /* first PSN of a, of b */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint32_t send_wr, recv_wr, sge, cqe;
	uint32_t peer_window;
	bool cc;            /* with congestion control */
	uint32_t mem_bytes; /* registered on each host */
	unsigned access;    /* of the QPs; also the remote access of the memory */
	uint8_t max_rd, max_dest_rd;
};

struct frame {
	uint8_t *data;
	uint32_t len;
};

struct host {
	struct qp qp;
	struct host *other;
	struct qp_link *link;
	struct qp_shared shared;
	struct qp_claim claim;
	struct req_times times; /* of the QP's requests */
	uint64_t port_full_ns;  /* for how long the port has taken nothing */
	struct port_stats stats;
	struct key_table keys;
	struct cq send_cq, recv_cq;
	struct srq srq;
	struct srq_table srqs; /* XRC: srq is in it */
	struct peer peer;
	struct event_queue events;
	uint16_t vlan;
	unsigned rx_number; /* packets received that are not short */
	uint8_t gid[1][16]; /* UD: the addresses that packets may have */
	uint8_t *mem;       /* registered with its own address as VA */
	uint32_t lkey;
	uint32_t recv_key; /* of the same memory, in the PD of the receives */
	uint32_t rkey;     /* of the same memory, for the other host */
	/* sent by this host, not delivered or dropped yet; the oldest first */
	struct frame wire[WIRE_MAX];
	unsigned wire_count;
};

struct qp_link {
	struct qp_link_conf conf;
	struct host a, b;
	uint64_t now;
	struct alloc mem;
	size_t mem_used; /* allocated bytes of rings */
};

/* MTU 1024, timeout 14, 7 retries each, RNR timer 12, 64 requests, 4 SGEs. */
struct qp_link_conf qp_link_defaults(void);

/* As qp_link_defaults(), and all remote access and 4 READs and atomics at once. */
struct qp_link_conf qp_link_defaults_rdma(void);

void qp_link_init(struct qp_link *p, const struct qp_link_conf *conf);
void qp_link_init_default(struct qp_link *p);
/* Checks that nothing is left: frames, completions, events, keys, ring memory, packets
 * counted against the peer window. */
void qp_link_fini(struct qp_link *p);
/* As qp_link_fini(), after both QPs went to RESET, which discards pending requests and
 * responses. qp_link_fini_discard() also discards queued frames and b's receive
 * completions first. */
void qp_link_fini_reset(struct qp_link *p);
void qp_link_fini_discard(struct qp_link *p);
/* RESET -> INIT -> RTR -> RTS of both. */
void qp_link_connect(struct qp_link *p);
void host_connect(struct host *h);
/* As host_connect(), with the test's attributes and path. */
void host_modify_to_rts(struct host *h, struct qp_attr *attr, struct path_addr *addr);
/* The attributes that host_connect() uses. */
struct qp_attr host_attr(const struct host *h);
#define MASK_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define MASK_RTR                                                                         \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |  \
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define MASK_RTS                                                                         \
	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |              \
		IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
/* Removes from one of these masks the attributes that the QP type of h does not have. */
int host_mask(const struct host *h, int mask);
/* Modifies only the state. */
int host_modify(struct host *h, enum ibv_qp_state state);

/* ---- Work ---- */

/* Posts as lib/verbs does. Returns 0 or -ENOMEM. */
int host_post_send(struct host *h, const struct send_req *req);
/* Posts a SEND with one SGE, mem[offset, offset + len). */
void host_send(
	struct host *h, uint64_t wr_id, uint32_t offset, uint32_t len, unsigned flags);
/* Posts to the SRQ if there is one. Returns 0 or -ENOMEM. */
int host_post_recv(
	struct host *h, uint64_t wr_id, const struct sge *sge, unsigned num_sge);
void host_recv(struct host *h, uint64_t wr_id, uint32_t offset, uint32_t len);
struct sge host_sge(const struct host *h, uint32_t offset, uint32_t len);

#define ACCESS_REMOTE                                                                    \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Allocates one more key for mem[offset, offset + len), in the QP's PD. The test frees
 * it. */
uint32_t host_key(struct host *h, uint32_t offset, uint32_t len, unsigned access);
/* A request for the peer's mem[remote, remote + len) with the local mem[offset, ...). */
struct send_req host_rdma(struct host *h, struct sge *sge, uint64_t wr_id,
	enum ibv_wr_opcode opcode, uint32_t offset, uint32_t remote, uint32_t len);
/* Post a signaled request. */
void host_write(
	struct host *h, uint64_t wr_id, uint32_t offset, uint32_t remote, uint32_t len);
void host_read(
	struct host *h, uint64_t wr_id, uint32_t offset, uint32_t remote, uint32_t len);
/* FETCH_ADD ignores compare. */
void host_atomic(struct host *h, uint64_t wr_id, enum ibv_wr_opcode opcode,
	uint32_t offset, uint32_t remote, uint64_t operand, uint64_t compare);

/* Allocates a memory window in the PD of h's QP. The test frees it with
 * mw_destroy(). */
struct mw *host_mw(struct host *h, bool type2);
/* Post a bind to mem[offset, offset + len) of the region, and a local invalidate. */
void host_bind(struct host *h, uint64_t wr_id, unsigned flags, uint32_t rkey,
	uint32_t region, uint32_t offset, uint32_t len, unsigned access);
void host_local_inv(struct host *h, uint64_t wr_id, unsigned flags, uint32_t rkey);

/* UD: the address of the other host's QP, with its Q_Key. */
struct ud_dest host_dest(const struct host *h);

/* True if conf.type makes host a an XRC initiator and host b an XRC target. */
bool qp_link_is_xrc(const struct qp_link *p);
/* True if h receives from an SRQ. */
bool host_has_srq(const struct host *h);

/* Takes the oldest completion and frees SQ slots as lib/verbs does. */
bool host_poll(struct host *h, struct cq *cq, struct cqe *out);

/* ---- Wire ---- */

/* Lets the QP send up to n packets, which are queued on its wire. Returns their
 * number. */
unsigned host_pull(struct host *h, unsigned n);
#define PULL_ALL UINT32_MAX
void wire_deliver(struct host *from, unsigned index);
void wire_deliver_all(struct host *from);
void wire_drop(struct host *from, unsigned index);
void wire_drop_all(struct host *from);
void wire_dup(struct host *from, unsigned index);
/* Moves the frame at `index` to position `to`. */
void wire_move(struct host *from, unsigned index, unsigned to);
/* Flips one bit of the BTH or of what follows it, which the ICRC check detects. */
void wire_corrupt(struct host *from, unsigned index, uint32_t where);
/* The view is valid while the frame is on the wire. */
struct pkt_view wire_view(const struct host *from, unsigned index);
/* Parses the frame and passes it to the QP, as an engine does. */
void host_rx(struct host *h, const uint8_t *data, uint32_t len);
/* Lets both sides send and delivers everything until nothing is left. */
void qp_link_drain(struct qp_link *p);
/* Advances time; each deadline on the way expires at its exact time. */
void qp_link_advance(struct qp_link *p, uint64_t ns);

/* Fields of a packet that the test builds. */
struct pkt_spec {
	uint8_t opcode;
	uint32_t srqn;    /* XRCETH; 0: that of the host's SRQ */
	uint8_t syndrome; /* of an AETH */
	bool ack_req;
	bool solicited;
	uint32_t psn;
	uint32_t msn;
	uint32_t imm; /* as on the wire; IETH and FETH too */
	uint32_t payload_len;
	uint32_t payload_key; /* of bytes_fill() */
	uint64_t va;          /* RETH or AtomicETH */
	uint32_t rkey;
	uint32_t dma_len;
	uint64_t swap_add, compare;
	uint64_t value;         /* AtomicAckETH */
	uint32_t qkey, src_qpn; /* DETH */
	struct seth seth;
	uint16_t pkey; /* 0: the default one */
	bool pkey_zero;
	uint32_t dest_qpn;     /* 0: that of the QP */
	uint8_t src_ip_change; /* added to the last byte of the addresses */
	uint8_t dst_ip_change;
	uint8_t tclass;
	bool other_version; /* uses the IP version that the path does not have */
};

/* Builds the frame; the caller frees its data. */
struct frame pkt_spec_build(const struct host *to, const struct pkt_spec *c);
/* Builds the frame and lets the host receive it. */
void inject(struct host *to, const struct pkt_spec *c);
/* Short forms for requests and acknowledgements to the host. */
void inject_request(struct host *to, uint8_t opcode, uint32_t psn, uint32_t payload_len);
void inject_ack(struct host *to, uint8_t syndrome, uint32_t psn);

/* ---- Expectations ---- */

void expect_frame_at(struct host *from, unsigned index, uint8_t opcode, uint32_t psn,
	int ack_req, const char *file, int line);
void expect_ack_at(struct host *from, unsigned index, uint8_t syndrome, uint32_t psn,
	uint32_t msn, const char *file, int line);
/* A READ response of len bytes, or an atomic response with a value. */
void expect_response_at(struct host *from, unsigned index, uint8_t opcode, uint32_t psn,
	uint32_t msn, uint64_t len_or_value, const char *file, int line);
void expect_cqe_at(struct host *h, struct cq *cq, uint64_t wr_id,
	enum ibv_wc_status status, uint32_t vendor_or_len, const char *file, int line);
void expect_idle_at(struct host *h, const char *file, int line);
void expect_event_at(
	struct host *h, enum ibv_event_type type, const char *file, int line);

/* `index` is the position of the frame on the wire of `from`; 0 is the oldest. ack_req:
 * 0, 1, or -1 for either. */
#define expect_frame(from, index, opcode, psn, ack_req)                                  \
	expect_frame_at(from, index, opcode, psn, ack_req, __FILE__, __LINE__)
#define expect_ack(from, index, syndrome, psn, msn)                                      \
	expect_ack_at(from, index, syndrome, psn, msn, __FILE__, __LINE__)
/* All that the host sends is this acknowledgement, which is lost. */
#define expect_one_ack(from, syndrome, psn, msn)                                         \
	do {                                                                             \
		assert_int_equal(host_pull(from, PULL_ALL), 1);                          \
		expect_ack(from, 0, syndrome, psn, msn);                                 \
		wire_drop(from, 0);                                                      \
	} while (0)
#define expect_no_frame(from) assert_int_equal(host_pull(from, PULL_ALL), 0)
#define expect_response(from, index, opcode, psn, msn, len_or_value)                     \
	expect_response_at(                                                              \
		from, index, opcode, psn, msn, len_or_value, __FILE__, __LINE__)
#define ANY UINT32_MAX
#define expect_sent(h, wr_id, status)                                                    \
	expect_cqe_at(h, &(h)->send_cq, wr_id, status, ANY, __FILE__, __LINE__)
#define expect_sent_vendor(h, wr_id, status, vendor)                                     \
	expect_cqe_at(h, &(h)->send_cq, wr_id, status, vendor, __FILE__, __LINE__)
#define expect_received(h, wr_id, len)                                                   \
	expect_cqe_at(h, &(h)->recv_cq, wr_id, IBV_WC_SUCCESS, len, __FILE__, __LINE__)
#define expect_recv_error(h, wr_id, status, vendor)                                      \
	expect_cqe_at(h, &(h)->recv_cq, wr_id, status, vendor, __FILE__, __LINE__)
/* Expects no completion and no event. */
#define expect_idle(h) expect_idle_at(h, __FILE__, __LINE__)
#define expect_event(h, type) expect_event_at(h, type, __FILE__, __LINE__)

#endif
