/* SPDX-License-Identifier: BSD-3-Clause */
/* Structures of a program that was built with the headers of another release: shorter or longer than
 * those of this library. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocade/cm.h>
#include <rocade/latencies.h>
#include <rocade/mbuf.h>
#include <rocade/shared.h>

#include "case.h"
#include "verbs/verbs_port.h"
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

/* Counters are rows of the program's size, too. */
TEST_WITH(counters_of_other_releases, setup, teardown)
{
	struct {
		struct rocade_stat row;
		uint8_t more[MORE];
	} later[128];
	struct rocade_stat now[128];
	struct {
		const char *name;
	} *earlier = calloc(128, sizeof(*earlier));
	unsigned n = rocade_port_stats(pair.a.port, 0, now, 128);

	assert_non_null(earlier);
	assert_in_range(n, 20, 127);
	memset(later, UNTOUCHED, sizeof(later));
	assert_int_equal(rocade_port_stats_sized(
				 pair.a.port, 0, &later[0].row, 128, sizeof(later[0])),
		n);
	assert_int_equal(rocade_port_stats_sized(pair.a.port, 0,
				 (struct rocade_stat *)earlier, 128, sizeof(*earlier)),
		n);
	for (unsigned i = 0; i < 128; i++) {
		assert_true(all_bytes(later[i].more, MORE, i < n ? 0 : UNTOUCHED));
		assert_ptr_equal(earlier[i].name, i < n ? now[i].name : NULL);
		if (i < n)
			assert_ptr_equal(later[i].row.name, now[i].name);
	}
	n = rocade_qp_stats(pair.a.qp[0], now, 128);
	assert_in_range(n, 2, 127);
	memset(later, UNTOUCHED, sizeof(later));
	assert_int_equal(
		rocade_qp_stats_sized(pair.a.qp[0], &later[0].row, 2, sizeof(later[0])),
		n);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(all_bytes(later[i].more, MORE, i < 2 ? 0 : UNTOUCHED));
		if (i < 2)
			assert_string_equal(later[i].row.name, now[i].name);
	}
	free(earlier);
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

/* Two configurations, as a program has them that was built with another release. */
static int
loop_open_with(size_t size, uint8_t last, struct rocade_port *ports[2])
{
	static const char *const addresses[2] = {"192.0.2.1/24", "192.0.2.2/24"};
	/* no byte more: ASan finds what reads on */
	uint8_t *bytes = calloc(2, size < sizeof(size) ? sizeof(size) : size);
	int rc;

	assert_non_null(bytes);
	for (unsigned i = 0; i < 2; i++) {
		struct rocade_port_conf conf = {
			.size = size, .addresses = addresses[i], .flight_recorder = true};

		memcpy(bytes + i * size, &conf,
			size < sizeof(conf) ? size : sizeof(conf));
	}
	if (last != 0)
		bytes[2 * size - 1] = last;
	rc = rocade_open_loop((const struct rocade_port_conf *)bytes, ports);
	free(bytes);
	return rc;
}

/* The sizes that are accepted. Two configurations have the stride of the program. */
TEST(port_configuration_of_another_release)
{
	const size_t now = sizeof(struct rocade_port_conf);
	const size_t accepted[] = {now, now + sizeof(size_t), now + 4096};
	const size_t refused[] = {0, sizeof(size_t), now - sizeof(size_t), now - 1,
		now + 4, now + 4096 + sizeof(size_t), 65536};
	struct rocade_port *ports[2];
	char why[64];

	for (unsigned i = 0; i < RTE_DIM(accepted); i++) {
		assert_int_equal(loop_open_with(accepted[i], 0, ports), 0);
		assert_int_equal(rocade_close_port(ports[0]), 0);
		assert_int_equal(rocade_close_port(ports[1]), 0);
	}
	for (unsigned i = 0; i < RTE_DIM(refused); i++) {
		assert_int_equal(loop_open_with(refused[i], 0, ports), EINVAL);
		snprintf(why, sizeof(why), "size: %zu is not sizeof", refused[i]);
		assert_ptr_equal(strstr(rocade_error(), why), rocade_error());
	}
	/* A member that the library does not know. */
	assert_int_equal(loop_open_with(accepted[1], 1, ports), EINVAL);
	assert_non_null(strstr(rocade_error(), "a member behind those"));
}

/* Nothing behind the program's array is read if the sides have different sizes. */
TEST(sides_of_different_sizes)
{
	for (unsigned longer = 0; longer < 2; longer++) {
		struct rocade_port_conf *conf = calloc(2, sizeof(*conf));
		struct rocade_port *ports[2];

		assert_non_null(conf);
		for (unsigned i = 0; i < 2; i++)
			conf[i] = (struct rocade_port_conf){
				.size = sizeof(*conf) + (i == longer) * sizeof(size_t),
				.addresses = i == 0 ? "192.0.2.1/24" : "192.0.2.2/24"};
		assert_int_equal(rocade_open_loop(conf, ports), EINVAL);
		assert_non_null(strstr(rocade_error(), "both must be the same"));
		free(conf);
	}
}

static char conf_text[128]; /* of conf_take.c, which is built into this program */

int
rocade_fail(int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(conf_text, sizeof(conf_text), fmt, args);
	va_end(args);
	return err;
}

