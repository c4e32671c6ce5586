/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ip.h>

#include "wire/build.h"
#include "wire/psn.h"

#include "adversary_packet.h"

#define PAYLOAD_MAX 4200

void
adversary_rx_roce(const uint8_t *data, uint32_t len)
{
	const struct bth *bth = frame_bth(data, len);
	const struct reth *reth = (const struct reth *)(bth + 1);

	if (bth->opcode != OPCODE_RC_READ_REQUEST ||
		(const uint8_t *)(reth + 1) > data + len)
		return;
	adversary.read_psn = be24_get(bth->psn);
	adversary.read_len = rte_be_to_cpu_32(reth->len);
}

static uint8_t
opcode_choose(const struct victim *v)
{
	static const uint8_t requests[] = {OPCODE_RC_SEND_FIRST, OPCODE_RC_SEND_MIDDLE,
		OPCODE_RC_SEND_LAST, OPCODE_RC_SEND_ONLY, OPCODE_RC_SEND_ONLY_IMM,
		OPCODE_RC_WRITE_FIRST, OPCODE_RC_WRITE_MIDDLE, OPCODE_RC_WRITE_LAST,
		OPCODE_RC_WRITE_ONLY, OPCODE_RC_WRITE_ONLY_IMM, OPCODE_RC_READ_REQUEST,
		OPCODE_RC_READ_REQUEST, OPCODE_RC_COMPARE_SWAP, OPCODE_RC_FETCH_ADD,
		OPCODE_RC_SEND_LAST_INV, OPCODE_RC_SEND_ONLY_INV, OPCODE_RC_FLUSH,
		OPCODE_RC_ATOMIC_WRITE};
	static const uint8_t responses[] = {OPCODE_RC_ACKNOWLEDGE, OPCODE_RC_ACKNOWLEDGE,
		OPCODE_RC_READ_RESPONSE_FIRST, OPCODE_RC_READ_RESPONSE_MIDDLE,
		OPCODE_RC_READ_RESPONSE_LAST, OPCODE_RC_READ_RESPONSE_ONLY,
		OPCODE_RC_ATOMIC_ACKNOWLEDGE, OPCODE_SACK};

	if (chance(60))
		return (uint8_t)draw(256);
	if (chance(5))
		return OPCODE_CNP;
	if (v->type == IBV_QPT_UD)
		return OPCODE_UD_SEND_ONLY + (uint8_t)draw(2);
	if (v->type == IBV_QPT_UC)
		return (uint8_t)(SERVICE_UC << 5 | requests[draw(10)]);
	return chance(600) ? DRAW_OF(requests) : DRAW_OF(responses);
}

static uint32_t
psn_choose(const struct victim *v, const struct op_row *op)
{
	const struct qp *qp = to_qp(v->qp)->qp;
	uint32_t psn = qp->resp.epsn;

	if (op_is_response(op)) {
		if (chance(300))
			return adversary.read_psn;
		psn = psn_add(qp->req.una_psn, (uint32_t)draw(4));
	}
	if (chance(60))
		return (uint32_t)draw(1 << 24);
	return chance(250) ? psn_add(psn, (uint32_t)draw(9) + PSN_MASK - 4) : psn;
}

static uint32_t
len_choose(const struct victim *v)
{
	uint32_t mtu = mtu_bytes(v->mtu);

	switch (draw(6)) {
	case 0:
		return 0;
	case 1:
		return (uint32_t)draw(20);
	case 2:
	case 3:
		return mtu;
	case 4:
		return mtu + (uint32_t)draw(5) - 2;
	default:
		return (uint32_t)draw(PAYLOAD_MAX - 64);
	}
}

static uint32_t
rkey_choose(const struct victim *v)
{
	if (chance(850))
		return v->mr->rkey;
	/* The key of another PD, or a key that does not exist. */
	return chance(500) ? v->host->mr[!v->pd]->rkey
			   : v->mr->rkey ^ (uint32_t)(1 + draw(255));
}

