/* SPDX-License-Identifier: BSD-3-Clause */
/*   hostile pair-WAY SECONDS SEED
 *
 * Prints "qpns" and the numbers of its QPs. Reads the QPNs of as many QPs of the victim, and those
 * of enum target. Connects its QPs with the former, waits for the pair, prints "paired", and does
 * what the way is until its input ends, for SECONDS at most. Then it prints "done", or "wrong" if the
 * kernel or the daemon has let it do what they must refuse. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "await.h"
#include "hostile_pair.h"
#include "wire/build.h"

#define REFUSED_ASKS 500 /* for a pair that must not come */

/* fds: -1, or those that come along. Returns 0 or -errno. */
static int
pair_ask(struct partner *n, uint32_t event, uint32_t id, struct sw_reply *reply,
	int fds[2])
{
	struct sw_request req = {.type = SW_PAIR, .qpn = id, .dest_qpn = event};

	return session_call(&n->me.session, &req, reply, fds, 2);
}

int
pair_tell(struct partner *n, uint32_t event, uint32_t id)
{
	struct sw_reply reply;
	int fds[2];
	int rc = pair_ask(n, event, id, &reply, fds);

	for (unsigned i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return rc;
}

int
pair_own_seal(const struct partner *n)
{
	return fcntl(n->own_fd, F_ADD_SEALS, REGION_WRITER_SEALS);
}

int
pair_own_fill(struct partner *n)
{
	size_t size = pair_part_size(&n->geom);

	if (fallocate(n->own_fd, 0, 0, (off_t)size) != 0)
		return -1;
	n->own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, n->own_fd, 0);
	return n->own != MAP_FAILED ? 0 : -1;
}

int
pair_own_map(struct partner *n)
{
	return pair_own_fill(n) == 0 ? pair_own_seal(n) : -1;
}

