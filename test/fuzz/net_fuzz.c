/* SPDX-License-Identifier: BSD-3-Clause */
/* The port's addresses and neighbours: frames received, time, resolution, address
 * changes. A step is an operation byte and its arguments; a frame is preceded by its
 * length. */
#include "base/base_stats.h"
#include "fuzz.h"
#include "port/net.h"
#include "wire/pkt_parse.h"

#define ROOM 2048
#define FRAMES 8
#define STEPS 200

struct bench {
	struct net *net;
	struct net_conf conf;
	struct pkt frames[FRAMES];
	uint64_t now;
	uint32_t generation;
};

static const uint8_t own_mac[6] = {2, 0, 0, 0, 0, 1};

static void
addr_add(struct net_conf *conf, const char *text)
{
	struct net_addr *addr = &conf->addr[conf->addr_count++];

	FUZZ_CHECK(gid_parse(text, addr->gid, &addr->prefix_len) == 0);
}

/* Configuration by the bits of `which`; the link-local address is always there. */
static struct net_conf
conf_of(unsigned which)
{
	struct net_conf conf = {.vlan = which & 1 ? 100 : 0};

	memcpy(conf.mac, own_mac, 6);
	if (which & 2)
		addr_add(&conf, "192.0.2.1/24");
	if (which & 4)
		addr_add(&conf, "2001:db8::1/64");
	if (which & 8)
		addr_add(&conf, "198.51.100.7/31");
	addr_add(&conf, "fe80::ff:fe00:1/64");
	if ((which & 0x12) == 0x12)
		FUZZ_CHECK(gid_parse("192.0.2.254", conf.gateway4, NULL) == 0);
	if ((which & 0x24) == 0x24)
		FUZZ_CHECK(gid_parse("2001:db8::fe", conf.gateway6, NULL) == 0);
	return conf;
}

static void
bench_init(struct bench *b, unsigned which)
{
	*b = (struct bench){.conf = conf_of(which), .now = NS_PER_SEC};
	FUZZ_CHECK(net_create(&b->conf, &b->net) == 0);
	for (unsigned i = 0; i < FRAMES; i++) {
		b->frames[i] = (struct pkt){.data = malloc(ROOM), .room = ROOM};
		FUZZ_CHECK(b->frames[i].data != NULL);
	}
}

static void
bench_fini(struct bench *b)
{
	for (unsigned i = 0; i < FRAMES; i++)
		free(b->frames[i].data);
	net_destroy(b->net);
}

/* Checks a frame that the port sends: our MAC as the source, another destination, and
 * correct lengths and checksums. */
static void
frame_check(const struct bench *b, const struct pkt *pkt)
{
	struct pkt_view view;

	FUZZ_CHECK(pkt->len >= 14 + 28 && pkt->len <= pkt->room);
	FUZZ_CHECK(memcmp(pkt->data + 6, own_mac, 6) == 0);
	FUZZ_CHECK(memcmp(pkt->data, own_mac, 6) != 0);
	FUZZ_CHECK(pkt_parse(pkt, b->conf.vlan, &view) == PARSE_OTHER);
}

/* Sets some of the fields that a frame needs to be processed. */
static void
frame_address(const struct bench *b, uint8_t *frame, size_t len, unsigned how)
{
	static const uint8_t all[6] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

	if (len < 18)
		return;
	if (how & 1)
		memcpy(frame, how & 2 ? all : own_mac, 6);
	if (how & 4 && b->conf.vlan != 0) {
		frame[12] = 0x81;
		frame[13] = 0;
		frame[14] = 0;
		frame[15] = (uint8_t)b->conf.vlan;
	}
}

