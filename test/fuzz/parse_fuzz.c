/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses the bytes of a frame, and builds it again from the parsed fields. The first byte
 * selects which fields are made consistent before (none in one case of 16), the port's
 * VLAN and the checksum result of the hardware.
 */
#include "fuzz.h"
#include "wire/build.h"
#include "wire/pkt_parse.h"

#define FRAME_MAX 9000

static void
view_inside(const struct pkt_view *v, const uint8_t *frame, size_t len)
{
	FUZZ_CHECK(v->ip >= frame + 14);
	FUZZ_CHECK((const uint8_t *)v->bth > v->ip);
	FUZZ_CHECK(v->ext == (const uint8_t *)(v->bth + 1));
	FUZZ_CHECK(v->payload == v->ext + v->op->ext_len);
	FUZZ_CHECK(v->payload + v->payload_len + v->pad + ICRC_LEN <= frame + len);
	FUZZ_CHECK(v->op->kind != OP_UNKNOWN);
}

static void
path_of(const struct pkt_view *v, struct path_hdr *hdr)
{
	struct path_addr addr = {
		.tclass = v->tclass, .hop_limit = 64, .udp_sport = 0xC000};

	if (v->ip_version == 6) {
		memcpy(addr.src_gid, v->ip + 8, 16);
		memcpy(addr.dst_gid, v->ip + 24, 16);
	} else {
		addr.src_gid[10] = addr.src_gid[11] = 0xFF;
		addr.dst_gid[10] = addr.dst_gid[11] = 0xFF;
		memcpy(addr.src_gid + 12, v->ip + 12, 4);
		memcpy(addr.dst_gid + 12, v->ip + 16, 4);
	}
	path_hdr_init(hdr, &addr);
}

static bool
v4_mapped(const uint8_t *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

static void
views_same(const struct pkt_view *a, const struct pkt_view *b)
{
	FUZZ_CHECK(a->opcode == b->opcode && a->psn == b->psn && a->pkey == b->pkey);
	FUZZ_CHECK(a->dest_qpn == b->dest_qpn && a->ip_version == b->ip_version);
	FUZZ_CHECK(a->solicited == b->solicited && a->ack_req == b->ack_req);
	FUZZ_CHECK(a->tclass == b->tclass && a->payload_len == b->payload_len);
	FUZZ_CHECK(memcmp(a->ext, b->ext, a->op->ext_len) == 0);
	FUZZ_CHECK(memcmp(a->payload, b->payload, a->payload_len) == 0);
}

static void
rebuild_check(const struct pkt_view *v)
{
	struct bth_fields fields = {
		.dest_qpn = v->dest_qpn,
		.psn = v->psn,
		.pkey = v->pkey,
		.opcode = v->opcode,
		.solicited = v->solicited,
		.ack_req = v->ack_req,
	};
	struct pkt_view again;
	struct path_hdr hdr;
	struct pkt pkt = {0};

	/* A datagram to an IPv6 group may come from an IPv4-mapped address. */
	FUZZ_CHECK(
		v->ip_version == 4 ||
		(!v4_mapped(v->ip + 24) && (!v4_mapped(v->ip + 8) || v->ip[24] == 0xff)));
	path_of(v, &hdr);
	pkt.room = (uint16_t)frame_len(&hdr, v->opcode, v->payload_len);
	pkt.data = malloc(pkt.room);
	FUZZ_CHECK(pkt.data != NULL);
	memcpy(frame_begin(&hdr, &pkt, &fields, v->payload_len), v->ext, v->op->ext_len);
	memcpy(frame_payload(&hdr, &pkt, v->opcode), v->payload, v->payload_len);
	frame_end(&hdr, &pkt, v->payload_len);
	FUZZ_CHECK(pkt.len == pkt.room);
	FUZZ_CHECK(pkt_parse(&pkt, 0, &again) == DROP_none);
	views_same(v, &again);
	free(pkt.data);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint8_t how = take8(&in);
	size_t len = in.left < FRAME_MAX ? in.left : FRAME_MAX;
	/* A heap block of exactly this size. */
	struct pkt pkt = {.data = malloc(len + (len == 0)), .len = (uint16_t)len};
	struct pkt_view view;
	unsigned why;

	FUZZ_CHECK(pkt.data != NULL);
	if (len != 0)
		memcpy(pkt.data, in.at, len);
	if ((how & 15) != 0)
		frame_fix(pkt.data, len, ~how & (FIX_LENGTHS | FIX_CHECKSUMS | FIX_ICRC));
	if (how & 0x20)
		pkt.flags |= how & 0x40 ? PKT_RX_IPV4_CKSUM_BAD : PKT_RX_IPV4_CKSUM_OK;
	why = pkt_parse(&pkt, how & 0x10 ? 100 : 0, &view);
	FUZZ_CHECK(why <= PARSE_OTHER);
	if (why == DROP_none) {
		view_inside(&view, pkt.data, len);
		rebuild_check(&view);
	}
	free(pkt.data);
	return 0;
}
