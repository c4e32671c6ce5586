/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol between client and daemon over a UNIX socket (SOCK_SEQPACKET). A request
 * is a struct sw_request and its reply a struct sw_reply. Exception: SW_CM_COMMAND has
 * the structs sw_cm_request and sw_cm_reply, and a struct sw_data_reply answers SW_STATUS
 * and SW_REPORT. The daemon tells the two requests apart by their size. All replies begin
 * with the same four members, and a struct sw_reply can answer every request with an
 * error.
 *
 * The reply to SW_ATTACH carries four descriptors: the client's part of the shared memory
 * and the daemon's (switch/region.h); an eventfd that wakes the daemon; a socket that
 * becomes readable to wake the client. Only the writer of a part has a mapping for
 * writing: the daemon's part is sealed against further ones before it is sent. The client
 * allocates all pages of both parts, because the kernel charges a page to the process that
 * allocates it. It maps them, seals its own part, too, and sends SW_START, at which the daemon
 * checks that, and maps the client's part for reading. From then on no page of either part can go away
 * again, which would cost the daemon page faults and memory. The socket is not an eventfd,
 * because both holders of an eventfd share its flags: the client could make the daemon
 * block on it.
 */
#ifndef ROCADE_SWITCH_PROTO_H
#define ROCADE_SWITCH_PROTO_H

#include "port/impair.h"
#include "port/net.h"
#include "switch/pair.h"
#include "ucm/abi.h"

#define SW_PROTO_MAGIC 0x726f6361u /* "roca" */
#define SW_PROTO_VERSION 21
#define SW_NAME_MAX 64
#define SW_PROCESS_KEY 16 /* bytes of a process key */

/* Descriptors of the reply to SW_ATTACH. */
enum sw_attach_fd {
	SW_FD_CLIENT_MEM,
	SW_FD_DAEMON_WAKE,
	SW_FD_CLIENT_WAKE,
	SW_FD_DAEMON_MEM,
	SW_ATTACH_FDS,
};

enum sw_request_type {
	SW_DEVICE_INFO = 1, /* the reply describes the device */
	/* Creates the memory of a client, with its rings. sgid: the key of the process, random
	 * bytes that only it knows. Connections that have shown the same key, and are of the
	 * same user, are of one process: a connection for RDMA-CM may name the QPs of an attached
	 * one. The first key of a connection counts; 0 is none. No process number is needed,
	 * which the daemon cannot see from another PID namespace. */
	SW_ATTACH,
	SW_QPN_TAKE, /* the reply carries a QPN for a new QP */
	SW_QPN_GIVE, /* frees qpn */
	/* Registers dest_qpn, sgid and dgid as the peer of qpn. EADDRINUSE: a client of
	 * another user has registered this QP of another host. The reply's client_id: the client
	 * that has the QP dest_qpn, if that is another one that may form a pair with this one,
	 * else 0. The reply's qpn: 1 if that QP has registered qpn as its peer, else 0. */
	SW_PEER_SET,
	SW_GROUP_JOIN, /* qpn joins the multicast group dgid */
	SW_GROUP_LEAVE,
	/* JSON text of a part of the daemon's state: qpn is an enum sw_status_part,
	 * dest_qpn an id. This and the next two requests are about the clients and users
	 * that the asker may see: all for root and the daemon's user, else only those of
	 * its own user. */
	SW_STATUS,
	/* Requests statistics from the clients, unless that was just done. With qpn 1 it
	 * requests nothing and only asks for the count. The reply's qpn: how many clients
	 * have not written their statistics yet. */
	SW_REPORT_REQUEST,
	/* Statistics of the first client with an id of at least qpn: a piece of its struct
	 * report, up to its last QP row, from byte dest_qpn on; no bytes: this is the
	 * end. All that is before the QP rows is in the first piece. ENOENT: there is no
	 * such client. EINVAL: the piece would begin amid what is before the QP rows. */
	SW_REPORT,
	/* Opens an RDMA-CM channel for the process. sgid: the key of the process, as for
	 * SW_ATTACH. dest_qpn: its forks (sw_device_index()). The first channel of a connection
	 * tells them. The reply carries a socket, the channel's number in qpn, and describes the
	 * device. */
	SW_CM_OPEN,
	SW_CM_COMMAND, /* a struct sw_cm_request, answered by a struct sw_cm_reply */
	SW_PEER_CLEAR, /* forwards what is in the ring, then ends the registration */
	/* The client has mapped and sealed its memory, and allocated its pages: from now on the
	 * daemon serves the connection as a client. qpn 1: the client wants no pairs
	 * (switch/pair.h); else 0. ENOMEM: pages are missing. EPERM: seals are. The reply
	 * describes the device, as it is now. */
	SW_START,
	/* A client without QPs asks for copies of packets: a struct sw_dump_filter, in the
	 * place of sgid. Of all clients for root and the daemon's user, else of those of its
	 * own user. They come by its ring, see switch/sw_dump.h. The reply's qpn: copies lost
	 * so far. EINVAL: a direction is unknown, or the client has QPs. EBUSY: the client or
	 * its user dumps already, or too many do. */
	SW_DUMP,
	/* Requests the events (qp/flight.h) of the QP dest_qpn of the client qpn from that
	 * client, in place of a request that it has not answered yet. The reply's qpn: the
	 * generation of the request. This and the next request are about the clients that the
	 * asker may see. ENOENT: there is no such client, or it has no such QP. */
	SW_FLIGHT_REQUEST,
	/* The answer of the client qpn to the request of generation dest_qpn: a struct
	 * report_flight. ENOENT: there is no such client. EAGAIN: it has not answered yet.
	 * ECANCELED: it has been asked again since. */
	SW_FLIGHT,
	/* Asks for the next event of the client's pairs (switch/pair.h), after the daemon has
	 * counted one in region_daemon.pair_events. dest_qpn: the event of the last reply, for
	 * which the client has done what is asked for; 0: none. qpn: the partner of that event.
	 * The reply: the event in qpn, the partner's id in client_id, the geometry in pair, and
	 * descriptors where the event has some. EALREADY: that event was in an earlier reply, with
	 * its descriptors, and has not been acknowledged. */
	SW_PAIR,
	/* The client has read qpn in region_daemon.take_requested, and has then taken the packets
	 * that were in its ring and its pairs, and written their completions. The daemon asks for that
	 * when a peer has disconnected: the process gets that event afterwards, or a second later. */
	SW_TAKEN,
};

