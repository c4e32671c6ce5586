/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a client: bursts over the rings, under the engine lock; attaching to the
 * daemon; QPNs, peers and groups registered with the daemon. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base_alloc.h"
#include "shm/attach.h"
#include "shm/process_key.h"
#include "shm/shm_answer.h"
#include "shm/shm_tx_ring.h"

/* Values of pkt.owner. Received packet: OWNER_RX and its slot. Packet to send: its tx
 * buffer. */
#define OWNER_RX (UINT64_C(1) << 32)
/* Packet of a pair: its buffer (shm_pairs.h). */
#define OWNER_PAIR (UINT64_C(1) << 33)
/* below this many free buffers, reclaim those that the daemon has released */
#define TX_LOW 64

static unsigned
shm_tx_alloc(void *queue, struct pkt *pkts, unsigned n)
{
	struct shm *shm = queue;

	if (shm->free_count < TX_LOW && !shm->dead)
		shm_tx_reclaim(shm);
	n = RTE_MIN(n, shm->free_count);
	for (unsigned i = 0; i < n; i++) {
		uint32_t buf = shm->free[--shm->free_count];

		pkts[i] = (struct pkt){.data = region_tx_buf(&shm->region, buf),
			.room = (uint16_t)shm->region.geom.buf_size,
			.owner = (void *)(uintptr_t)buf};
	}
	return n;
}

static void
rx_slots_release(struct shm *shm)
{
	uint32_t n = 0;

	while (shm->rx.cons + n != shm->rx_next &&
		shm->rx_done[(shm->rx.cons + n) & shm->rx.mask]) {
		shm->rx_done[(shm->rx.cons + n) & shm->rx.mask] = 0;
		n++;
	}
	if (n != 0 && !shm->dead)
		ring_release(&shm->rx, n);
}

static void
shm_release(void *queue, struct pkt *pkts, unsigned n)
{
	struct shm *shm = queue;
	bool received = false;

	for (unsigned i = 0; i < n; i++) {
		uint64_t owner = (uintptr_t)pkts[i].owner;

		if (owner & OWNER_RX) {
			shm->rx_done[owner & shm->rx.mask] = 1;
			received = true;
		} else if (owner & OWNER_PAIR) {
			pairs_rx_release(&shm->pairs, (uint8_t)owner);
		} else {
			shm->free[shm->free_count++] = (uint32_t)owner;
		}
	}
	if (received)
		rx_slots_release(shm);
}

/* Takes packets from the ring of the daemon. */
static unsigned
ring_rx(struct shm *shm, struct pkt *pkts, unsigned n)
{
	uint32_t ready = shm->rx.prod_seen - shm->rx_next;
	bool asked = false;
	unsigned got = 0;

	if (ready == 0) {
		if (unlikely(shm->dead) || !ring_cons_refresh(&shm->rx))
			return 0;
		ready = shm->rx.prod_seen - shm->rx_next;
	}
	n = RTE_MIN(n, ready);
	for (unsigned i = 0; i < n; i++) {
		struct ring_desc desc = ring_peek(&shm->rx, shm->rx_next - shm->rx.cons);
		uint32_t slot = shm->rx_next & shm->rx.mask;

		shm->rx_next++;
		if (unlikely(desc.flags & RING_ASK)) {
			shm_ask_replied(shm, &desc);
			shm->rx_done[slot] = 1;
			asked = true;
			continue;
		}
		pkts[got++] = (struct pkt){.data = region_rx_buf(&shm->region, slot),
			.len = RTE_MIN(desc.len, (uint16_t)shm->region.geom.buf_size),
			.room = (uint16_t)shm->region.geom.buf_size,
			.flags = desc.flags & RING_CKSUM_OK ? PKT_RX_IPV4_CKSUM_OK : 0,
			.owner = (void *)(uintptr_t)(OWNER_RX | slot)};
	}
	if (unlikely(asked))
		rx_slots_release(shm);
	return got;
}

