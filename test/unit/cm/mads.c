/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_byteorder.h>

#include "case.h"
#include "mads.h"
#include "wire/pkt_parse.h"

struct captured_mad mads[CAPTURED_MADS + 1];
unsigned mad_count;

static void
gid_of(const struct pkt_view *v, unsigned which, uint8_t gid[16])
{
	if (v->ip_version == 6) {
		memcpy(gid, v->ip + 8 + 16 * which, 16);
		return;
	}
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, v->ip + 12 + 4 * which, 4);
}

int
mads_load(void **state)
{
	if (captures_load(CAPTURES) != 0)
		return -1;
	for (size_t i = 0; i < captured_count; i++) {
		const struct captured *f = &captured[i];
		struct pkt pkt = {
			.data = (uint8_t *)(uintptr_t)f->data, .len = (uint16_t)f->len};
		struct pkt_view v;

		if (pkt_parse(&pkt, f->vlan, &v) != DROP_none || v.dest_qpn != GSI_QPN ||
			v.payload_len != MAD_LEN ||
			rte_be_to_cpu_32(view_deth(&v)->qkey) != GSI_QKEY ||
			mad_count > CAPTURED_MADS)
			continue;
		mads[mad_count].frame = f;
		memcpy(&mads[mad_count].mad, v.payload, MAD_LEN);
		gid_of(&v, 0, mads[mad_count].src);
		gid_of(&v, 1, mads[mad_count++].dst);
	}
	return 0;
}

int
mads_unload(void **state)
{
	captures_unload();
	return 0;
}

const struct captured_mad *
mad_captured(const char *capture, unsigned number)
{
	for (unsigned i = 0; i < mad_count; i++)
		if (strcmp(mads[i].frame->capture, capture) == 0 &&
			mads[i].frame->number == number)
			return &mads[i];
	fail_msg("%s frame %u is no message", capture, number);
	return NULL;
}
