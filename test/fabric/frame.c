/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>

#include "frame.h"

#define ROCE_PORT 4791
#define HEADERS 42 /* Ethernet, IPv4, UDP */
#define IP 14
#define UDP (IP + 20)
#define ECN_MASK 3
#define ECN_CE 3

static struct frame_list spare = STAILQ_HEAD_INITIALIZER(spare);
static uint32_t in_use;

struct frame *
frame_get(void)
{
	struct frame *f = STAILQ_FIRST(&spare);

	if (f != NULL)
		STAILQ_REMOVE_HEAD(&spare, link);
	else
		f = aligned_alloc(LINE_SIZE, sizeof(*f));
	if (f == NULL)
		abort();
	in_use++;
	f->hops = 0;
	return f;
}

void
frame_put(struct frame *frame)
{
	in_use--;
	STAILQ_INSERT_HEAD(&spare, frame, link);
}

uint32_t
frames_in_use(void)
{
	return in_use;
}

void
host_mac(unsigned n, uint8_t mac[6])
{
	memcpy(mac, (uint8_t[]){0x02, 0, 0, 0, (uint8_t)(n >> 8), (uint8_t)n}, 6);
}

int
host_of_mac(const uint8_t mac[6])
{
	static const uint8_t ours[4] = {0x02};

	return memcmp(mac, ours, 4) == 0 ? mac[4] << 8 | mac[5] : -1;
}

static uint16_t
be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

bool
frame_classify(struct frame *f)
{
	int src = host_of_mac(f->data + 6), dst = host_of_mac(f->data);

	if (f->len < HEADERS || src < 0 || dst < 0 || be16(f->data + 12) != 0x0800 ||
		f->data[IP] != 0x45 || f->data[IP + 9] != 17 ||
		be16(f->data + UDP + 2) != ROCE_PORT)
		return false;
	f->src = (uint16_t)src;
	f->dst = (uint16_t)dst;
	f->sport = be16(f->data + UDP);
	f->payload = f->len >= FRAME_PAYLOAD_MIN;
	return true;
}

bool
frame_mark_ce(struct frame *f)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(f->data + IP);

	if ((ip->type_of_service & ECN_MASK) == 0)
		return false;
	ip->type_of_service |= ECN_CE;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return true;
}
