/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "write_fixture.h"

struct qp_link p;

void
write_target_clear(uint32_t len)
{
	memset(p.b.mem + REMOTE - GUARD, UNTOUCHED, len + 2 * GUARD);
}

void
expect_untouched(uint32_t offset, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(p.b.mem[offset + i], UNTOUCHED);
}

void
expect_written(uint32_t len, uint32_t key)
{
	assert_true(bytes_match(p.b.mem + REMOTE, len, key));
	expect_untouched(REMOTE - GUARD, GUARD);
	expect_untouched(REMOTE + len, GUARD);
}

void
write_expect_ack(uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	assert_int_equal(host_pull(&p.b, PULL_ALL), 1);
	expect_ack(&p.b, 0, syndrome, psn, msn);
	wire_drop(&p.b, 0);
}

void
inject_write(const struct write_packet *h, uint32_t psn, uint32_t rkey, uint64_t va)
{
	inject(&p.b, &(struct pkt_spec){.opcode = h->opcode,
			     .psn = psn,
			     .ack_req = true,
			     .payload_len = h->payload,
			     .va = va,
			     .rkey = rkey,
			     .dma_len = h->dma_len});
}
