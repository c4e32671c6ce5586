/* SPDX-License-Identifier: BSD-3-Clause */
/* A hostile client of the daemon:
 *
 *   hostile WAY SECONDS SEED
 *   scribble   random words anywhere in the shared memory
 *   liar       correct rings, but random descriptors and frames, which change while the
 *              daemon reads them; it declares every QPN near its own its peer
 *   block      fills the descriptors that wake it, makes them blocking, and has the
 *              daemon wake it
 *   talk       random bytes, descriptors and oversized messages on the socket, without
 *              reading the replies
 *   boast      fills its stats snapshot with the largest values
 *   places     as many connections as possible, each with rings
 *   qpns       allocates all QPNs, again and again
 *
 * Prints its counts. The exit status is 0 if the daemon still runs at the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shm/session.h"
#include "switch/socket.h"
#include "wire/build.h"

struct me {
	struct session session;
	struct region region;
	struct sw_device device;
	size_t size;
	int fds[SW_ATTACH_FDS];
};

static uint64_t seed, until;

static uint64_t
random_next(void)
{
	uint64_t z = seed += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static bool
time_left(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec < until;
}

static int
attach(struct me *me)
{
	struct sw_request req = {.type = SW_ATTACH};
	struct sw_reply reply;
	void *mem;
	int rc = session_open(&me->session, NULL);

	if (rc != 0)
		return rc;
	rc = session_call(&me->session, &req, &reply, me->fds, SW_ATTACH_FDS);
	if (rc != 0) {
		session_close(&me->session);
		return rc;
	}
	me->device = reply.device;
	me->size = region_size(&reply.geom);
	mem = mmap(NULL, me->size, PROT_READ | PROT_WRITE, MAP_SHARED, me->fds[0], 0);
	if (mem == MAP_FAILED)
		abort();
	region_init(&me->region, mem, &reply.geom);
	return 0;
}

static void
detach(struct me *me)
{
	munmap(me->region.head, me->size);
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++)
		close(me->fds[i]);
	session_close(&me->session);
}

static int
daemon_call(struct me *me, uint32_t type, uint32_t qpn, uint32_t dest, uint32_t *out)
{
	struct sw_request req = {.type = type, .qpn = qpn, .dest_qpn = dest};
	struct sw_reply reply;
	int rc;

	memcpy(req.sgid, me->device.net.addr[0].gid, 16);
	memcpy(req.dgid, me->device.net.addr[0].gid, 16);
	rc = session_call(&me->session, &req, &reply, NULL, 0);
	if (rc == 0 && out != NULL)
		*out = reply.qpn;
	return rc;
}

static void
daemon_notify(const struct me *me)
{
	const uint64_t one = 1;
	ssize_t n = write(me->fds[1], &one, sizeof(one));

	(void)n;
}

static int
mode_scribble(void)
{
	unsigned lives = 0;
	struct me me;

	while (time_left()) {
		int rc = attach(&me);
		struct sw_request req = {.type = SW_DEVICE_INFO};
		struct sw_reply reply;

		if (rc != 0)
			return 1;
		lives++;
		/* In three of four rounds change only a few words of the head, so that
		 * the daemon may go on reading. */
		do {
			uint64_t *word = (uint64_t *)me.region.head;
			bool all = random_next() % 4 == 0;
			size_t span = all ? me.size / 8 : sizeof(struct region_head) / 8;

			for (unsigned i = 0; i < (all ? 1u << 16 : 3u); i++)
				word[random_next() % span] =
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

static int
mode_liar(void)
{
	static const uint8_t opcodes[] = {OPCODE_RC_SEND_ONLY, OPCODE_RC_WRITE_ONLY,
		OPCODE_RC_ACKNOWLEDGE, OPCODE_UC_SEND_ONLY, OPCODE_UD_SEND_ONLY};
	struct ring_prod tx;
	uint64_t sent = 0;
	struct me me;
	uint32_t qpn;

	if (attach(&me) != 0 || daemon_call(&me, SW_QPN_TAKE, 0, 0, &qpn) != 0)
		return 1;
	ring_prod_init(
		&tx, &me.region.head->tx, me.region.tx_desc, me.region.geom.tx_slots);
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
		me.region.head->rx.cons = me.region.head->rx.prod;
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

static int
mode_block(void)
{
	struct ring_prod tx;
	uint64_t sent = 0;
	struct me me;
	uint32_t qpn;

	if (attach(&me) != 0 || daemon_call(&me, SW_QPN_TAKE, 0, 0, &qpn) != 0 ||
		daemon_call(&me, SW_PEER_SET, qpn, qpn, NULL) != 0)
		return 1;
	wake_fd_fill(me.fds[2]);
	/* The flags of a shared open file are the daemon's too. */
	for (unsigned i = 1; i < SW_ATTACH_FDS; i++)
		fcntl(me.fds[i], F_SETFL, fcntl(me.fds[i], F_GETFL) & ~O_NONBLOCK);
	ring_prod_init(
		&tx, &me.region.head->tx, me.region.tx_desc, me.region.geom.tx_slots);
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
		me.region.head->rx_asleep = 1;
		me.region.head->rx.cons = me.region.head->rx.prod;
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

/* Sends len bytes with an unexpected descriptor. */
static void
fd_send(int fd, const void *bytes, size_t len)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec from = {.iov_base = (void *)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &from,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	(void)sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int
mode_talk(void)
{
	unsigned talks = 0;

	for (; time_left(); talks++) {
		uint64_t words[64];
		struct session s;

		if (session_open(&s, NULL) != 0)
			return 1;
		for (unsigned round = 0; round < 40; round++) {
			struct sw_request *req = (struct sw_request *)words;
			size_t len = random_next() % 4 != 0 ? sizeof(*req)
							    : random_next() % 512;

			for (unsigned i = 0; i < RTE_DIM(words); i++)
				words[i] = random_next();
			if (random_next() % 8 != 0) {
				req->magic = SW_PROTO_MAGIC;
				req->version = SW_PROTO_VERSION;
				req->type = (uint32_t)(random_next() % 12);
			}
			if (random_next() % 4 == 0)
				fd_send(s.fd, words, len);
			else if (send(s.fd, words, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				break;
		}
		session_close(&s);
	}
	printf("talks %u\n", talks);
	return 0;
}

static int
mode_boast(void)
{
	unsigned told = 0;
	struct me me;

	if (attach(&me) != 0)
		return 1;
	while (time_left()) {
		struct sw_request req = {.type = SW_DEVICE_INFO};
		struct report *report = me.region.report;
		uint32_t asked = report->requested_gen;
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

static int
mode_places(void)
{
	static struct me us[64];
	unsigned most = 0;

	do {
		unsigned n = 0;

		while (n < RTE_DIM(us) && attach(&us[n]) == 0)
			n++;
		most = RTE_MAX(most, n);
		while (n > 0)
			detach(&us[--n]);
	} while (time_left());
	printf("places %u\n", most);
	return most == 0;
}

static int
mode_qpns(void)
{
	unsigned most = 0;
	struct me me;

	if (attach(&me) != 0)
		return 1;
	while (time_left()) {
		static uint32_t mine[65536];
		unsigned n = 0;
		int rc = 0;

		while (n < RTE_DIM(mine) &&
			(rc = daemon_call(&me, SW_QPN_TAKE, 0, 0, &mine[n])) == 0)
			n++;
		if (rc == -ENODEV)
			return 1;
		most = RTE_MAX(most, n);
		if (daemon_call(&me, SW_QPN_GIVE, mine[0] + 65536, 0, NULL) != -EINVAL)
			return 1;
		while (n > 0 && time_left())
			(void)daemon_call(&me, SW_QPN_GIVE, mine[--n], 0, NULL);
	}
	printf("qpns %u\n", most);
	return 0; /* the daemon frees the rest when this process ends */
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} ways[] = {{"scribble", mode_scribble}, {"liar", mode_liar},
		{"block", mode_block}, {"talk", mode_talk}, {"boast", mode_boast},
		{"places", mode_places}, {"qpns", mode_qpns}};
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	for (unsigned i = 0; argc == 4 && i < RTE_DIM(ways); i++) {
		if (strcmp(argv[1], ways[i].name) != 0)
			continue;
		until = (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec +
			(uint64_t)(atof(argv[2]) * 1e9);
		seed = strtoull(argv[3], NULL, 10);
		return ways[i].run();
	}
	fprintf(stderr, "usage: hostile WAY SECONDS SEED\n"
			"WAY: scribble, liar, block, talk, boast, places or qpns\n");
	return 2;
}
