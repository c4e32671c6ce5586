/* SPDX-License-Identifier: BSD-3-Clause */
/* What a hostile partner does with the memory of its pair. Each function is a way of
 * `hostile pair-WAY`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "await.h"
#include "hostile_pair.h"
#include "shm/shm_pairs.h"
#include "wire/opcode.h"

#define Q_KEY 1  /* of the victim's UD QP */
#define VALID 16 /* messages of way_valid(), as many receives as the victim has posted */

/* Packets as of a correct partner: they arrive. So those of the other ways are refused for what is
 * wrong with them. */
static int
way_valid(struct partner *n)
{
	for (uint32_t i = 0; i < VALID; i++) {
		if (!pair_packet_put(n, n->met[0], OPCODE_RC_SEND_ONLY, FIRST_PSN + i))
			return 1;
	}
	while (pair_goes_on())
		pair_take(n);
	return 0;
}

/* Packets with stamps other than the next number. */
static int
way_stamps(struct partner *n)
{
	while (pair_goes_on()) {
		uint32_t number = n->put + 1 + (uint32_t)(random_next() % n->geom.slots);
		struct pair_slot *slot = pair_slot_at(n, number);
		static const uint32_t wrong[] = {0, 1, 2, UINT32_MAX, 0x80000000};
		uint32_t stamp = random_next() % 2 != 0
					 ? (uint32_t)random_next()
					 : wrong[random_next() % RTE_DIM(wrong)] + number;

		if (stamp == number)
			continue;
		slot->kind = PAIR_PACKET;
		slot->len = pair_packet_build(n, slot->bytes, n->met[0],
			OPCODE_RC_SEND_ONLY, (uint32_t)random_next());
		__atomic_store_n(&slot->stamp, stamp, __ATOMIC_RELEASE);
		pair_take(n);
	}
	return 0;
}

static int
lengths_put(struct partner *n, const uint16_t *lens, unsigned count)
{
	struct pair_slot *slot;

	for (unsigned i = 0; (slot = pair_slot_wait(n)) != NULL; i++) {
		(void)pair_packet_build(
			n, slot->bytes, n->met[0], OPCODE_RC_SEND_ONLY, FIRST_PSN + i);
		pair_slot_give(n, slot, PAIR_PACKET, lens[i % count]);
	}
	return 0;
}

static int
way_long(struct partner *n)
{
	const uint16_t lens[] = {65535, (uint16_t)(n->geom.buf_size + 1)};

	return lengths_put(n, lens, RTE_DIM(lens));
}

/* Lengths that fit the slot, but not the packet in it. */
static int
way_short(struct partner *n)
{
	const uint16_t lens[] = {0, 1, 13, 14, 33, 34, 42, 53, 54, 57, 58, 157, 163,
		(uint16_t)n->geom.buf_size};

	return lengths_put(n, lens, RTE_DIM(lens));
}

static int
way_kinds(struct partner *n)
{
	static const uint16_t kinds[] = {0, 3, 256, 65535};
	struct pair_slot *slot;

	while ((slot = pair_slot_wait(n)) != NULL) {
		uint16_t len = pair_packet_build(
			n, slot->bytes, n->met[0], OPCODE_RC_SEND_ONLY, FIRST_PSN);

		pair_slot_give(n, slot, kinds[random_next() % RTE_DIM(kinds)], len);
	}
	return 0;
}

/* Says of QPs of others, and of no QPs, that it has connected with them. */
static int
way_connected(struct partner *n)
{
	struct pair_slot *slot;

	while ((slot = pair_slot_wait(n)) != NULL) {
		uint32_t pick = (uint32_t)(random_next() % (TARGETS + 2));

		slot->qpn = pick < TARGETS    ? n->target[pick]
			    : pick == TARGETS ? (uint32_t)(random_next() % 3)
					      : (uint32_t)random_next();
		pair_slot_give(n, slot, PAIR_CONNECTED, (uint16_t)random_next());
	}
	return 0;
}

