/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <rte_byteorder.h>

#include "print.h"

#define NAME_LEN sizeof("XRC_READ_RESPONSE_MIDDLE")

/* The enumerator's name, with a space after the service: the second initialiser replaces
 * one character of the first (for CNP, which is only a service, the terminator by
 * itself). */
#pragma GCC diagnostic ignored "-Woverride-init"
#define OPCODE(value, name, svc, knd, position, headers)                                 \
	[(value)] = #name,                                                               \
	[(value)][sizeof(#svc) - 1] = sizeof(#name) > sizeof(#svc) ? ' ' : '\0',
static const char names[256][NAME_LEN] = {
#include "wire/opcode.def"
};

const char *
opcode_name(uint8_t opcode)
{
	static __thread char unknown[sizeof("opcode 0x00")];

	if (names[opcode][0] != '\0')
		return names[opcode];
	snprintf(unknown, sizeof(unknown), "opcode 0x%02x", opcode);
	return unknown;
}

struct line {
	char *buf;
	size_t size;
	size_t len; /* of the whole text without the NUL, even if the buffer is full */
};

/* Appends what printf() would print, as far as it fits. */
static void __attribute__((format(printf, 2, 3)))
line_add(struct line *line, const char *fmt, ...)
{
	size_t used = line->len < line->size ? line->len : line->size;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line->buf + used, line->size - used, fmt, args);
	va_end(args);
	if (n > 0)
		line->len += (size_t)n;
}

static void
print_addresses(struct line *line, const struct pkt_view *view)
{
	int family = view->ip_version == 4 ? AF_INET : AF_INET6;
	size_t off = view->ip_version == 4 ? 12 : 8;
	size_t len = view->ip_version == 4 ? 4 : 16;
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];

	inet_ntop(family, view->ip + off, src, sizeof(src));
	inet_ntop(family, view->ip + off + len, dst, sizeof(dst));
	line_add(line, "%s > %s", src, dst);
}

static void
print_bth(struct line *line, const struct pkt_view *view)
{
	line_add(line, " %s qp 0x%x psn 0x%x", opcode_name(view->opcode), view->dest_qpn,
		view->psn);
	if (view->pkey != PKEY_DEFAULT)
		line_add(line, " pkey 0x%04x", view->pkey);
	if (view->solicited)
		line_add(line, " solicited");
	if (view->ack_req)
		line_add(line, " ackreq");
	if (view->bth->ecn & BTH_FECN)
		line_add(line, " fecn");
	if (view->bth->ecn & BTH_BECN)
		line_add(line, " becn");
}

static void
print_aeth(struct line *line, const struct aeth *aeth)
{
	static const char *const nak_names[] = {"sequence", "invalid-request",
		"remote-access", "remote-operational", "invalid-rd-request"};
	uint8_t value = aeth->syndrome & AETH_VALUE_MASK;

	switch (aeth->syndrome & AETH_TYPE_MASK) {
	case AETH_TYPE_ACK:
		line_add(line, " ack");
		if (value != AETH_ACK)
			line_add(line, " credit-code %u", value);
		break;
	case AETH_TYPE_RNR:
		line_add(line, " rnr-nak %" PRIu32 " us", rnr_timer_ns[value] / 1000);
		break;
	case AETH_TYPE_NAK:
		if (value < RTE_DIM(nak_names)) {
			line_add(line, " nak %s", nak_names[value]);
			break;
		}
		/* fall through */
	default:
		line_add(line, " syndrome 0x%02x", aeth->syndrome);
	}
	line_add(line, " msn %u", be24_get(aeth->msn));
}

static void
print_atomic(struct line *line, const struct pkt_view *view)
{
	const struct atomic_eth *eth =
		(const struct atomic_eth *)(view->ext + view->op->main_off);

	line_add(line, " va 0x%" PRIx64 " rkey 0x%x", rte_be_to_cpu_64(eth->va),
		rte_be_to_cpu_32(eth->rkey));
	if (view->op->kind == OP_FETCH_ADD) {
		line_add(line, " add 0x%" PRIx64, rte_be_to_cpu_64(eth->swap_add));
		return;
	}
	line_add(line, " compare 0x%" PRIx64 " swap 0x%" PRIx64,
		rte_be_to_cpu_64(eth->compare), rte_be_to_cpu_64(eth->swap_add));
}

static void
print_reth(struct line *line, const struct reth *reth)
{
	line_add(line, " va 0x%" PRIx64 " rkey 0x%x dmalen %u",
		rte_be_to_cpu_64(reth->va), rte_be_to_cpu_32(reth->rkey),
		rte_be_to_cpu_32(reth->len));
}

static uint32_t
be32_get(const uint8_t *at)
{
	uint32_t word;

	__builtin_memcpy(&word, at, sizeof(word));
	return rte_be_to_cpu_32(word);
}

static void
print_ext(struct line *line, const struct pkt_view *view)
{
	unsigned hdrs = view->op->hdrs;

	if (hdrs & HDR_XRCETH)
		line_add(line, " srq 0x%x", view_srqn(view));
	if (hdrs & HDR_DETH)
		line_add(line, " qkey 0x%x srcqp 0x%x",
			rte_be_to_cpu_32(view_deth(view)->qkey),
			be24_get(view_deth(view)->src_qpn));
	if (hdrs & HDR_FETH)
		line_add(line, " placement 0x%x selectivity %u",
			be32_get(view->ext) & 0xF, be32_get(view->ext) >> 4 & 3);
	if (hdrs & HDR_RETH)
		print_reth(line, view_reth(view));
	if (hdrs & HDR_ATOMIC)
		print_atomic(line, view);
	if (hdrs & HDR_AETH)
		print_aeth(line, view_aeth(view));
	if (hdrs & HDR_ATOMIC_ACK)
		line_add(line, " original 0x%08x%08x", be32_get(view->ext + 4),
			be32_get(view->ext + 8));
	if (hdrs & HDR_IMM)
		line_add(line, " imm 0x%08x", rte_be_to_cpu_32(view_imm_be(view)));
	if (hdrs & HDR_IETH)
		line_add(line, " invalidate 0x%x", rte_be_to_cpu_32(view_imm_be(view)));
	if (hdrs & HDR_SETH) {
		line_add(line, " echo 0x%x map ", be24_get(view_seth(view)->echo));
		for (unsigned i = 0; i < sizeof(view_seth(view)->map); i++)
			line_add(line, "%02x", view_seth(view)->map[i]);
	}
}

int
pkt_print(char *buf, size_t size, const struct pkt_view *view)
{
	struct line line = {.buf = buf, .size = size};

	print_addresses(&line, view);
	print_bth(&line, view);
	print_ext(&line, view);
	line_add(&line, " len %u", view->payload_len);
	if (view->pad != 0)
		line_add(&line, " pad %u", view->pad);
	return (int)line.len;
}