static int
peer_map(struct partner *n)
{
	n->peer = mmap(
		NULL, pair_part_size(&n->geom), PROT_READ, MAP_SHARED, n->peer_fd, 0);
	if (n->peer == MAP_FAILED)
		return -1;
	/* Otherwise the victim sends it nothing by the pair. */
	if (n->own != NULL)
		__atomic_store_n(&n->own->reads, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Does what the event asks for. Returns 0 or -1. */
static int
event_do(struct partner *n, const struct pair_way *way, const struct sw_reply *reply,
	const int fds[2])
{
	n->id = reply->client_id;
	n->geom = reply->pair;
	if (reply->qpn == SW_PAIR_OWN) {
		n->own_fd = fds[0];
		n->wake_fd = fds[1];
		return way->own != NULL ? way->own(n) : pair_own_map(n);
	}
	if (reply->qpn == SW_PAIR_PEER) {
		n->peer_fd = fds[0];
		return peer_map(n);
	}
	return -1;
}

/* Waits until the pair can be used. Returns 0 or -1. */
static int
pair_form(struct partner *n, const struct pair_way *way)
{
	struct await a = {.pauses = 0};
	uint32_t event = SW_PAIR_NONE;

	for (unsigned asks = 0;
		n->peer == NULL && (way->own == NULL || asks < REFUSED_ASKS) &&
		await_goes_on(&a);
		asks++) {
		struct sw_reply reply;
		int fds[2];

		if (pair_ask(n, event, n->id, &reply, fds) != 0)
			return -1;
		event = reply.qpn;
		if (event != SW_PAIR_NONE && event_do(n, way, &reply, fds) != 0)
			return -1;
		if (event == SW_PAIR_NONE)
			others_run_us(1000);
	}
	if (n->peer == NULL)
		return -1;
	/* So that the next event may come. */
	return pair_tell(n, event, n->id);
}

bool
pair_goes_on(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	static unsigned calls;

	/* A system call each time would leave less time for what it does. */
	return calls++ % 16 != 0 || (time_left() && poll(&in, 1, 0) == 0);
}

struct pair_slot *
pair_slot_at(struct partner *n, uint32_t number)
{
	size_t index = (number - 1) & (n->geom.slots - 1);

	return (struct pair_slot *)(n->own->slots + index * pair_slot_size(&n->geom));
}

struct pair_slot *
pair_slot_wait(struct partner *n)
{
	while (pair_goes_on()) {
		/* Pairs with the release of the reader: the slot is free. */
		uint32_t cons = __atomic_load_n(&n->peer->cons, __ATOMIC_ACQUIRE);

		if (n->put - cons < n->geom.slots)
			return pair_slot_at(n, n->put + 1);
		pair_take(n);
	}
	return NULL;
}

void
pair_slot_give(struct partner *n, struct pair_slot *slot, uint16_t kind, uint16_t len)
{
	slot->kind = kind;
	slot->len = len;
	/* Pairs with the acquire of the reader. */
	__atomic_store_n(&slot->stamp, ++n->put, __ATOMIC_RELEASE);
}

void
pair_look(struct partner *n)
{
	size_t step = pair_slot_size(&n->geom);

	for (;;) {
		size_t index = n->taken & (n->geom.slots - 1);
		const struct pair_slot *slot =
			(const struct pair_slot *)(n->peer->slots + index * step);

		if (__atomic_load_n(&slot->stamp, __ATOMIC_ACQUIRE) != n->taken + 1)
			break;
		n->taken++;
	}
}

void
pair_take(struct partner *n)
{
	pair_look(n);
	/* Pairs with the acquire of the writer. */
	__atomic_store_n(&n->own->cons, n->taken, __ATOMIC_RELEASE);
}

uint16_t
pair_packet_build(
	struct partner *n, uint8_t *to, uint32_t dest, uint8_t opcode, uint32_t psn)
{
	struct path_addr addr = {.udp_sport = 0xC000, .hop_limit = 64};
	struct bth_fields bth = {
		.dest_qpn = dest, .pkey = PKEY_DEFAULT, .opcode = opcode, .psn = psn};
	struct pkt pkt = {.data = to, .room = (uint16_t)n->geom.buf_size};
	struct path_hdr hdr;
	uint8_t *ext;

	memcpy(addr.src_gid, n->me.device.net.addr[0].gid, 16);
	memcpy(addr.dst_gid, n->me.device.net.addr[0].gid, 16);
	path_hdr_init(&hdr, &addr);
	ext = frame_begin(&hdr, &pkt, &bth, n->payload);
	memset(ext, 0, op_rows[opcode].ext_len);
	if (opcode == OPCODE_UD_SEND_ONLY) {
		ext[3] = (uint8_t)psn;
		be24_put(ext + 5, n->qpn[0]);
	} else if (opcode == OPCODE_RC_ACKNOWLEDGE) {
		aeth_put(ext, AETH_NAK_INV_REQ, 0);
	}
	memset(frame_payload(&hdr, &pkt, opcode), 0x5a, n->payload);
	frame_end(&hdr, &pkt, n->payload);
	return pkt.len;
}

bool
pair_packet_put(struct partner *n, uint32_t dest, uint8_t opcode, uint32_t psn)
{
	struct pair_slot *slot = pair_slot_wait(n);

	if (slot == NULL)
		return false;
	pair_slot_give(n, slot, PAIR_PACKET,
		pair_packet_build(n, slot->bytes, dest, opcode, psn));
	return true;
}

bool
pair_answer_ask(struct partner *n)
{
	return pair_packet_put(n, n->met[0], OPCODE_RC_SEND_ONLY, FIRST_PSN - 1);
}

/* Reads count QPNs of the victim. */
static int
qpns_read(uint32_t *qpns, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (scanf("%u", &qpns[i]) != 1)
			return -1;
	}
	return 0;
}

/* Takes QPs and connects them with the victim's. Returns 0 or -1. */
static int
victim_meet(struct partner *n)
{
	if (attach(&n->me) != 0)
		return -1;
	printf("qpns");
	for (unsigned i = 0; i < MEETS; i++) {
		if (daemon_call(&n->me, SW_QPN_TAKE, 0, 0, &n->qpn[i]) != 0)
			return -1;
		printf(" %u", n->qpn[i]);
	}
	printf("\n");
	fflush(stdout);
	if (qpns_read(n->met, MEETS) != 0 || qpns_read(n->target, TARGETS) != 0)
		return -1;
	for (unsigned i = 0; i < MEETS; i++) {
		if (daemon_call(&n->me, SW_PEER_SET, n->qpn[i], n->met[i], NULL) != 0)
			return -1;
	}
	return 0;
}

/* Waits until the victim has taken all that was put into the own part. */
static void
taken_await(const struct partner *n)
{
	(void)awaited(__atomic_load_n(&n->peer->cons, __ATOMIC_ACQUIRE) == n->put);
}

/* Says that its QPs are connected, so that the victim sends to them by the pair. */
static void
connected_say(struct partner *n)
{
	for (unsigned i = 0; i < MEETS; i++) {
		struct pair_slot *slot = pair_slot_at(n, n->put + 1);

		slot->qpn = n->met[i];
		pair_slot_give(n, slot, PAIR_CONNECTED, 0);
	}
	taken_await(n);
}

static bool
pair_is_full(struct partner *n)
{
	pair_look(n);
	return n->taken - n->own->cons >= n->geom.slots;
}

bool
pair_fill(struct partner *n)
{
	return awaited(pair_is_full(n));
}

static void
say(const char *word)
{
	printf("%s\n", word);
	fflush(stdout);
}

static int
way_run(struct partner *n, const struct pair_way *way)
{
	int rc;

	if (victim_meet(n) != 0)
		return 1;
	if (pair_form(n, way) != 0 && way->own == NULL) {
		say("no pair");
		return 1;
	}
	if (n->peer != NULL)
		connected_say(n);
	say("paired");
	time_begin();
	rc = way->run(n);
	say(rc == 0 ? "done" : "wrong");
	while (getchar() != EOF)
		continue;
	detach(&n->me);
	return rc;
}

int
mode_pair(const char *name)
{
	static struct partner n = {
		.own_fd = -1, .peer_fd = -1, .wake_fd = -1, .payload = 100};

	for (unsigned i = 0; i < pair_way_count; i++) {
		if (strcmp(pair_ways[i].name, name) == 0)
			return way_run(&n, &pair_ways[i]);
	}
	fprintf(stderr, "hostile: pair-%s is unknown\n", name);
	return 2;
}
