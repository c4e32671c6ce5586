/* SPDX-License-Identifier: BSD-3-Clause */
#include "switch_fixture.h"

static const struct region_geom good = {
	.tx_slots = 4, .rx_slots = 8, .tx_bufs = 6, .buf_size = 256};

TEST(parts_do_not_overlap)
{
	size_t client_size = region_client_size(&good);
	size_t daemon_size = region_daemon_size(&good);
	uint8_t *client = pages_make(client_size), *daemon = pages_make(daemon_size);
	struct region r;

	region_init(&r, client, daemon, &good);
	memset(r.client, 1, sizeof(*r.client));
	memset(r.tx_desc, 2, good.tx_slots * sizeof(*r.tx_desc));
	memset(region_tx_buf(&r, 0), 3, (size_t)good.tx_bufs * good.buf_size);
	memset(r.report, 4, sizeof(*r.report));
	memset(r.daemon, 5, sizeof(*r.daemon));
	memset(r.rx_desc, 6, good.rx_slots * sizeof(*r.rx_desc));
	memset(region_rx_buf(&r, 0), 7, (size_t)good.rx_slots * good.buf_size);
	assert_ptr_equal(r.client, client);
	assert_int_equal(((uint8_t *)(r.client + 1))[-1], 1);
	assert_int_equal(*(uint8_t *)r.tx_desc, 2);
	assert_int_equal(((uint8_t *)(r.tx_desc + good.tx_slots))[-1], 2);
	assert_int_equal(region_tx_buf(&r, 0)[0], 3);
	assert_int_equal(region_tx_buf(&r, good.tx_bufs - 1)[good.buf_size - 1], 3);
	assert_true((uint8_t *)(r.report + 1) <= client + client_size);
	assert_ptr_equal(r.daemon, daemon);
	assert_int_equal(((uint8_t *)(r.daemon + 1))[-1], 5);
	assert_int_equal(*(uint8_t *)r.rx_desc, 6);
	assert_int_equal(((uint8_t *)(r.rx_desc + good.rx_slots))[-1], 6);
	assert_ptr_equal(region_rx_buf(&r, 1), region_rx_buf(&r, 0) + good.buf_size);
	assert_true(region_rx_buf(&r, good.rx_slots) <= daemon + daemon_size);
	assert_int_equal(client_size % 4096, 0);
	assert_int_equal(daemon_size % 4096, 0);
	free(client);
	free(daemon);
}

/* Whatever a side writes for the other one lies in its own part. */
TEST(ends_show_their_indices_in_their_own_part)
{
	size_t client_size = region_client_size(&good);
	size_t daemon_size = region_daemon_size(&good);
	uint8_t *client = pages_make(client_size), *daemon = pages_make(daemon_size);
	struct ring_prod tx_prod, rx_prod;
	struct ring_cons tx_cons, rx_cons;
	struct region r;

	region_init(&r, client, daemon, &good);
	region_client_rings(&r, &tx_prod, &rx_cons);
	region_daemon_rings(&r, &tx_cons, &rx_prod);
	assert_ptr_equal(tx_prod.prod_shown, &r.client->tx_prod);
	assert_ptr_equal(tx_cons.prod_shown, &r.client->tx_prod);
	assert_ptr_equal(rx_cons.cons_shown, &r.client->rx_cons);
	assert_ptr_equal(rx_prod.cons_shown, &r.client->rx_cons);
	assert_ptr_equal(rx_prod.prod_shown, &r.daemon->rx_prod);
	assert_ptr_equal(rx_cons.prod_shown, &r.daemon->rx_prod);
	assert_ptr_equal(tx_cons.cons_shown, &r.daemon->tx_cons);
	assert_ptr_equal(tx_prod.cons_shown, &r.daemon->tx_cons);
	assert_ptr_equal(tx_prod.desc, r.tx_desc);
	assert_ptr_equal(rx_prod.desc, r.rx_desc);
	assert_int_equal(tx_cons.mask, good.tx_slots - 1);
	assert_int_equal(rx_cons.mask, good.rx_slots - 1);
	free(client);
	free(daemon);
}

TEST(invalid_geometries_are_refused)
{
	static const struct region_geom bad[] = {
		{3, 8, 6, 256}, /* not a power of two */
		{4, 6, 6, 256},
		{1, 8, 6, 256},
		{4, 0, 6, 256},
		{4, 8, 3, 256}, /* fewer buffers than slots */
		{4, 8, 6, 250}, /* not a multiple of a cache line */
		{4, 8, 6, 64},
		{4, 8, 6, 1u << 20},
		{1u << 20, 8, 1u << 20, 256},
		{4, 1u << 31, 6, 256},
		{4, 8, UINT32_MAX, 256},
	};

	assert_true(region_geom_ok(&good));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(region_geom_ok(&bad[i]));
}