/* Valid packets for QPs that are not connected with it. */
static int
way_others(struct partner *n)
{
	static const uint8_t opcodes[] = {OPCODE_RC_SEND_ONLY, OPCODE_RC_ACKNOWLEDGE,
		OPCODE_UC_SEND_ONLY, OPCODE_UD_SEND_ONLY};
	const uint32_t dests[] = {n->target[TARGET_CONNECTED],
		n->target[TARGET_CONNECTED], n->target[TARGET_UNCONNECTED],
		n->target[TARGET_UD], n->target[TARGET_FRIEND], n->qpn[0], 0, 1, 0xffffff,
		n->met[0] + 65536};
	uint8_t opcode;
	uint32_t psn;

	do {
		opcode = opcodes[random_next() % RTE_DIM(opcodes)];
		psn = FIRST_PSN + (uint32_t)(random_next() % (1 << 20));
	} while (pair_packet_put(n, dests[random_next() % RTE_DIM(dests)], opcode,
		opcode == OPCODE_UD_SEND_ONLY ? Q_KEY : psn));
	return 0;
}

/* The same to the victim's UD QP only, and to the QP that is connected, of its own type. */
static int
way_datagrams(struct partner *n)
{
	while (pair_packet_put(n, n->target[TARGET_UD], OPCODE_UD_SEND_ONLY, Q_KEY) &&
		pair_packet_put(n, 0xffffff, OPCODE_UD_SEND_ONLY, Q_KEY) &&
		pair_packet_put(n, n->met[0], OPCODE_UD_SEND_ONLY, Q_KEY))
		;
	return 0;
}

static int
way_cons_ahead(struct partner *n)
{
	while (pair_goes_on()) {
		uint32_t ahead = 1 + (uint32_t)(random_next() >> random_next() % 32);

		pair_take(n);
		__atomic_store_n(&n->own->cons, n->taken + ahead, __ATOMIC_RELEASE);
	}
	return 0;
}

static int
way_cons_back(struct partner *n)
{
	while (pair_goes_on()) {
		uint32_t back = 1 + (uint32_t)(random_next() % (2 * n->geom.slots));

		pair_take(n);
		others_run_us(100);
		__atomic_store_n(&n->own->cons, n->taken - back, __ATOMIC_RELEASE);
		others_run_us(100);
	}
	return 0;
}

static void
scribble(struct partner *n, unsigned words)
{
	uint64_t *word = (uint64_t *)n->own;
	size_t all = pair_part_size(&n->geom) / sizeof(*word);

	/* Half of the words are in the first slots and in the head. */
	for (unsigned i = 0; i < words; i++)
		word[random_next() % (random_next() % 2 != 0 ? all : 128)] =
			random_next() >> random_next() % 64;
}

static int
way_scribble(struct partner *n)
{
	while (pair_goes_on())
		scribble(n, 4096);
	return 0;
}

/* Valid packets, whose bytes change after they were given. */
static int
way_changing(struct partner *n)
{
	struct pair_slot *slot;

	for (uint32_t i = 0; (slot = pair_slot_wait(n)) != NULL; i++) {
		uint16_t len = pair_packet_build(
			n, slot->bytes, n->met[0], OPCODE_RC_SEND_ONLY, FIRST_PSN + i);

		pair_slot_give(n, slot, PAIR_PACKET, len);
		for (unsigned k = 0; k < 64; k++) {
			((uint8_t *)slot)[4 + random_next() % n->payload] =
				(uint8_t)random_next();
			if (n->payload < PAIR_LONG)
				slot->len = (uint16_t)random_next();
		}
	}
	return 0;
}

/* The victim reads their payload where it changes. */
static int
way_changing_long(struct partner *n)
{
	n->payload = 2 * PAIR_LONG;
	return way_changing(n);
}

/* It sleeps and wakes all the time, in both ways. */
static int
way_asleep(struct partner *n)
{
	while (pair_answer_ask(n)) {
		uint32_t number = n->own->asleep;

		__atomic_store_n(&n->own->asleep,
			random_next() % 8 == 0
				? (uint32_t)random_next()
				: asleep_next(number,
					  random_next() % 2 != 0 ? ASLEEP_FUTEX : 0),
			__ATOMIC_SEQ_CST);
		__atomic_store_n(
			&n->own->wakes, (uint32_t)random_next(), __ATOMIC_SEQ_CST);
		pair_take(n);
	}
	return 0;
}