/* A client does what the event asks for, then asks for the next one. */
enum sw_pair_event {
	SW_PAIR_NONE, /* there is none */
	/* Map the client's own part, whose descriptor comes along, for reading and writing, and
	 * allocate its pages; then seal it. The second descriptor is the client's end of
	 * the connection by which the two clients wake each other (switch/pair.h). */
	SW_PAIR_OWN,
	/* Map the partner's part, whose descriptor comes along, for reading: the pair can be
	 * used. */
	SW_PAIR_PEER,
	/* Take what is left in the partner's part, and unmap both parts. */
	SW_PAIR_END,
	/* For SW_PAIR's dest_qpn only: the client could not do the last thing that it was asked
	 * for, or found the partner's part spoiled. The daemon ends the pair. */
	SW_PAIR_FAILED,
};

enum sw_status_part {
	SW_STATUS_DEVICE, /* members of an object: device, port, limits, ... */
	/* The first clients with an id of at least dest_qpn, users with a uid of at least
	 * dest_qpn; a few at a time, with commas between them. ENOENT: there is none. */
	SW_STATUS_CLIENT,
	SW_STATUS_USER,
	/* How long requests took, by type of QP and operation. 0: of departed clients. Else of the first client, as above,
	 * of which a request was measured, or of one before it of which none was. */
	SW_STATUS_LATENCIES,
	/* The slowest of these requests, and where their time went. In the same way, but of departed clients there is nothing. */
	SW_STATUS_SLOWEST,
};

struct sw_request {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	uint32_t qpn;
	uint32_t dest_qpn;
	uint32_t reserved;
	uint8_t sgid[16];
	uint8_t dgid[16]; /* or the group's GID */
};
static_assert(sizeof(struct sw_request) == 56, "same size in every build");

