/* SPDX-License-Identifier: BSD-3-Clause */
#include "read_fixture.h"

struct qp_link p;

void
read_init(uint8_t max_rd, uint8_t max_dest)
{
	struct qp_link_conf conf = qp_link_defaults_rdma();

	conf.max_rd = max_rd;
	conf.max_dest_rd = max_dest;
	qp_link_init(&p, &conf);
	bytes_fill(p.b.mem + REMOTE, 0x8000, 1);
}

void
read_init_receives(uint8_t depth)
{
	read_init(depth, depth);
	for (unsigned i = 0; i < 8; i++)
		host_recv(&p.b, i, 0x1000, 8);
}

void
inject_read(uint32_t psn, uint64_t va, uint32_t rkey, uint32_t len)
{
	inject(&p.b, &(struct pkt_spec){.opcode = OPCODE_RC_READ_REQUEST,
			     .psn = psn,
			     .ack_req = true,
			     .va = va,
			     .rkey = rkey,
			     .dma_len = len});
}

uint64_t
read_va(uint32_t offset)
{
	return (uintptr_t)p.b.mem + REMOTE + offset;
}