static void
step_frame(struct bench *b, struct input *in)
{
	unsigned how = take8(in);
	size_t len = take16(in) % ROOM;
	const uint8_t *bytes = take_bytes(in, &len);
	struct pkt pkt = {.data = malloc(len + (len == 0)), .len = (uint16_t)len};
	struct pkt reply = b->frames[0];
	enum drop_reason why;
	struct pkt_view view;

	FUZZ_CHECK(pkt.data != NULL);
	if (len != 0)
		memcpy(pkt.data, bytes, len);
	frame_address(b, pkt.data, len, how);
	if ((how & 0x78) != 0x78)
		frame_fix(pkt.data, len, FIX_CHECKSUMS | (how & 8 ? 0 : FIX_LENGTHS));
	if (how & 0x80)
		reply.room = (uint16_t)(how & 0x10 ? 64 : 100);
	/* The engine passes no other frames to net_rx(). */
	if (pkt_parse(&pkt, b->conf.vlan, &view) == PARSE_OTHER &&
		net_rx(b->net, &pkt, &reply, &why, b->now)) {
		frame_check(b, &reply);
		/* A reply is not longer than the frame, except for padding. */
		FUZZ_CHECK(reply.len <= pkt.len || reply.len <= 14 + 4 + 40 + 32);
	}
	free(pkt.data);
}

static void
step_resolve(struct bench *b, struct input *in)
{
	static const char *const names[] = {"192.0.2.2", "192.0.2.254", "203.0.113.9",
		"2001:db8::2", "2001:db8::fe", "2001:db8:1::9", "fe80::2", "ff02::1",
		"224.0.0.1", "192.0.2.255", "192.0.2.1", "198.51.100.6"};
	uint8_t which = take8(in), gid[16], mac[6] = {0};
	int rc;

	FUZZ_CHECK(gid_parse(names[which % (sizeof(names) / sizeof(names[0]))], gid,
			   NULL) == 0);
	/* Many neighbours. */
	if (which & 0x80)
		gid[15] = take8(in), gid[14] = gid_is_ipv4(gid) ? gid[14] : take8(in);
	rc = net_resolve(b->net, gid, mac, b->now);
	FUZZ_CHECK(rc <= 0);
	/* A unicast neighbour has a unicast MAC. */
	if (rc == 0 && gid[0] != 0xFF && !gid_is_ipv4(gid))
		FUZZ_CHECK((mac[0] & 1) == 0);
}

static void
step_send(struct bench *b, unsigned n)
{
	unsigned got = net_tx(b->net, b->frames, n % (FRAMES + 1), b->now);

	FUZZ_CHECK(got <= n % (FRAMES + 1));
	for (unsigned i = 0; i < got; i++)
		frame_check(b, &b->frames[i]);
}

/* As the engine: advances the time to the deadline until nothing is due. */
static void
step_deadline(struct bench *b)
{
	uint64_t next = net_deadline(b->net);

	if (next == TIME_NEVER)
		return;
	b->now = next > b->now ? next : b->now;
	step_send(b, FRAMES);
}

static void
count_entry(const struct neigh_info *info, void *arg)
{
	unsigned *count = arg;

	(*count)++;
	FUZZ_CHECK(info->state != NULL);
}

static void
step_run(struct bench *b, struct input *in)
{
	unsigned op = take8(in), count = 0;

	switch (op % 8) {
	case 0:
	case 1:
		step_frame(b, in);
		break;
	case 2:
		step_resolve(b, in);
		break;
	case 3:
		step_send(b, op / 8);
		break;
	case 4:
		b->now += (uint64_t)take8(in) << (op / 8);
		break;
	case 5:
		step_deadline(b);
		break;
	case 6:
		b->conf = conf_of(op / 8 * 2 | (b->conf.vlan != 0));
		FUZZ_CHECK(net_set_conf(b->net, &b->conf) == 0);
		break;
	default:
		net_each(b->net, b->now, count_entry, &count);
		FUZZ_CHECK(count <= NET_NEIGHS);
		break;
	}
	FUZZ_CHECK(net_generation(b->net) - b->generation < UINT32_MAX / 2);
	b->generation = net_generation(b->net);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct bench b;

	bench_init(&b, take8(&in));
	for (unsigned i = 0; i < STEPS && in.left != 0; i++)
		step_run(&b, &in);
	bench_fini(&b);
	return 0;
}