static unsigned
shm_rx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct shm *shm = queue;
	unsigned got = 0, taken;

	if (likely(shm->pairs.count == 0))
		return ring_rx(shm, pkts, n);
	pairs_peek(shm);
	/* The daemon's packets come first, for the order of those of a QP that changes over to its
	 * pair. But others may flood the ring of the daemon: what was in it when the packets of the
	 * pairs came has been taken after a whole ring. */
	if (unlikely(shm->pairs.starved >= shm->region.geom.rx_slots)) {
		shm->pairs.starved = 0;
		got = pairs_rx(shm, pkts, n / 2, OWNER_PAIR);
	}
	taken = ring_rx(shm, pkts + got, n - got);
	/* It looks for more only when it has taken all that it knew of: what came before the packets
	 * of the pairs may be among that. */
	if (taken != 0 && got + taken < n)
		taken += ring_rx(shm, pkts + got + taken, n - got - taken);
	got += taken;
	shm->pairs.starved = got < n ? 0 : shm->pairs.starved + taken;
	if (likely(got < n))
		got += pairs_rx(shm, pkts + got, n - got, OWNER_PAIR);
	pairs_check(shm);
	return got;
}

static unsigned
ring_tx(struct shm *shm, const struct pkt *pkts, unsigned n)
{
	if (ring_room(&shm->tx) < n)
		shm_tx_reclaim(shm);
	n = RTE_MIN(n, ring_room(&shm->tx));
	for (unsigned i = 0; i < n; i++)
		shm_tx_put(shm, &pkts[i]);
	shm_tx_show(shm);
	return n;
}

/* Sends a packet by the ring to the daemon. */
static bool
packet_tx_by_daemon(struct shm *shm, const struct pkt *pkt)
{
	if (ring_room(&shm->tx) == 0)
		shm_tx_reclaim(shm);
	if (ring_room(&shm->tx) == 0)
		return false;
	shm_tx_put(shm, pkt);
	pairs_note_daemon_tx(shm, PKT_TX_QPN(pkt), shm->tx.prod);
	return true;
}

/* With pairs: each packet by its pair, or by the daemon. */
static unsigned
mixed_tx(struct shm *shm, struct pkt *pkts, unsigned n)
{
	uint32_t published = shm->tx.prod;
	struct shm_pair *last = NULL;
	unsigned i;

	for (i = 0; i < n; i++) {
		uint32_t qpn = PKT_TX_QPN(&pkts[i]);
		struct shm_pair *pair = pairs_route(shm, qpn);

		if (pair == NULL) {
			pairs_tx_unplace(shm, &pkts[i], 1);
			if (!packet_tx_by_daemon(shm, &pkts[i]))
				break;
			continue;
		}
		if (last != NULL && last != pair)
			pair_tx_done(shm, last);
		last = pair;
		if (unlikely(!pair_tx(shm, pair, qpn, &pkts[i])))
			break;
		shm->free[shm->free_count++] = (uint32_t)(uintptr_t)pkts[i].owner;
	}
	if (last != NULL)
		pair_tx_done(shm, last);
	if (shm->tx.prod != published)
		shm_tx_show(shm);
	if (unlikely(i != n))
		pairs_tx_unplace(shm, pkts + i, n - i);
	return i;
}

static unsigned
shm_tx_burst(void *queue, struct pkt *pkts, unsigned n)
{
	struct shm *shm = queue;

	if (unlikely(shm->dead)) {
		shm_release(shm, pkts, n);
		return n;
	}
	return likely(shm->pairs.count == 0) ? ring_tx(shm, pkts, n)
					     : mixed_tx(shm, pkts, n);
}

/* The engine lock is waited for: another thread may be in the middle of a pass. */
static bool
is_behind(const struct shm *shm, uint32_t upto)
{
	struct engine *e = shm->dev->engines[0];
	bool behind;

	engine_lock(e);
	behind = !shm->dead && (int32_t)(upto - shm->rx_next) > 0;
	engine_unlock(e);
	return behind;
}

static bool
partners_show_packets(const struct shm *shm)
{
	struct engine *e = shm->dev->engines[0];
	bool show;

	engine_lock(e);
	show = pairs_have_packets(shm);
	engine_unlock(e);
	return show;
}

void
shm_take_received(struct shm *shm)
{
	uint32_t upto = __atomic_load_n(shm->rx.prod_shown, __ATOMIC_RELAXED);

	/* A pass takes a packet at least. */
	for (uint32_t i = 0; i < shm->region.geom.rx_slots && is_behind(shm, upto); i++)
		(void)engine_request_pass(shm->dev->engines[0]);
	for (uint32_t i = 0; i < PAIR_SLOTS && partners_show_packets(shm); i++)
		(void)engine_request_pass(shm->dev->engines[0]);
}

