/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of lib/port: the port's addresses, neighbours and multicast memberships.
 * Selects the next hop of a destination and resolves its MAC by ARP or ND (RFC 826, RFC
 * 4861). Answers ARP requests, neighbour solicitations and echo requests (RFC 792, RFC
 * 4443). It does no I/O, like a QP: received frames are passed to net_rx(), frames to
 * send are fetched with net_tx(). Addresses are GIDs: IPv4 a.b.c.d is ::ffff:a.b.c.d.
 *
 * Shared by the engines of a port. The one lock is internal. Sending RoCEv2 packets takes
 * it only in net_resolve(): once for a path, and again whenever the generation has
 * changed. */
#ifndef ROCADE_PORT_NET_H
#define ROCADE_PORT_NET_H

#include <sys/queue.h>

#include "base/base_stats.h"
#include "port/gid.h"
#include "wire/pkt.h"

#define NET_MAX_ADDRS 8
/* Entries of the neighbour table: a power of two. */
#define NET_NEIGHS 4096 /* unless net_create_sized() is told another number */
#define NET_NEIGHS_MIN 1024
#define NET_NEIGHS_MAX 65536
#define NET_MAX_GROUPS 1024
#define NET_ROOM 128 /* frame size; exceeds every frame that net_tx() writes */

#define NEIGH_RETRY_NS (200 * NS_PER_MS) /* between two requests */
/* requests without an answer until the neighbour counts as unreachable */
#define NEIGH_TRIES 5
/* the first interval of requests to an unreachable neighbour: then 2 s, 4 s ... */
#define NEIGH_FAILED_NS NS_PER_SEC
/* interval of confirmations of a reachable neighbour that is in use */
#define NEIGH_REFRESH_NS (30 * NS_PER_SEC)

/* The limits of each user of the neighbour table, see net_user_init(). */
#define NET_USER_UNRESOLVED 256                /* neighbours that do not answer */
#define NET_USER_NEIGHS(size) ((size) / 4 * 3) /* in all, of a table of this size */

struct net_addr {
	uint8_t gid[16];
	uint8_t prefix_len; /* IPv4: 0..32 */
};

struct net_conf {
	uint8_t mac[6];
	uint16_t vlan; /* 0: untagged */
	uint16_t addr_count;
	struct net_addr addr[NET_MAX_ADDRS]; /* include the link-local address */
	uint8_t gateway4[16];                /* all zero: none */
	uint8_t gateway6[16];
	/* Another network stack, or the daemon for its clients, has the same MAC and
	 * addresses, and announces them, answers for them (ARP, ND, echo) and reports the
	 * groups. Constant for a port. */
	bool other_stack;
};

struct net;

/* Control path. Returns 0, -ENOMEM, or -EINVAL for: an address that no host can have
 * (unspecified, loopback, multicast, reserved, the subnet's own or its broadcast
 * address), a duplicate address, a gateway that is not on-link, a MAC that is not a
 * station's, a VLAN above 4094. net_tx() announces the addresses when it is first called
 * (RFC 5227 2.3, RFC 4861 7.2.6), unless conf->other_stack. */
int net_create(const struct net_conf *conf, struct net **out);
/* The same with a neighbour table of `neighs` entries; 0: NET_NEIGHS. -EINVAL also for a number
 * that is not a power of two in NET_NEIGHS_MIN..NET_NEIGHS_MAX. */
int net_create_sized(const struct net_conf *conf, uint32_t neighs, struct net **out);
void net_destroy(struct net *net);
const struct net_conf *net_conf(const struct net *net);
/* Returns the number of entries of the neighbour table. */
uint32_t net_neighs(const struct net *net);
/* Returns the memory of a neighbour: of its entry, and of its place in the hash table. */
size_t net_neigh_size(void);

/* Replaces the addresses and gateways, and advances the generation. Returns 0 or
 * -EINVAL. */
int net_set_conf(struct net *net, const struct net_conf *conf);

/*
 * Multicast groups (IGMPv3, RFC 3376; MLDv2, RFC 3810; older versions for older
 * queriers). Joining informs the routers and switches of the link; their queries are
 * answered. A group must be left as often as it was joined. If there is no other place,
 * a join takes that of a group whose leave is still to be reported. The port's solicited-node
 * groups (RFC 4291 2.7.1) are joined automatically. Returns -EINVAL if gid is not a
 * group, or -ENOSPC.
 */
int net_join(struct net *net, const uint8_t gid[16]);
/* Returns -EINVAL if the group was not joined. */
int net_leave(struct net *net, const uint8_t gid[16]);
/* Writes up to n MACs that the port has to receive besides its own and broadcast, without
 * duplicates. Returns how many. */
