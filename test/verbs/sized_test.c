/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures of a program that was built with the headers of another release: shorter or longer than
 * those of this library. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"
#include "verbs_pair.h"

#define UNTOUCHED 0xA5
#define MORE 16 /* bytes that a later release has behind the structure */

static struct verbs_pair pair;

static int
setup(void **state)
{
	(void)state;
	pair_open(&pair, &(struct verbs_pair_conf){.srq_wr = 16});
	assert_int_equal(pair_post_srq(&pair.b, 0, 0, 64), 0);
	assert_int_equal(pair_send(&pair.a, 0, 0, 0, 64, 0), 0);
	pair_drain(&pair);
	return 0;
}

static int
teardown(void **state)
{
	struct ibv_wc wc;

	(void)state;
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
	pair_close(&pair);
	return 0;
}

static bool
all_bytes(const uint8_t *bytes, size_t len, uint8_t value)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != value)
			return false;
	}
	return true;
}

/* Functions that fill one structure, as one type. */
typedef int (*fill_fn)(void *object, void *out, size_t size);

struct output {
	const char *name;
	fill_fn fill;
	void *object;
	size_t size, known; /* of this release; up to where the values stay the same */
};

static void
output_check(const struct output *o)
{
	uint8_t here[512], other[512];

	assert_true(o->size + MORE <= sizeof(here));
	memset(here, UNTOUCHED, sizeof(here));
	assert_int_equal(o->fill(o->object, here, o->size), 0);
	assert_true(all_bytes(here + o->size, MORE, UNTOUCHED));
	/* Shorter: what the program does not have is not written. */
	memset(other, UNTOUCHED, sizeof(other));
	assert_int_equal(o->fill(o->object, other, o->known), 0);
	assert_memory_equal(other, here, o->known);
	assert_true(all_bytes(other + o->known, MORE, UNTOUCHED));
	/* Longer: what the library does not know is 0. */
	memset(other, UNTOUCHED, sizeof(other));
	assert_int_equal(o->fill(o->object, other, o->size + MORE), 0);
	assert_memory_equal(other, here, o->known);
	assert_true(all_bytes(other + o->size, MORE, 0));
	assert_true(all_bytes(other + o->size + MORE, MORE, UNTOUCHED));
}

TEST_WITH(outputs_of_other_releases, setup, teardown)
{
	const struct output outputs[] = {
		{"qp", (fill_fn)(void *)rocade_qp_info_sized, pair.a.qp[0],
			sizeof(struct rocade_qp_info),
			offsetof(struct rocade_qp_info, sq_unacked_ns)},
		{"srq", (fill_fn)(void *)rocade_srq_info_sized, pair.a.srq,
			sizeof(struct rocade_srq_info),
			offsetof(struct rocade_srq_info, limit_events)},
		{"cq", (fill_fn)(void *)rocade_cq_info_sized, pair.a.send_cq,
			sizeof(struct rocade_cq_info),
			offsetof(struct rocade_cq_info, error)},
		{"impairment", (fill_fn)(void *)rocade_port_impair_stats_sized,
			pair.a.port, sizeof(struct rocade_impair_stats),
			offsetof(struct rocade_impair_stats, corrupted)},
		{"impairment, sent", (fill_fn)(void *)rocade_port_impair_tx_stats_sized,
			pair.a.port, sizeof(struct rocade_impair_stats),
			offsetof(struct rocade_impair_stats, corrupted)},
	};

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		print_message("# %s\n", outputs[i].name);
		output_check(&outputs[i]);
	}
}

/* Rows have the program's size, too. */
TEST_WITH(rows_of_other_releases, setup, teardown)
{
	struct {
		struct rocade_neigh row;
		uint8_t more[MORE];
	} neighs[4];
	struct {
		struct rocade_peer row;
		uint8_t more[MORE];
	} peers[4];
	struct rocade_neigh neigh[4];
	struct rocade_peer peer[4];
	struct ibv_qp *qp = pair_qp_create(&pair.conf, &pair.a, 0);
	union ibv_gid other = pair.b.gid;
	unsigned n;

	/* A second neighbour and a second peer, which do not answer. */
	other.raw[15] ^= 0x40;
	assert_int_equal(rocade_port_resolve(pair.a.port, &other), EAGAIN);
	pair_to_init(qp);
	pair_to_rtr(&pair.conf, qp, &other, 7);
	n = rocade_port_neighs(pair.a.port, neigh, 4);
	assert_in_range(n, 2, 3);
	memset(neighs, UNTOUCHED, sizeof(neighs));
	assert_int_equal(rocade_port_neighs_sized(
				 pair.a.port, &neighs[0].row, 4, sizeof(neighs[0])),
		n);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(all_bytes(neighs[i].more, MORE, i < n ? 0 : UNTOUCHED));
		if (i < n)
			assert_memory_equal(neighs[i].row.gid.raw, neigh[i].gid.raw, 16);
	}
	n = rocade_port_peers(pair.a.port, peer, 4);
	assert_in_range(n, 2, 3);
	memset(peers, UNTOUCHED, sizeof(peers));
	assert_int_equal(
		rocade_port_peers_sized(pair.a.port, &peers[0].row, 4, sizeof(peers[0])),
		n);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(all_bytes(peers[i].more, MORE, i < n ? 0 : UNTOUCHED));
		if (i < n)
			assert_memory_equal(peers[i].row.gid.raw, peer[i].gid.raw, 16);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A setting that this library does not know is refused unless it is 0. */
TEST_WITH(impairment_of_another_release, setup, teardown)
{
	struct {
		struct rocade_impair impair;
		uint64_t more;
	} later = {.impair = {.loss_ppm = 0}, .more = 1};

	assert_int_equal(
		rocade_port_impair_sized(pair.a.port, &later.impair, sizeof(later)),
		EINVAL);
	assert_int_equal(
		rocade_port_impair_tx_sized(pair.a.port, &later.impair, sizeof(later)),
		EINVAL);
	later.more = 0;
	assert_int_equal(
		rocade_port_impair_sized(pair.a.port, &later.impair, sizeof(later)), 0);
	assert_int_equal(
		rocade_port_impair_tx_sized(pair.a.port, &later.impair, sizeof(later)),
		0);
	assert_int_equal(rocade_port_impair_sized(pair.a.port, &later.impair,
				 offsetof(struct rocade_impair, seed)),
		EINVAL);
}

/* The thread writes all frames although the program asks for fewer counters. */
TEST_WITH(dump_counters_of_another_release, setup, teardown)
{
	char file[] = "/tmp/rocade-sized-XXXXXX";
	struct rocade_port_dump_conf conf = {.size = sizeof(conf), .file = file};
	struct rocade_port_dump_stats stats;
	struct ibv_wc wc;
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rocade_port_dump(pair.a.port, &conf), 0);
	assert_int_equal(pair_send(&pair.a, 0, 1, 0, 64, 0), 0);
	assert_int_equal(pair_post_srq(&pair.b, 1, 0, 64), 0);
	pair_drain(&pair);
	stats.lost = 77;
	assert_int_equal(rocade_port_dump_stop_sized(pair.a.port, &stats,
				 offsetof(struct rocade_port_dump_stats, lost)),
		0);
	assert_true(stats.written >= 2);
	assert_int_equal(stats.lost, 77);
	assert_int_equal(rocade_port_dump_stop_sized(pair.a.port, NULL, 0), ENOENT);
	assert_int_equal(unlink(file), 0);
	pair_poll_cq(&pair, pair.b.recv_cq, &wc, 1);
}