static uint64_t
va_choose(const struct victim *v)
{
	uint64_t at = (uintptr_t)v->zone.data;

	if (chance(800))
		return at + (draw(v->zone.len) & ~UINT64_C(7));
	switch (draw(4)) {
	case 0:
		return at + v->zone.len - draw(16);
	case 1:
		return at - draw(100);
	case 2:
		return 0 - draw(5000);
	default:
		return rand_next(&sim.rand);
	}
}

static uint8_t
syndrome_choose(void)
{
	static const uint8_t often[] = {AETH_ACK, AETH_ACK, AETH_ACK, AETH_RNR_NAK | 1,
		AETH_NAK_SEQ, AETH_NAK_INV_REQ, AETH_NAK_ACCESS, AETH_NAK_REM_OP};

	return chance(100) ? (uint8_t)draw(256) : DRAW_OF(often);
}

/* Writes all extended headers of the opcode, in wire order. */
static void
ext_fill(const struct victim *v, uint8_t *at, const struct op_row *op, uint32_t len)
{
	uint32_t word;

	if (op->hdrs & (HDR_XRCETH | HDR_FETH)) {
		word = (uint32_t)rand_next(&sim.rand);
		if (op->hdrs & HDR_FETH)
			word = rte_cpu_to_be_32((uint32_t)draw(64));
		memcpy(at, &word, 4);
		at += 4;
	}
	if (op->hdrs & HDR_DETH) {
		struct deth *d = (struct deth *)at;

		d->qkey = rte_cpu_to_be_32(chance(900) ? ADVERSARY_QKEY : 0x7777u);
		d->reserved = 0;
		be24_put(d->src_qpn, ADVERSARY_QPN);
		at += sizeof(*d);
	}
	if (op->hdrs & (HDR_RETH | HDR_ATOMIC)) {
		uint64_t va = rte_cpu_to_be_64(va_choose(v));

		memcpy(at, &va, 8);
		word = rte_cpu_to_be_32(rkey_choose(v));
		memcpy(at + 8, &word, 4);
		at += 12;
	}
	if (op->hdrs & HDR_RETH) {
		if (!op_is_last(op))
			len += (uint32_t)draw(5000);
		else if (op->kind == OP_READ || chance(50))
			len = chance(950) ? (uint32_t)draw(9000)
					  : (uint32_t)rand_next(&sim.rand);
		word = rte_cpu_to_be_32(len);
		memcpy(at, &word, 4);
		at += 4;
	}
	if (op->hdrs & HDR_ATOMIC) {
		uint64_t words[2] = {rand_next(&sim.rand), draw(3)};

		memcpy(at, words, 16);
		at += 16;
	}
	if (op->hdrs & HDR_AETH) {
		*at = syndrome_choose();
		be24_put(at + 1, (uint32_t)draw(1 << 24));
		at += 4;
	}
	if (op->hdrs & HDR_ATOMIC_ACK) {
		memset(at, 0x3C, 8);
		at += 8;
	}
	if (op->hdrs & HDR_SETH) {
		*at = chance(900) ? SETH_VERSION << 4 : (uint8_t)draw(256);
		be24_put(at + 1, to_qp(v->qp)->qp->req.una_psn + (uint32_t)draw(12) - 3);
		for (unsigned i = 4; i < sizeof(struct seth); i++)
			at[i] = (uint8_t)(draw(256) & draw(256));
	}
	if (op->hdrs & (HDR_IMM | HDR_IETH)) {
		word = chance(300) ? rte_cpu_to_be_32(rkey_choose(v))
				   : (uint32_t)rand_next(&sim.rand);
		memcpy(at, &word, 4);
	}
}

/* Destination QPN: usually the victim, sometimes another QP or none. */
static uint32_t
qpn_choose(const struct victim *v)
{
	unsigned n = (unsigned)draw(1000);
	const struct conn *c;

	if (n < 900)
		return v->qp->qp_num;
	if (n < 930)
		return (uint32_t)draw(1 << 24);
	c = &world.conn[draw(world.conns)];
	return c->end[draw(c->ends)].qp->qp_num;
}