/* Members that a program of an earlier release does not have are 0. */
TEST(a_structure_of_an_earlier_release)
{
	struct grown {
		size_t size;
		uint32_t first;
		uint64_t second, third;
	} out;
	const struct conf_kind kind = {.type = "struct grown",
		.within = "of: ",
		.known = sizeof(out),
		.least = SIZE_UP_TO(struct grown, first)};
	const uint64_t given[] = {1, 2, 3, 4};

	for (unsigned members = 2; members <= 4; members++) {
		memset(&out, UNTOUCHED, sizeof(out));
		assert_int_equal(
			conf_take(&kind, &out, given, members * sizeof(given[0])), 0);
		assert_int_equal(out.first, 2);
		assert_int_equal(out.second, members > 2 ? 3 : 0);
		assert_int_equal(out.third, members > 3 ? 4 : 0);
	}
	assert_int_equal(conf_take(&kind, &out, given, 8), EINVAL);
	assert_string_equal(
		conf_text, "of: size: 8 is not sizeof(struct grown), which is 32");
}

/* A structure that a port would refuse is not made of a text. */
TEST(congestion_control_of_another_release)
{
	struct {
		struct rocade_cc_conf cc;
		uint64_t more;
	} later;
	struct rocade_cc_conf untouched;

	memset(&untouched, UNTOUCHED, sizeof(untouched));
	for (size_t size = 0; size < sizeof(later.cc); size++) {
		memset(&later, UNTOUCHED, sizeof(later));
		assert_int_equal(
			rocade_cc_parse_sized("swift,target=50", &later.cc, size),
			EINVAL);
		assert_non_null(strstr(rocade_error(), "cc: size: "));
		assert_memory_equal(&later.cc, &untouched, sizeof(untouched));
	}
	assert_int_equal(
		rocade_cc_parse_sized("swift,target=50", &later.cc, sizeof(later)), 0);
	assert_int_equal(later.cc.size, sizeof(later));
	assert_int_equal(later.cc.target_us, 50);
	assert_int_equal(later.more, 0);
	assert_int_equal(rocade_cc_parse("swift", NULL), EINVAL);
	assert_non_null(strstr(rocade_error(), "no struct rocade_cc_conf given"));
}

TEST_WITH(no_structure_is_refused, setup, teardown)
{
	assert_int_equal(rocade_port_impair(pair.a.port, NULL), EINVAL);
	assert_string_equal(rocade_error(), "no struct rocade_impair given");
	assert_int_equal(rocade_port_impair_tx(pair.a.port, NULL), EINVAL);
	assert_int_equal(rocade_port_dump(pair.a.port, NULL), EINVAL);
	assert_string_equal(rocade_error(), "no configuration of the dump given");
}

#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
struct layout {
	const char *type;
	size_t size, padding; /* in a release; bytes of padding at its end then */
	size_t size_now;
	uint8_t used[512]; /* 0: padding now */
};

static struct layout
layout_of(const char *type, size_t size, size_t padding, const void *used, size_t now)
{
	struct layout row = {
		.type = type, .size = size, .padding = padding, .size_now = now};

	assert_true(now <= sizeof(row.used));
	memcpy(row.used, used, now);
	return row;
}

#define LAYOUT(name, bytes, padded)                                                      \
	({                                                                               \
		struct name all;                                                         \
		memset(&all, 0xFF, sizeof(all));                                         \
		__builtin_clear_padding(&all);                                           \
		layout_of(#name, bytes, padded, &all, sizeof(all));                      \
	})

/*
 * A program may leave the padding of its structures as it is, so no later member may lie there. And
 * later members have no padding, because an earlier library takes it for members that it does not know.
 * A structure that gets members gets a row behind the one that it has, once that was in a release.
 */
TEST(no_member_lies_in_the_padding_of_a_release)
{
	const struct layout rows[] = {
		LAYOUT(rocade_cc_conf, 24, 0),
		LAYOUT(rocade_port_conf, 104, 0),
		LAYOUT(rocade_stat, 24, 0),
		LAYOUT(rocade_qp_info, 64, 0),
		LAYOUT(rocade_srq_info, 32, 7),
		LAYOUT(rocade_cq_info, 12, 3),
		LAYOUT(rocade_neigh, 40, 0),
		LAYOUT(rocade_peer, 104, 0),
		LAYOUT(rocade_latency, 216, 0),
		LAYOUT(rocade_slow_request, 136, 0),
		LAYOUT(rocade_impair, 24, 0),
		LAYOUT(rocade_impair_stats, 32, 0),
		LAYOUT(rocade_port_dump_conf, 32, 2),
		LAYOUT(rocade_port_dump_stats, 16, 0),
		LAYOUT(rocade_shared_conf, 48, 7),
		LAYOUT(rocade_shared_stats, 32, 4),
		LAYOUT(rocade_srq_mbufs, 24, 4),
		LAYOUT(rocade_cm_param, 40, 4),
		LAYOUT(rocade_cm_ud_param, 32, 7),
		LAYOUT(rocade_cm_event, 80, 4),
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		const struct layout *row = &rows[i];
		bool last = i + 1 == RTE_DIM(rows) || strcmp(row->type, row[1].type) != 0;
		size_t padding = 0;

		while (padding < row->size && row->used[row->size - 1 - padding] == 0)
			padding++;
		if (last ? row->size_now != row->size : row->size_now < row->size)
			fail_msg("struct %s: %zu bytes, its row has %zu", row->type,
				row->size_now, row->size);
		if (padding != row->padding)
			fail_msg("struct %s: of %zu bytes the last %zu are padding, not "
				 "%zu",
				row->type, row->size, padding, row->padding);
		for (size_t at = row->size; at < row->size_now; at++) {
			if (row->used[at] == 0)
				fail_msg("struct %s: padding at %zu, behind members of a "
					 "later release",
					row->type, at);
		}
	}
}
#endif