static int
shm_wait_fd(void *queue)
{
	return ((struct shm *)queue)->progress_thread.wake_fd;
}

static bool
shm_has_ended(void *drv)
{
	const struct shm *shm = drv;

	return shm->dead || __atomic_load_n(&shm->progress_thread.lost, __ATOMIC_RELAXED);
}

static bool
shm_link_up(void *drv)
{
	const struct shm *shm = drv;

	return !shm_has_ended(drv) &&
	       !__atomic_load_n(&shm->region.daemon->link_down, __ATOMIC_RELAXED);
}

static void
shm_free(struct shm *shm)
{
	if (shm->region.client != NULL)
		region_unmap(&shm->region);
	if (shm->daemon_wake_fd >= 0)
		close(shm->daemon_wake_fd);
	if (shm->progress_thread.wake_fd >= 0)
		close(shm->progress_thread.wake_fd);
	if (shm->progress_thread.self_wake_fd >= 0)
		close(shm->progress_thread.self_wake_fd);
	alloc_put(&alloc_plain, shm->slot_buf,
		shm->region.geom.tx_slots * sizeof(*shm->slot_buf));
	alloc_put(&alloc_plain, shm->free, shm->region.geom.tx_bufs * sizeof(*shm->free));
	alloc_put(&alloc_plain, shm->rx_done, shm->region.geom.rx_slots);
	pairs_fini(&shm->pairs);
	session_close(&shm->session);
	alloc_put(&alloc_plain, shm, sizeof(*shm));
}

static void
shm_close(void *drv)
{
	shm_free(drv);
}

static const struct port_ops shm_ops = {
	.rx_burst = shm_rx_burst,
	.rx_release = shm_release,
	.tx_alloc = shm_tx_alloc,
	.tx_place = pairs_tx_place,
	.tx_unplace = pairs_tx_unplace,
	.tx_release = shm_release,
	.tx_burst = shm_tx_burst,
	.tx_waits = shm_tx_waits,
	.rx_answered = shm_rx_answered,
	.wait_fd = shm_wait_fd,
	.link_up = shm_link_up,
	.has_ended = shm_has_ended,
	.close = shm_close,
};

static int
tables_create(struct shm *shm)
{
	const struct region_geom *g = &shm->region.geom;

	shm->slot_buf =
		alloc_get(&alloc_plain, "slots", g->tx_slots * sizeof(*shm->slot_buf));
	shm->free = alloc_get(&alloc_plain, "buffers", g->tx_bufs * sizeof(*shm->free));
	shm->rx_done = alloc_get(&alloc_plain, "done", g->rx_slots);
	if (shm->slot_buf == NULL || shm->free == NULL || shm->rx_done == NULL)
		return -ENOMEM;
	/* Buffer 0 is taken first. */
	for (uint32_t i = g->tx_bufs; i-- > 0;)
		shm->free[shm->free_count++] = i;
	return 0;
}

static void
shm_port_fill(struct shm *shm, const struct sw_device *device, struct port *port)
{
	memset(port, 0, sizeof(*port));
	port->ops = &shm_ops;
	port->drv = shm;
	shm->queue = shm;
	port->queues = &shm->queue;
	port->queue_count = 1;
	port->caps.max_frame = shm->region.geom.buf_size;
	port->caps.rx_ring = shm->region.geom.rx_slots;
	port->caps.tx_ipv4_cksum = true; /* the daemon computes it */
	memcpy(port->mac, device->net.mac, sizeof(port->mac));
}

int
shm_attach(struct session *session, struct port *port, struct sw_device *device,
	struct shm **out)
{
	struct sw_request req = {.type = SW_ATTACH}, start = {.type = SW_START};
	struct session copy = *session;
	int fds[SW_ATTACH_FDS];
	struct sw_reply reply;
	int rc = process_key_get(req.sgid);
	struct shm *shm = rc == 0 ? alloc_get(&alloc_plain, "shm", sizeof(*shm)) : NULL;