/* It wakes the victim all the time, for this and that, and is told to wake itself. */
static int
way_wakes(struct partner *n)
{
	uint8_t bytes[512];

	while (pair_answer_ask(n)) {
		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(random_next() % 3);
		(void)!send(n->wake_fd, bytes, 1 + random_next() % sizeof(bytes),
			MSG_DONTWAIT | MSG_NOSIGNAL);
		asleep_set(&n->own->asleep);
		pair_take(n);
	}
	return 0;
}

/* It ends the connection by which it would be woken. */
static int
way_closed(struct partner *n)
{
	close(n->wake_fd);
	while (pair_answer_ask(n)) {
		asleep_set(&n->own->asleep);
		pair_take(n);
	}
	return 0;
}

/* It never takes anything. */
static int
way_deaf(struct partner *n)
{
	if (!pair_fill(n))
		return 1;
	while (pair_goes_on())
		others_run_us(1000);
	return 0;
}

/* It takes one packet whenever the victim may be about to give up. */
static int
way_trickle(struct partner *n)
{
	uint32_t cons = 0;

	if (!pair_fill(n))
		return 1;
	while (pair_goes_on()) {
		pair_look(n);
		if (cons != n->taken)
			cons++;
		__atomic_store_n(&n->own->cons, cons, __ATOMIC_RELEASE);
		others_run_us(20000);
	}
	return 0;
}

/* It takes half a ring whenever the victim may be about to give up. */
static int
way_halves(struct partner *n)
{
	if (!pair_fill(n))
		return 1;
	while (pair_goes_on()) {
		uint32_t half = n->own->cons + n->geom.slots / 2;

		pair_look(n);
		__atomic_store_n(&n->own->cons,
			(int32_t)(n->taken - half) < 0 ? n->taken : half,
			__ATOMIC_RELEASE);
		others_run_us(150000);
	}
	return 0;
}

/* Fills the victim's ring in the daemon with datagrams, which its QP refuses. */
static int
way_flood(struct partner *n)
{
	struct ring_prod tx;
	struct ring_cons rx;

	region_client_rings(&n->me.region, &tx, &rx);
	while (pair_goes_on()) {
		while (ring_prod_refresh(&tx) && ring_room(&tx) != 0) {
			struct ring_desc desc = {
				.buf = tx.prod % n->me.region.geom.tx_bufs,
				.qpn = n->qpn[0]};

			desc.len = pair_packet_build(n,
				region_tx_buf(&n->me.region, desc.buf),
				n->target[TARGET_UD], OPCODE_UD_SEND_ONLY, Q_KEY + 1);
			ring_put(&tx, &desc);
		}
		ring_publish(&tx);
		daemon_notify(&n->me);
		n->me.region.client->rx_cons = n->me.region.daemon->rx_prod;
		pair_take(n);
	}
	return 0;
}

/* A child keeps the mappings when this process has ended, and goes on writing. */
static int
way_fork(struct partner *n)
{
	pid_t child = fork();

	if (child < 0)
		return 1;
	if (child != 0) {
		puts("done");
		fflush(stdout);
		_exit(0);
	}
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	while (time_left())
		scribble(n, 4096);
	_exit(0);
}

/* Returns whether the pages of the part can be taken away. */
static bool
part_shrinks(int fd, void *part, size_t size)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		       (off_t)size) == 0 ||
	       madvise(part, size, MADV_REMOVE) == 0 || ftruncate(fd, 4096) == 0 ||
	       ftruncate(fd, (off_t)(2 * size)) == 0;
}

static int
way_holes(struct partner *n)
{
	size_t size = pair_part_size(&n->geom);
	bool any = part_shrinks(n->own_fd, n->own, size) ||
		   part_shrinks(n->peer_fd, (void *)n->peer, size);

	while (pair_goes_on() && !any) {
		any = part_shrinks(n->own_fd, n->own, size);
		pair_take(n);
	}
	return any;
}