#define NET_MAX_MACS (NET_MAX_GROUPS + NET_MAX_ADDRS + 2)
unsigned net_group_macs(struct net *net, uint8_t (*macs)[6], unsigned n);

/* Announces all addresses and groups again, for use after the link has come up. */
void net_announce(struct net *net);

/* Changes whenever a neighbour's MAC or reachability, or an address of the port, has
 * changed. Acquire; pairs with the release in net_generation_bump(). */
uint32_t net_generation(const struct net *net);

/*
 * Resolves the MAC for packets from one of our addresses to dst. Returns:
 *
 * 0              *mac is valid; a multicast dst has its group's MAC, an address of
 *                ours has our MAC
 * -EAGAIN        being requested; call again when the generation has changed
 * -EHOSTUNREACH  no answer; requests continue, after 1, 2, 4 .. 60 s, for as long as
 *                this is called at least every 20 s; an answer changes the generation
 * -ENETUNREACH   dst is not on-link and there is no gateway
 * -ENOSPC        the table is full of entries that are in use
 */
int net_resolve(struct net *net, const uint8_t dst[16], uint8_t mac[6], uint64_t now);

TAILQ_HEAD(neigh_list, neigh);

struct neigh_charges {
	struct neigh_list list; /* least recently used first */
	uint32_t count;
};

/* A user of the neighbour table whose share of it is limited. Private to lib/port. */
struct net_user {
	struct neigh_charges unresolved, resolved;
	LIST_ENTRY(net_user) link;
	uint64_t serial; /* names the user in its entries; 0: it has none */
	bool recycles;
};

/* recycles: a new neighbour takes the place of the user's oldest unresolved one when
 * there are NET_USER_UNRESOLVED; else it is refused. */
void net_user_init(struct net_user *user, bool recycles);
/* Return how many neighbours are charged to the user, in all and of those that do not
 * answer. */
static inline uint32_t
net_user_neighs(const struct net_user *user)
{
	return user->unresolved.count + user->resolved.count;
}

static inline uint32_t
net_user_unresolved(const struct net_user *user)
{
	return user->unresolved.count;
}

/* Neighbours that only this user has asked for, and that do not answer, are no longer
 * asked. */
void net_user_fini(struct net *net, struct net_user *user);
/* As net_resolve(). -EDQUOT: the user has too many neighbours. */
int net_resolve_for(struct net *net, struct net_user *user, const uint8_t dst[16],
	uint8_t mac[6], uint64_t now);

/* As net_resolve(), for an answer to a host that has sent to us unasked: its entry is
 * passive. There are few of those, and they take nothing from users. */
int net_resolve_answer(
	struct net *net, const uint8_t dst[16], uint8_t mac[6], uint64_t now);
/* As net_resolve(), but requests nothing. -EHOSTUNREACH also for an unknown neighbour. */
int net_lookup(struct net *net, const uint8_t dst[16], uint8_t mac[6]);
/* A packet of gid came from mac: answers to gid go there, unless ARP or ND say otherwise.
 * Packets of users do not go there: they wait for ARP or ND. */
void net_hint(struct net *net, const uint8_t gid[16], const uint8_t mac[6], uint64_t now);

/* Handles a received frame that is not RoCEv2 (PARSE_OTHER). Returns true if it wrote an
 * answer to reply, which the caller has allocated. *why: why the frame was dropped, or DROP_none. */
bool net_rx(struct net *net, const struct pkt *frame, struct pkt *reply,
	enum drop_reason *why, uint64_t now);

/* Writes up to n frames of at least NET_ROOM bytes that are due: requests, announcements
 * and group reports. Returns how many. */
unsigned net_tx(struct net *net, struct pkt *frames, unsigned n, uint64_t now);

/* Time at which net_tx() will next have a frame; TIME_NEVER if none. Cheap (one relaxed
 * load). */
uint64_t net_deadline(const struct net *net);

/* An entry of the neighbour table, for rocade_port_neighs(). */
struct neigh_info {
	uint8_t gid[16];
	uint8_t mac[6];
	const char *state; /* "incomplete", "reachable", "stale", "probe", "failed" */
	uint64_t age_ns;   /* since the last answer; TIME_NEVER: no answer yet */
};
/* Calls fn for every entry, with the lock held, which is released now and then: an entry that
 * is added or dropped meanwhile may be missing. */
void net_each(struct net *net, uint64_t now,
	void (*fn)(const struct neigh_info *, void *), void *arg);

#endif
