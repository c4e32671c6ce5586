/* SPDX-License-Identifier: BSD-3-Clause */
/* A client's addresses from the program's side: what is known of the MACs behind them. */
#include "client_fixture.h"

#include "../../e2e/flow_end.h"

/* Returns what the call returns for the address. */
static int
mac_resolve(const struct end *e, const char *address, uint8_t mac[6])
{
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};

	assert_int_equal(rocade_gid_parse(address, &ah.grh.dgid), 0);
	return ibv_resolve_eth_l2_from_gid(e->ctx, &ah, mac, NULL);
}

/* The daemon asks for neighbours when a packet is to leave. The call does not make it ask, so
 * that EAGAIN would be wrong. */
TEST(macs_of_others_are_not_resolved)
{
	uint8_t mac[6] = {0};
	struct client_fixture f;
	union ibv_gid own;
	struct end e;

	fixture_open(&f);
	daemon_begin(&f, NULL);
	end_open(&e);
	assert_int_equal(ibv_query_gid(e.ctx, 1, 1, &own), 0); /* the link-local one */
	assert_int_equal(mac_resolve(&e, "192.0.2.1", mac), 0);
	assert_memory_equal(mac + 3, own.raw + 13, 3); /* of the EUI-64 */
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(mac_resolve(&e, "192.0.2.9", mac), EOPNOTSUPP);
		assert_int_equal(mac_resolve(&e, "198.51.100.1", mac), EOPNOTSUPP);
	}
	assert_int_equal(mac_resolve(&e, "239.1.2.3", mac), EINVAL);
	assert_int_equal(end_close(&e), 0);
	fixture_close(&f);
}