	if (shm == NULL) {
		session_close(&copy);
		return rc != 0 ? rc : -ENOMEM;
	}
	shm->session = *session;
	pairs_init(&shm->pairs);
	start.qpn = shm->pairs.off;
	rc = session_call(&shm->session, &req, &reply, fds, SW_ATTACH_FDS);
	shm->daemon_wake_fd = fds[SW_FD_DAEMON_WAKE];
	shm->progress_thread.wake_fd = fds[SW_FD_CLIENT_WAKE];
	shm->progress_thread.self_wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (rc == 0 && shm->progress_thread.self_wake_fd < 0)
		rc = -errno;
	for (unsigned i = 0; rc == 0 && i < SW_ATTACH_FDS; i++)
		rc = fds[i] >= 0 ? 0 : -EPROTO;
	if (rc == 0)
		rc = region_map(fds, &reply.geom, &shm->region);
	if (fds[SW_FD_CLIENT_MEM] >= 0)
		close(fds[SW_FD_CLIENT_MEM]);
	if (fds[SW_FD_DAEMON_MEM] >= 0)
		close(fds[SW_FD_DAEMON_MEM]);
	if (rc == 0) {
		region_client_rings(&shm->region, &shm->tx, &shm->rx);
		rc = tables_create(shm);
	}
	if (rc == 0)
		rc = pairs_start(&shm->pairs, &shm->region.geom, reply.device.qpn_count);
	if (rc == 0)
		rc = session_call(&shm->session, &start, &reply, NULL, 0);
	if (rc != 0) {
		*session = shm->session; /* why */
		shm_free(shm);
		return rc;
	}
	shm->daemon_index = reply.device.index;
	shm->client_id = reply.client_id;
	shm_port_fill(shm, &reply.device, port);
	*device = reply.device;
	*out = shm;
	return 0;
}

static int
shm_hook_qpn_take(void *arg, uint32_t *qpn)
{
	struct sw_request req = {.type = SW_QPN_TAKE};
	struct shm *shm = arg;
	struct sw_reply reply;
	int rc = session_call(&shm->session, &req, &reply, NULL, 0);

	if (rc == 0)
		*qpn = reply.qpn;
	return rc;
}

static void
shm_hook_qpn_give(void *arg, uint32_t qpn)
{
	struct sw_request req = {.type = SW_QPN_GIVE, .qpn = qpn};
	struct shm *shm = arg;
	struct sw_reply reply;

	pairs_unregister(shm, qpn);
	(void)session_call(&shm->session, &req, &reply, NULL, 0);
}

static int
shm_hook_peer_set(void *arg, uint32_t qpn, const uint8_t sgid[16], const uint8_t dgid[16],
	uint32_t dest_qpn)
{
	struct sw_request req = {.type = SW_PEER_SET, .qpn = qpn, .dest_qpn = dest_qpn};
	struct shm *shm = arg;
	struct sw_reply reply;

	int rc;

	memcpy(req.sgid, sgid, 16);
	memcpy(req.dgid, dgid, 16);
	pairs_register_begin(shm, qpn);
	rc = session_call(&shm->session, &req, &reply, NULL, 0);
	pairs_register_end(shm, qpn, dest_qpn, rc == 0 ? reply.client_id : 0,
		rc == 0 && reply.qpn != 0);
	return rc;
}

static void
shm_hook_peer_clear(void *arg, uint32_t qpn)
{
	struct sw_request req = {.type = SW_PEER_CLEAR, .qpn = qpn};
	struct shm *shm = arg;
	struct sw_reply reply;

	pairs_unregister(shm, qpn);
	(void)session_call(&shm->session, &req, &reply, NULL, 0);
}

static int
shm_hook_group(void *arg, uint32_t qpn, const uint8_t gid[16], bool join)
{
	struct sw_request req = {
		.type = join ? SW_GROUP_JOIN : SW_GROUP_LEAVE, .qpn = qpn};
	struct shm *shm = arg;
	struct sw_reply reply;

	memcpy(req.dgid, gid, 16);
	return session_call(&shm->session, &req, &reply, NULL, 0);
}

const struct dev_hooks shm_hooks = {
	.group = shm_hook_group,
	.qpn_take = shm_hook_qpn_take,
	.qpn_give = shm_hook_qpn_give,
	.peer_set = shm_hook_peer_set,
	.peer_clear = shm_hook_peer_clear,
};