static void
path_make(const struct victim *v, struct path_hdr *hdr)
{
	struct path_addr addr = {
		.udp_sport = 0xC000 + (uint16_t)draw(0x4000),
		.hop_limit = 64,
		.tclass = (uint8_t)draw(4),
		.vlan = chance(10) ? 5 : 0,
	};

	/* A mapped address in an IPv6 header, now and then. */
	memcpy(addr.src_gid, adversary.gid[v->ipv6 && !chance(5)].raw, 16);
	if (chance(20))
		addr.src_gid[15] ^= 0x11;
	memcpy(addr.dst_gid, v->ipv6 ? v->host->gid6.raw : v->host->gid4.raw, 16);
	memcpy(addr.src_mac, adversary.port->port.mac, 6);
	memcpy(addr.dst_mac, v->host->wire->port.mac, 6);
	path_hdr_init(hdr, &addr);
}

/* Changes a field that the ICRC does not cover, or makes the frame something other than
 * RoCEv2. */
static void
frame_break(struct pkt *pkt)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(pkt->data + 14);

	switch (draw(4)) {
	case 0:
		pkt->data[13] ^= 0x40; /* the EtherType */
		break;
	case 1:
		if (ip->version_ihl >> 4 != 4)
			break;
		ip->fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_MF_FLAG);
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
		break;
	case 2:
		pkt->len -= (uint16_t)draw(pkt->len - 14u);
		break;
	default:
		pkt->data[14 + draw(40)] ^= (uint8_t)(1 << draw(8));
		break;
	}
}

/* Payload length: for a READ response often the length that the READ asked for. */
static uint32_t
answer_len(const struct victim *v, const struct op_row *op, uint32_t len)
{
	uint32_t mtu = mtu_bytes(v->mtu);

	if (op->kind != OP_READ_RESP || chance(300))
		return len;
	if (op->pos == POS_O)
		return RTE_MIN(adversary.read_len, mtu);
	return op->pos == POS_L ? adversary.read_len % mtu : mtu;
}

static void
packet_send(struct victim *v)
{
	struct frame *f = frame_get();
	struct pkt pkt = {.data = f->data, .room = FRAME_ROOM};
	uint8_t opcode = opcode_choose(v);
	const struct op_row *op = &op_rows[opcode];
	uint32_t len = answer_len(v, op, len_choose(v));
	struct bth_fields bth = {
		.opcode = opcode,
		.psn = psn_choose(v, op),
		.pkey = chance(15) ? (uint16_t)draw(65536) : PKEY_DEFAULT,
		.dest_qpn = qpn_choose(v),
		.ack_req = chance(500),
		.solicited = chance(200),
	};
	struct path_hdr hdr;
	uint8_t *ext, *payload;

	if ((op->kind == OP_ACK || op->kind == OP_READ || op->kind == OP_COMPARE_SWAP ||
		    op->kind == OP_FETCH_ADD || op->kind == OP_ATOMIC_ACK ||
		    op->kind == OP_SACK) &&
		chance(950))
		len = 0;
	if (op->kind == OP_ATOMIC_WRITE && chance(900))
		len = 8;
	if (op->kind == OP_CNP)
		len = 16;
	path_make(v, &hdr);
	ext = frame_begin(&hdr, &pkt, &bth, len);
	ext_fill(v, ext, op, len);
	if (chance(15)) /* pad count or version */
		pkt.data[hdr.len + 1] ^= (uint8_t)(1 << draw(6));
	payload = frame_payload(&hdr, &pkt, opcode);
	content_fill(rand_next(&sim.rand), 0, payload, len);
	frame_end(&hdr, &pkt, len);
	if (chance(10))
		frame_break(&pkt);
	f->len = pkt.len;
	link_send(adversary.port, f);
}

void
adversary_send(struct victim *v, unsigned n)
{
	while (n-- != 0)
		packet_send(v);
}
