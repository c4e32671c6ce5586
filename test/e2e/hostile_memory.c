/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile clients: what they write into the memory and the descriptors that they share with
 * the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "hostile.h"
#include "wire/build.h"

int
mode_scribble(void)
{
	unsigned lives = 0;
	struct me me;

	while (time_left()) {
		int rc = attach_waiting(&me);
		struct sw_request req = {.type = SW_DEVICE_INFO};
		struct sw_reply reply;

		if (rc != 0)
			return 1;
		lives++;
		/* In three of four rounds change only a few words of the head, so that
		 * the daemon may go on reading. */
		do {
			uint64_t *word = (uint64_t *)me.region.client;
			bool all = random_next() % 4 == 0;
			size_t span = (all ? region_client_size(&me.region.geom)
					   : offsetof(struct region_client, latencies)) /
				      8;
			uint64_t *said = (uint64_t *)&me.region.client->latencies;
			/* with the slowest requests */
			size_t said_words =
				(sizeof(struct region_client) -
					offsetof(struct region_client, latencies)) /
				8;

			for (unsigned i = 0; i < (all ? 1u << 16 : 3u); i++)
				word[random_next() % span] =
					random_next() >> random_next() % 64;
			for (unsigned i = 0; i < 3; i++)
				said[random_next() % said_words] =
					random_next() >> random_next() % 64;
			daemon_notify(&me);
		} while (session_call(&me.session, &req, &reply, NULL, 0) == 0 &&
			 time_left());
		detach(&me);
	}
	printf("lives %u\n", lives);
	return 0;
}

/* Builds a frame with a wrong ICRC and some corrupted bytes. Returns its length,
 * sometimes a wrong one. */
static uint16_t
frame_random(const struct me *me, uint8_t *to, uint32_t dest, uint8_t opcode)
{
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct bth_fields bth = {
		.dest_qpn = dest, .pkey = PKEY_DEFAULT, .opcode = opcode};
	struct pkt pkt = {.data = to, .room = 4000};
	struct path_hdr hdr;

	memcpy(addr.src_gid, me->device.net.addr[0].gid, 16);
	memcpy(addr.dst_gid, me->device.net.addr[0].gid, 16);
	path_hdr_init(&hdr, &addr);
	(void)frame_begin(&hdr, &pkt, &bth, 100);
	frame_end(&hdr, &pkt, 100);
	to[pkt.len - 1] ^= (uint8_t)(1 + random_next() % 255); /* the ICRC */
	for (unsigned i = (unsigned)(random_next() % 3); i > 0; i--)
		to[random_next() % pkt.len] ^= (uint8_t)random_next();
	return random_next() % 8 == 0 ? (uint16_t)random_next() : pkt.len;
}

int
mode_liar(void)
{
	static const uint8_t opcodes[] = {OPCODE_RC_SEND_ONLY, OPCODE_RC_WRITE_ONLY,
		OPCODE_RC_ACKNOWLEDGE, OPCODE_UC_SEND_ONLY, OPCODE_UD_SEND_ONLY};
	struct ring_prod tx;
	struct ring_cons rx;
	uint64_t sent = 0;
	struct me me;
	uint32_t qpn;

	if (attach_waiting(&me) != 0 || daemon_call(&me, SW_QPN_TAKE, 0, 0, &qpn) != 0)
		return 1;
	region_client_rings(&me.region, &tx, &rx);
	while (time_left()) {
		uint32_t dest = qpn - 32 + (uint32_t)(random_next() % 64);
		uint8_t *last = NULL;

		if (daemon_call(&me, SW_PEER_SET, qpn, dest, NULL) == -ENODEV)
			return 1;
		for (unsigned i = 0;
			i < 64 && ring_prod_refresh(&tx) && ring_room(&tx) != 0; i++) {
			struct ring_desc desc = {
				.buf = (uint32_t)(random_next() % me.region.geom.tx_bufs),
				.qpn = random_next() % 8 != 0 ? qpn : dest};

			last = region_tx_buf(&me.region, desc.buf);
			desc.len = frame_random(&me, last, dest,
				opcodes[random_next() % RTE_DIM(opcodes)]);
			if (random_next() % 32 == 0)
				desc.buf = (uint32_t)random_next();
			ring_put(&tx, &desc);
			sent++;
		}
		ring_publish(&tx);
		daemon_notify(&me);
		for (unsigned i = 0; last != NULL && i < 64; i++)
			last[random_next() % 64] = (uint8_t)random_next();
		/* Release all received packets without reading them. */
		me.region.client->rx_cons = me.region.daemon->rx_prod;
	}
	printf("sent %llu\n", (unsigned long long)sent);
	detach(&me);
	return 0;
}

