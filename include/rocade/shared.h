/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A verbs device on an ethdev port that belongs to the application.
 *
 * The application has configured and started the port, and goes on using it for its own
 * traffic. Rocade gets frames in one of two ways, or both:
 *
 * - The application receives, and passes its bursts to rocade_engine_input(), which takes what
 *   is for Rocade and leaves the rest.
 * - Rocade's engines poll receive queues of their own (rx_queues). Frames for the application
 *   that arrive there are fetched with rocade_engine_exceptions().
 *
 * Rocade sends on transmit queues of its own, or through a function of the application.
 *
 * For Rocade are: UDP datagrams to port 4791 of its addresses, and, unless app_answers is set, ARP
 * requests, neighbour solicitations and echo requests for its addresses. Datagrams to a multicast
 * group that Rocade has joined, IGMP, MLD and what neighbours announce go to both: Rocade gets a
 * copy, of messages up to 512 bytes. All other frames are the application's, also those to
 * Rocade's addresses, and those to another unicast MAC than the port's.
 *
 * Ownership. Frames that Rocade takes belong to it, and it frees them to the pool they came from,
 * at the latest in rocade_close_port(), but for those that become messages of an SRQ with mbufs and
 * are the application's again (mbuf.h). It does not write to the others, except that it puts back a
 * VLAN tag that the port has stripped. For each engine up to rx_desc frames may wait to be processed,
 * 1024 exceptions to be fetched, and 1024 to be handed to each other engine: a pool that is to
 * withstand an engine that is not polled has as many more. Frames that Rocade sends, and copies,
 * come from its own pool (or from conf->pool), and the PMD or the application's function frees
 * them.
 *
 * The port stays the application's: Rocade does not start, stop or configure it, and
 * rocade_close_port() leaves it as it was. (Rocade turns on that the port receives all multicast,
 * and off again if the application has not had it on.) While the application stops, configures or
 * closes the port, no thread may poll an engine of the device or call a verbs function on it. If
 * the application stops the port, the device's link is down until it is started again. If it closes
 * the port first, the device's link stays down, and rocade_close_port() is still to be called.
 * Functions return 0 or an errno value, as in rocade.h.
 */
#ifndef ROCADE_SHARED_H
#define ROCADE_SHARED_H

#include <rocade/rocade.h>

#ifdef __cplusplus
/* A function may have the name of the structure that it fills: -Wshadow of g++ warns of that. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

struct rte_mbuf;
struct rte_mempool;

struct rocade_shared_conf {
	size_t size; /* sizeof(struct rocade_shared_conf): lets the structure grow */
	/* Rocade polls the receive queues first_rx_queue to first_rx_queue + engines - 1, and
	 * nothing else does. The application decides which frames the port puts there. */
	bool rx_queues;
	uint16_t first_rx_queue;
	/* Also asks the port, by rte_flow, to put UDP datagrams to port 4791 of Rocade's
	 * addresses there. Where the PMD cannot do that, the application steers them itself or
	 * passes them to rocade_engine_input(). The application must not flush the port's rules.
	 * Some NICs lose them when the port is stopped. */
	bool steer;
	/* tx NULL: engine i sends on transmit queue first_tx_queue + i, which nothing else
	 * uses. */
	uint16_t first_tx_queue;
	/* Takes frames of an engine to be sent. Returns how many it took, in order; it owns them
	 * then. Called by any thread that polls the engine, posts, or makes a control call, one
	 * at a time for each engine, with the engine locked: it must not call verbs or rocade
	 * functions. If it sends on a queue of the application, the two must exclude each other.
	 * A queue with RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE takes frames of one pool only: then set
	 * pool to that. */
	uint16_t (*tx)(void *arg, unsigned engine, struct rte_mbuf **frames, uint16_t n);
	void *tx_arg;
	/* Where frames to be sent and copies come from: each has room for the MTU and 18 bytes.
	 * It must outlive the device, and the transmit queues that hold its frames. NULL: a pool
	 * of Rocade. */
	struct rte_mempool *pool;
	/* The application has the same addresses, and answers ARP requests, neighbour
	 * solicitations and echo requests for them, announces them, and reports multicast
	 * groups. Rocade only asks for neighbours, and learns from the answers. */
	bool app_answers;
};

/*
 * Adds a verbs device on the started port conf->ethdev. Of conf, rx_desc is the number of frames
 * that can wait behind rocade_engine_input() for each engine (0: 1024). tx_desc and
 * rx_interrupts are not used: a sleeping engine is woken by rocade_engine_input(), and polls its
 * receive queue every millisecond or every 4 ms.
 * EINVAL: a member is wrong, or the port has too few queues. EOPNOTSUPP: a secondary process of
 * DPDK. ENODEV: no such port. EBUSY: a
 * queue is that of another device opened with this function. EEXIST: the name is in use. EIO: the
 * PMD does not tell what is needed. ENOMEM. A port of rocade_open_port() cannot be shared.
 */
int rocade_open_shared(const struct rocade_port_conf *conf,
	const struct rocade_shared_conf *shared, struct rocade_port **port);

/*
 * Takes from frames[0..n) those for Rocade, for the engine's next pass. Moves the others to the
 * front, in order, and returns how many these are: they stay the caller's. If more frames wait
 * than there is room for, those for Rocade are freed and counted. Any thread may call it, also
 * several at once, but not after rocade_close_port(). Of an engine of another kind of port it
 * takes nothing.
 */
uint16_t rocade_engine_input(
	struct rocade_engine *engine, struct rte_mbuf **frames, uint16_t n);

/* Fetches up to n frames for the application that have arrived at the engine's receive queue.
 * Returns how many. If they are not fetched, later ones are freed and counted. Threads as in
 * rocade_engine_input(). */
uint16_t rocade_engine_exceptions(
	struct rocade_engine *engine, struct rte_mbuf **frames, uint16_t n);

struct rocade_shared_stats {
	uint64_t input_full;      /* frames freed because too many waited behind
				     rocade_engine_input() */
	uint64_t exceptions_full; /* frames freed because they were not fetched */
	uint64_t no_copy;    /* frames for both of which Rocade got no copy: no buffer */
	uint32_t flow_rules; /* rte_flow rules in effect, of all engines */
};
/* Fills in the counters of an engine. EINVAL: not an engine of a shared port. */
int rocade_shared_stats_sized(
	struct rocade_engine *engine, struct rocade_shared_stats *stats, size_t size);
static inline int
rocade_shared_stats(struct rocade_engine *engine, struct rocade_shared_stats *stats)
{
	return rocade_shared_stats_sized(engine, stats, sizeof(*stats));
}

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
