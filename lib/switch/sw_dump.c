/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "switch/sw_client.h"
#include "switch/sw_dump.h"
#include "switch/sw_pair.h"
#include "wire/pkt_parse.h"

static bool
user_dumps(const struct sw *sw, const struct sw_user *user)
{
	for (unsigned i = 0; i < sw->dump_count; i++) {
		if (sw->dumps[i]->user == user)
			return true;
	}
	return false;
}

/* The last half is for root and the daemon's user. */
static bool
dump_may_start(const struct sw *sw, const struct sw_client *client, bool all)
{
	if (all)
		return sw->dump_count < SW_DUMPS;
	return sw->dump_count < SW_DUMPS / 2 && !user_dumps(sw, client->user);
}

int
sw_dump_set(struct sw_client *client, const struct sw_dump_filter *filter, bool all,
	uint64_t wall_ns)
{
	struct sw *sw = client->sw;

	if ((filter->directions & ~(uint32_t)(SW_DUMP_IN | SW_DUMP_OUT)) != 0 ||
		client->qps != 0)
		return -EINVAL;
	if (filter->directions == 0) {
		sw_dump_forget(client);
		return 0;
	}
	if (client->dumps || !dump_may_start(sw, client, all))
		return -EBUSY;
	client->dump = *filter;
	client->dumps = true;
	client->dumps_all = all;
	sw->dump_wall_ns = wall_ns;
	sw->dumps[sw->dump_count++] = client;
	sw_pair_dumps_changed(sw);
	return 0;
}

void
sw_dump_forget(struct sw_client *client)
{
	struct sw *sw = client->sw;

	if (!client->dumps)
		return;
	client->dumps = false;
	for (unsigned i = 0; i < sw->dump_count; i++) {
		if (sw->dumps[i] != client)
			continue;
		sw->dumps[i] = sw->dumps[--sw->dump_count];
		sw_pair_dumps_changed(sw);
		return;
	}
}

static bool
dump_wants(const struct sw_client *to, const struct sw_client *client, uint32_t qpn,
	uint32_t direction)
{
	const struct sw_dump_filter *f = &to->dump;

	return (f->directions & direction) != 0 &&
	       (to->dumps_all || sw_clients_are_of_one_user(to, client)) &&
	       (f->client == 0 || f->client == client->id) &&
	       (f->qpn == 0 || f->qpn == qpn);
}

/* The Ethernet header is that of packets to clients: the client's own was not checked. */
static void
dump_ethernet_write(uint8_t *eth, const uint8_t mac[6])
{
	memcpy(eth, mac, 6);
	memcpy(eth + 6, mac, 6);
}

/* The bytes of the copy: behind h, in two pieces. first: room for h and the packet's headers. */
static struct handed_bytes
dump_bytes(const struct sw_client *to, const struct sw_dump_head *h,
	const struct handed_bytes *packet, uint8_t *first)
{
	uint32_t most = to->region.geom.buf_size - (uint32_t)sizeof(*h);
	uint32_t kept = RTE_MIN(packet->len, most), kept_head;
	/* Bytes that another thread has handed over are in one piece. */
	uint32_t head_len = RTE_MIN(packet->head_len, PARSE_HEADERS + 0u);

	if (to->dump.snap != 0)
		kept = RTE_MIN(kept, to->dump.snap);
	kept_head = RTE_MIN(kept, head_len);
	memcpy(first, h, sizeof(*h));
	memcpy(first + sizeof(*h), packet->head, head_len);
	dump_ethernet_write(first + sizeof(*h), to->sw->conf.net.mac);
	return (struct handed_bytes){.head = first,
		.head_len = (uint32_t)sizeof(*h) + kept_head,
		.rest = head_len == packet->head_len ? packet->rest
						     : packet->head + head_len,
		.len = (uint32_t)sizeof(*h) + kept};
}

uint32_t
sw_dump_lost(const struct sw_client *client)
{
	return (uint32_t)(client->stats.rx_full +
			  __atomic_load_n(&client->dump_lost, __ATOMIC_RELAXED));
}

void RARE
sw_dump_copy(struct sw_thread *t, const struct sw_client *client, uint32_t qpn,
	uint32_t direction, const struct handed_bytes *packet)
{
	uint8_t first[sizeof(struct sw_dump_head) + PARSE_HEADERS];
	struct sw *sw = t->sw;

	assert(packet->head_len >= 14);
	for (unsigned i = 0; i < sw->dump_count; i++) {
		struct sw_client *to = sw->dumps[i];
		struct sw_dump_head h = {.wall_ns = t->now + sw->dump_wall_ns,
			.client = client->id,
			.qpn = qpn,
			.len = packet->len,
			.direction = direction};
		struct handed_bytes bytes;

		if (!dump_wants(to, client, qpn, direction))
			continue;
		/* Only the client's own thread may read its statistics. */
		h.lost = to->thread == t ? sw_dump_lost(to) : SW_DUMP_LOST_UNKNOWN;
		bytes = dump_bytes(to, &h, packet, first);
		if (to->thread == t)
			sw_client_put(
				to, bytes.head, bytes.head_len, bytes.rest, bytes.len, 0);
		else if (!handover_bytes(t, to->thread, HANDED_DELIVER, to, &bytes))
			__atomic_fetch_add(&to->dump_lost, 1, __ATOMIC_RELAXED);
	}
}