struct sw_device {
	char name[SW_NAME_MAX];
	struct net_conf net;
	uint32_t mtu;
	uint32_t qpn_base;  /* first QPN; 0: random */
	uint32_t qpn_count; /* in use at a time: a power of two; no two equal modulo it */
	uint32_t max_qp;    /* per client */
	uint8_t link_up;
	uint8_t local;      /* no port: traffic between clients only */
	uint8_t privileged; /* the asker may use controlled Q_Keys */
	uint8_t reserved;
	uint32_t max_mr; /* per client; 0: no limit */
	/* What a user may hold while the others hold nothing; 0: no limit. */
	uint32_t max_groups;        /* multicast groups */
	uint32_t max_group_members; /* QPs in one of them */
	uint32_t max_memberships;   /* QPs in all of them together */
	/* That of ibv_get_device_index(), by which librdmacm finds the device of an ID. Each daemon draws
	 * another one, of these bits and the highest of them: a program that has a device of an earlier
	 * daemon, with contexts that are dead, takes the daemon's for a new one. */
	uint32_t index;
	/* The client impairs what it sends, whichever way, by this and its own sequence of faults:
	 * the seed is that of all, and the client adds its id. */
	struct impair_conf impair;
};
#define SW_DEVICE_INDEX 0x40000000u
#define SW_DEVICE_INDEX_BITS 0x3FFFFFFFu

/* Returns the index that the device has in a process that has come of forks forks since the library was
 * loaded. The contexts that a child of fork() has of its parent's are dead as those of an earlier daemon
 * are. */
static inline uint32_t
sw_device_index(uint32_t index, uint32_t forks)
{
	return SW_DEVICE_INDEX | ((index + forks) & SW_DEVICE_INDEX_BITS);
}

/* The limit for which the daemon refuses a request, or a connection. */
struct sw_refusal {
	uint32_t kind; /* 1 + an enum account_kind; 0: it is not for a limit of a user */
	uint32_t uid;  /* whose account it is */
	uint32_t held; /* by this user; less than most: other users hold the rest */
	uint32_t most; /* what the user may hold while the others hold nothing */
};

/*
 * A connection that the daemon refuses gets, unasked, the first SW_REFUSED_LEN bytes of a reply
 * with the error, and is closed.
 */
struct sw_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t type;      /* of the request; 0: the connection is refused */
	int32_t error;      /* 0 or an errno value */
	uint32_t qpn;       /* meaning by request, as above */
	uint32_t client_id; /* of SW_START, SW_PEER_SET and SW_PAIR */
	union {
		struct region_geom geom;   /* without error */
		struct sw_refusal refusal; /* with an error */
	};
	struct pair_geom pair; /* of SW_PAIR */
	struct sw_device device;
};

#define SW_REFUSED_LEN offsetof(struct sw_reply, pair)
static_assert(
	sizeof(struct region_geom) == sizeof(struct sw_refusal), "they share a place");

/* The daemon sends only the first len of the bytes. It keeps no state from the request
 * for one piece to that for the next. */
#define SW_DATA_MAX 16384
struct sw_data_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	int32_t error;
	uint32_t id; /* of the last client, or the uid */
	uint32_t len;
	uint8_t bytes[SW_DATA_MAX];
};

/*
 * An RDMA-CM command (ucm/abi.h). The connection that carries it need not be attached.
 * When an event arrives on a channel, the daemon writes its number, of 32 bits, to the channel's
 * socket, if that has room. A reply tells whether an event is pending, and in `wakes` up to which
 * number there is none. The client discards the numbers up to this one, but while an event is pending
 * not the last number in the socket.
 */
struct sw_cm_request {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	uint32_t channel;
	uint32_t cmd;
	uint32_t len;
	uint8_t bytes[UCM_MAX];
};

struct sw_cm_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t type;
	int32_t error;
	uint32_t len;
	uint32_t wakes;
	uint32_t pending;
	uint32_t reserved;
	uint8_t bytes[UCM_MAX];
};
static_assert(sizeof(struct sw_cm_request) == 24 + UCM_MAX &&
		      sizeof(struct sw_cm_reply) == 32 + UCM_MAX,
	"same size in every build");

struct sw;
struct sw_client;

/*
 * Serves a request of len bytes. If reply->error is 0, the caller carries out SW_ATTACH,
 * SW_START, SW_STATUS, SW_CM_OPEN, SW_TAKEN and the requests for statistics, for which reply->qpn
 * is the request's qpn. It sends the reply, or a struct sw_data_reply in its place. client:
 * NULL if not attached. Returns false if the bytes are not this protocol: the caller
 * disconnects.
 */
bool sw_serve(struct sw *sw, const struct sw_device *device, struct sw_client *client,
	const void *request, size_t len, struct sw_reply *reply);

#endif
