/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ether.h>

#include "nic.h"

void
nic_rx(void *nic, struct frame *f)
{
	struct nic *n = nic;

	if (n->rx_tail - n->rx_head == NIC_RX_RING) {
		n->rx_full++;
		frame_put(f);
		return;
	}
	n->rx[n->rx_tail++ % NIC_RX_RING] = f;
	n->wake(n->arg);
}

/* Makes the answer of a request, in place: hosts' MACs follow from their addresses. */
static bool
arp_answer(struct frame *f)
{
	struct rte_arp_hdr *arp = (struct rte_arp_hdr *)(f->data + RTE_ETHER_HDR_LEN);
	uint32_t asker = arp->arp_data.arp_sip, asked = arp->arp_data.arp_tip;
	uint8_t mac[6];

	if (f->data[12] != 0x08 || f->data[13] != 0x06 ||
		arp->arp_opcode != rte_cpu_to_be_16(RTE_ARP_OP_REQUEST) || asker == 0 ||
		asker == asked)
		return false;
	memcpy(f->data, f->data + 6, 6);
	host_mac(rte_be_to_cpu_32(asked) & 0xffff, mac);
	memcpy(f->data + 6, mac, 6);
	arp->arp_opcode = rte_cpu_to_be_16(RTE_ARP_OP_REPLY);
	memcpy(&arp->arp_data.arp_tha, f->data, 6);
	memcpy(&arp->arp_data.arp_sha, mac, 6);
	arp->arp_data.arp_tip = asker;
	arp->arp_data.arp_sip = asked;
	return true;
}

/* ---- The port interface ---- */

static unsigned
rx_burst(void *queue, struct pkt *pkts, unsigned count)
{
	struct nic *n = queue;
	unsigned got = 0;

	for (; got < count && !nic_rx_empty(n); got++) {
		struct frame *f = n->rx[n->rx_head++ % NIC_RX_RING];

		pkts[got] = (struct pkt){
			.data = f->data, .len = f->len, .room = FRAME_ROOM, .owner = f};
	}
	n->lent += got;
	return got;
}

static void
frames_release(void *queue, struct pkt *pkts, unsigned count)
{
	struct nic *n = queue;

	for (unsigned i = 0; i < count; i++)
		frame_put(pkts[i].owner);
	n->lent -= count;
}

static unsigned
tx_alloc(void *queue, struct pkt *pkts, unsigned count)
{
	struct nic *n = queue;

	for (unsigned i = 0; i < count; i++) {
		struct frame *f = frame_get();

		pkts[i] = (struct pkt){.data = f->data, .room = FRAME_ROOM, .owner = f};
	}
	n->lent += count;
	return count;
}

static unsigned
tx_burst(void *queue, struct pkt *pkts, unsigned count)
{
	struct nic *n = queue;
	unsigned i;

	for (i = 0; i < count && n->tx.count < n->tx.conf.frames; i++) {
		struct frame *f = pkts[i].owner;

		f->len = pkts[i].len;
		if (frame_classify(f)) {
			n->payloads += f->payload;
			outq_send(&n->tx, f);
		} else if (arp_answer(f)) {
			nic_rx(n, f);
		} else {
			frame_put(f);
		}
	}
	n->lent -= i;
	return i;
}

static int
wait_fd(void *queue)
{
	(void)queue;
	return -1;
}

static bool
link_up(void *drv)
{
	(void)drv;
	return true;
}

static void
close_port(void *drv)
{
	(void)drv;
}

static const struct port_ops ops = {
	.rx_burst = rx_burst,
	.rx_release = frames_release,
	.tx_alloc = tx_alloc,
	.tx_release = frames_release,
	.tx_burst = tx_burst,
	.wait_fd = wait_fd,
	.link_up = link_up,
	.close = close_port,
};

void
nic_init(struct nic *n, unsigned host, const struct outq_conf *link)
{
	struct outq_conf conf = *link;

	memset(n, 0, sizeof(*n));
	if (conf.frames == 0)
		conf.frames = NIC_TX_RING;
	outq_init(&n->tx, &conf);
	n->queue_list[0] = n;
	n->port = (struct port){
		.ops = &ops,
		.drv = n,
		.queues = n->queue_list,
		.queue_count = 1,
		.caps = {.max_frame = FRAME_ROOM, .rx_ring = NIC_RX_RING},
	};
	host_mac(host, n->port.mac);
}

void
nic_fini(struct nic *n)
{
	outq_fini(&n->tx);
	while (!nic_rx_empty(n))
		frame_put(n->rx[n->rx_head++ % NIC_RX_RING]);
}