/* The kernel must refuse to write into the victim's part. */
static int
way_writable(struct partner *n)
{
	size_t size = pair_part_size(&n->geom);
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", n->peer_fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (mprotect((void *)n->peer, size, PROT_READ | PROT_WRITE) == 0 ||
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, n->peer_fd, 0) !=
			MAP_FAILED ||
		write(n->peer_fd, "x", 1) > 0)
		return 1;
	if (fd >= 0 && (write(fd, "x", 1) > 0 || mmap(NULL, size, PROT_WRITE, MAP_SHARED,
							 fd, 0) != MAP_FAILED))
		return 1;
	if (fd >= 0)
		close(fd);
	while (pair_goes_on())
		pair_take(n);
	return 0;
}

/* Allocates only a part of its pages. */
static int
own_half(struct partner *n)
{
	size_t size = pair_part_size(&n->geom);

	n->own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, n->own_fd, 0);
	return n->own != MAP_FAILED && fallocate(n->own_fd, 0, 0, (off_t)(size / 2)) == 0
		       ? pair_own_seal(n)
		       : -1;
}

/* The pages are there, but another mapping can take them away until the part is sealed. */
static int
own_emptied(struct partner *n)
{
	int rc = pair_own_fill(n);

	if (rc == 0)
		rc = fallocate(n->own_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			4096, 4096);
	return rc == 0 ? pair_own_seal(n) : rc;
}

/* No pair may have come of that. */
static int
way_no_pair(struct partner *n)
{
	return n->peer != NULL;
}

/* Acknowledges what it was not asked for, of this client and of others. */
static int
way_lies(struct partner *n)
{
	while (pair_goes_on()) {
		uint32_t event = random_next() % 4 != 0 ? (uint32_t)(random_next() % 6)
							: (uint32_t)random_next();
		uint32_t id =
			random_next() % 2 != 0 ? n->id : (uint32_t)(random_next() % 8);

		if (pair_tell(n, event, id) == -ENODEV)
			return 1;
	}
	return 0;
}

/* Says that the pair has failed, and connects again, all the time. */
static int
way_failing(struct partner *n)
{
	while (pair_goes_on()) {
		if (pair_tell(n, SW_PAIR_FAILED, n->id) == -ENODEV)
			return 1;
		if (daemon_call(&n->me, SW_PEER_CLEAR, n->qpn[0], 0, NULL) == -ENODEV ||
			daemon_call(&n->me, SW_PEER_SET, n->qpn[0], n->met[0], NULL) ==
				-ENODEV)
			return 1;
	}
	return 0;
}

const struct pair_way pair_ways[] = {{"valid", NULL, way_valid},
	{"stamps", NULL, way_stamps}, {"long", NULL, way_long},
	{"short", NULL, way_short}, {"kinds", NULL, way_kinds},
	{"connected", NULL, way_connected}, {"others", NULL, way_others},
	{"datagrams", NULL, way_datagrams}, {"cons-ahead", NULL, way_cons_ahead},
	{"cons-back", NULL, way_cons_back}, {"scribble", NULL, way_scribble},
	{"changing", NULL, way_changing}, {"changing-long", NULL, way_changing_long},
	{"asleep", NULL, way_asleep}, {"wakes", NULL, way_wakes},
	{"closed", NULL, way_closed}, {"deaf", NULL, way_deaf},
	{"trickle", NULL, way_trickle}, {"halves", NULL, way_halves},
	{"flood", NULL, way_flood}, {"fork", NULL, way_fork}, {"holes", NULL, way_holes},
	{"writable", NULL, way_writable}, {"half", own_half, way_no_pair},
	{"other-user", pair_own_map, way_no_pair}, {"emptied", own_emptied, way_no_pair},
	{"unsealed", pair_own_fill, way_no_pair}, {"lies", NULL, way_lies},
	{"failing", NULL, way_failing}};
const unsigned pair_way_count = RTE_DIM(pair_ways);