/* Fills the descriptor completely, an eventfd or a socket. */
static void
wake_fd_fill(int fd)
{
	const uint64_t most = UINT64_MAX - 1;
	ssize_t n = write(fd, &most, sizeof(most));

	while (n > 0)
		n = send(fd, &most, sizeof(most), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int
mode_block(void)
{
	struct ring_prod tx;
	struct ring_cons rx;
	uint64_t sent = 0;
	struct me me;
	uint32_t qpn;

	if (attach_waiting(&me) != 0 || daemon_call(&me, SW_QPN_TAKE, 0, 0, &qpn) != 0 ||
		daemon_call(&me, SW_PEER_SET, qpn, qpn, NULL) != 0)
		return 1;
	wake_fd_fill(me.fds[2]);
	/* The flags of a shared open file are the daemon's too. */
	for (unsigned i = 1; i < SW_ATTACH_FDS; i++)
		fcntl(me.fds[i], F_SETFL, fcntl(me.fds[i], F_GETFL) & ~O_NONBLOCK);
	region_client_rings(&me.region, &tx, &rx);
	while (time_left()) {
		struct ring_desc desc = {.buf = 0, .qpn = qpn};
		struct sw_request req = {.type = SW_DEVICE_INFO};
		uint64_t drained;
		struct sw_reply reply;

		/* A packet to ourselves. Our ring says that we sleep, so the daemon has
		 * to wake us. */
		do
			desc.len = frame_random(&me, region_tx_buf(&me.region, 0), qpn,
				OPCODE_RC_SEND_ONLY);
		while (desc.len > 1000);
		asleep_set(&me.region.client->rx_asleep);
		me.region.client->rx_cons = me.region.daemon->rx_prod;
		if (ring_prod_refresh(&tx) && ring_room(&tx) != 0) {
			ring_put(&tx, &desc);
			ring_publish(&tx);
			sent++;
		}
		/* Ring the daemon's doorbell and clear it at once. */
		daemon_notify(&me);
		drained = 0;
		(void)!read(me.fds[1], &drained, sizeof(drained));
		if (session_call(&me.session, &req, &reply, NULL, 0) != 0)
			return 1;
	}
	printf("sent %llu\n", (unsigned long long)sent);
	detach(&me);
	return 0;
}

int
mode_boast(void)
{
	unsigned told = 0;
	struct me me;

	if (attach_waiting(&me) != 0)
		return 1;
	while (time_left()) {
		struct sw_request req = {.type = SW_DEVICE_INFO};
		struct report *report = me.region.report;
		uint32_t asked = me.region.daemon->report_requested;
		struct sw_reply reply;

		memset(&report->srq_count, 0xff,
			sizeof(*report) - offsetof(struct report, srq_count));
		told += report->written_gen != asked;
		report->written_gen = asked;
		if (session_call(&me.session, &req, &reply, NULL, 0) != 0)
			return 1;
	}
	printf("told %u\n", told);
	detach(&me);
	return 0;
}

#define DRAIN_MAX 10000 /* iterations of at least a millisecond */

/* 239.1.1.1, to which the correct clients send */
static const uint8_t group[16] = {[10] = 0xff, 0xff, 239, 1, 1, 1};

int
mode_drain(void)
{
	struct sw_request join = {.type = SW_GROUP_JOIN};
	struct ring_prod tx;
	struct ring_cons rx;
	struct sw_reply reply;
	uint64_t halves = 0;
	struct me me;

	if (attach_waiting(&me) != 0 ||
		daemon_call(&me, SW_QPN_TAKE, 0, 0, &join.qpn) != 0)
		return 1;
	memcpy(join.dgid, group, sizeof(group));
	if (session_call(&me.session, &join, &reply, NULL, 0) != 0 ||
		daemon_call(&me, SW_PEER_SET, join.qpn, join.qpn, NULL) != 0)
		return 1;
	region_client_rings(&me.region, &tx, &rx);
	/* On a busy machine this process may not run often enough to fill the ring in its
	 * time. */
	for (unsigned i = 0; time_left() || (halves == 0 && i < DRAIN_MAX); i++) {
		uint32_t prod = __atomic_load_n(rx.prod_shown, __ATOMIC_ACQUIRE);

		/* Fill the ring by packets to ourselves, and take half of it whenever it
		 * is full. */
		while (ring_prod_refresh(&tx) && ring_room(&tx) != 0) {
			struct ring_desc desc = {
				.buf = tx.prod % me.region.geom.tx_bufs, .qpn = join.qpn};

			desc.len = frame_random(&me, region_tx_buf(&me.region, desc.buf),
				join.qpn, OPCODE_UC_SEND_ONLY);
			ring_put(&tx, &desc);
		}
		ring_publish(&tx);
		daemon_notify(&me);
		if (prod - *rx.cons_shown == me.region.geom.rx_slots) {
			__atomic_store_n(rx.cons_shown,
				prod - me.region.geom.rx_slots / 2, __ATOMIC_RELEASE);
			halves++;
		}
		others_run_us(1000);
	}
	printf("halves %llu\n", (unsigned long long)halves);
	detach(&me);
	return halves == 0;
}
