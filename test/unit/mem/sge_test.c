/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "case.h"
#include "mem/sge.h"

#include "../rand.h"

#define PD 5
#define ARENA 32768
#define SGES 16
#define ROUNDS 20000
#define WRITABLE IBV_ACCESS_LOCAL_WRITE
#define GIB2 (UINT64_C(1) << 31)

static struct key_table table;
static uint8_t arena[ARENA];

static int
table_setup(void **state)
{
	key_table_init(&table, &(struct random_key){{1, 1}});
	return 0;
}

static int
table_teardown(void **state)
{
	key_table_fini(&table);
	return 0;
}

static uint32_t
key_new(uint64_t va, void *host, uint64_t len, unsigned access)
{
	uint32_t key = 0;

	assert_int_equal(key_alloc(&table, PD, va, host, len, access, &key), 0);
	return key;
}

static void
key_drop(uint32_t key)
{
	assert_int_equal(key_free(&table, key), 0);
}

/* ---- Random lists of SGEs, compared byte by byte ---- */

/* Three regions over the arena: all of it at its own address, its upper half at address
 * 0, and all of it read-only just below 2^64. */
enum { WHOLE, HALF, READ_ONLY, REGIONS };

static struct sweep {
	uint64_t seed;
	uint64_t rand;
	unsigned round;
	uint32_t keys[REGIONS];
	struct sge sge[SGES];
	uint32_t num;
	uint32_t bad; /* index of the read-only SGE; num: none */
	uint32_t total;
	uint32_t flat[SGES * 2048];  /* offset in the arena of byte i of the list */
	uint32_t owner[SGES * 2048]; /* index of its SGE */
	uint8_t shadow[ARENA];
	uint8_t packet[SGES * 2048];
	uint8_t want[SGES * 2048];
} sweep;

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition))                                                        \
			fail_msg("seed %" PRIu64 ", round %u: %s", sweep.seed,           \
				sweep.round, #condition);                                \
	} while (0)

static void
sweep_open(void)
{
	const char *given = getenv("ROCADE_SEED");

	sweep.seed = given != NULL ? strtoull(given, NULL, 0) : 3;
	sweep.rand = sweep.seed;
	sweep.keys[WHOLE] = key_new((uintptr_t)arena, arena, ARENA, WRITABLE);
	sweep.keys[HALF] = key_new(0, arena + ARENA / 2, ARENA / 2, WRITABLE);
	sweep.keys[READ_ONLY] = key_new(-(uint64_t)ARENA, arena, ARENA, 0);
}

#define LIST(sge, num, pd)                                                               \
	(&(struct sge_cursor){&table, sge, num, pd, &(struct sge_pos){0}})

/* sge_gather() and sge_scatter() of a list from *pos on. */
static int
gather(const struct sge *sge, unsigned num, struct sge_pos *pos, void *dst, uint32_t len)
{
	struct sge_cursor c = {&table, sge, num, PD, pos};

	return sge_gather(&c, dst, len, NULL);
}

static int
scatter(const struct sge *sge, unsigned num, struct sge_pos *pos, void *src, uint32_t len)
{
	struct sge_cursor c = {&table, sge, num, PD, pos};

	return sge_scatter(&c, src, len);
}

static void
sweep_close(void)
{
	for (unsigned i = 0; i < REGIONS; i++)
		key_drop(sweep.keys[i]);
}

/* One SGE of len bytes at offset `at` of the arena, through one of the regions. */
static struct sge
sge_make(uint32_t at, uint32_t len, bool writable)
{
	struct sge sge = {
		.addr = (uintptr_t)arena + at, .len = len, .lkey = sweep.keys[WHOLE]};

	if (!writable) {
		sge.addr = -(uint64_t)ARENA + at;
		sge.lkey = sweep.keys[READ_ONLY];
	} else if (at >= ARENA / 2 && rand_below(&sweep.rand, 2)) {
		sge.addr = at - ARENA / 2;
		sge.lkey = sweep.keys[HALF];
	}
	if (len == 0 && rand_below(&sweep.rand, 2))
		sge.lkey = 0xDEAD; /* not checked for an empty SGE */
	return sge;
}

/* A new random list: lengths of all magnitudes and 0, at random offsets, which may
 * overlap. */
static void
sweep_list(bool one_bad)
{
	sweep.num = 1 + rand_below(&sweep.rand, SGES);
	sweep.bad = one_bad ? rand_below(&sweep.rand, sweep.num) : sweep.num;
	sweep.total = 0;
	for (uint32_t i = 0; i < sweep.num; i++) {
		uint32_t len = rand_magnitude(&sweep.rand, 11);
		uint32_t at = rand_below(&sweep.rand, ARENA - len + 1);

		sweep.sge[i] = sge_make(at, len, i != sweep.bad);
		for (uint32_t j = 0; j < len; j++) {
			sweep.flat[sweep.total] = at + j;
			sweep.owner[sweep.total++] = i;
		}
	}
}

static void
arena_fill(void)
{
	for (size_t i = 0; i < ARENA; i += 8) {
		uint64_t word = rand_next(&sweep.rand);

		memcpy(arena + i, &word, 8);
	}
}

static bool
pos_equal(struct sge_pos a, struct sge_pos b)
{
	return a.index == b.index && a.offset == b.offset;
}

/* Number of bytes before a position, which may have more than one representation. */
static uint32_t
pos_offset(struct sge_pos pos)
{
	return (uint32_t)sge_total(sweep.sge, pos.index) + pos.offset;
}

/* Gathers the list in packets of random size, sometimes from a position that sge_seek()
 * returns. */
static void
gather_round(void)
{
	struct sge_pos pos = {0};
	uint32_t at = 0;

	while (at < sweep.total) {
		uint32_t len = RTE_MIN(rand_magnitude(&sweep.rand, 14), sweep.total - at);

		if (rand_below(&sweep.rand, 3) == 0)
			pos = sge_seek(sweep.sge, sweep.num, at);
		for (uint32_t i = 0; i < len; i++)
			sweep.want[i] = arena[sweep.flat[at + i]];
		sweep.packet[len] = 0xA5;
		CHECK(gather(sweep.sge, sweep.num, &pos, sweep.packet, len) == 0);
		CHECK(memcmp(sweep.packet, sweep.want, len) == 0);
		CHECK(len == sizeof(sweep.packet) || sweep.packet[len] == 0xA5);
		at += len;
		CHECK(pos_offset(pos) == at);
	}
}

TEST_WITH(random_gathers_agree_with_bytes, table_setup, table_teardown)
{
	sweep_open();
	arena_fill();
	for (sweep.round = 0; sweep.round < ROUNDS; sweep.round++) {
		/* A read-only region can be gathered from. */
		sweep_list(rand_below(&sweep.rand, 2));
		gather_round();
	}
	sweep_close();
}

/* Whether bytes [at, at + len) of the list include bytes of the read-only SGE. */
static bool
includes_read_only(uint32_t at, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		if (sweep.owner[at + i] == sweep.bad)
			return true;
	}
	return false;
}

static void
scatter_round(unsigned *refused)
{
	struct sge_pos pos = {0}, before;
	uint32_t at = 0;

	memcpy(sweep.shadow, arena, ARENA);
	while (at < sweep.total) {
		uint32_t len = RTE_MIN(rand_magnitude(&sweep.rand, 14), sweep.total - at);
		int rc;

		for (uint32_t i = 0; i < len; i++)
			sweep.packet[i] = (uint8_t)rand_next(&sweep.rand);
		if (rand_below(&sweep.rand, 3) == 0)
			pos = sge_seek(sweep.sge, sweep.num, at);
		before = pos;
		rc = scatter(sweep.sge, sweep.num, &pos, sweep.packet, len);
		if (includes_read_only(at, len)) {
			CHECK(rc == -EACCES);
			CHECK(pos_equal(pos, before));
			pos = sge_seek(sweep.sge, sweep.num, at + len);
			(*refused)++;
		} else {
			CHECK(rc == 0);
			for (uint32_t i = 0; i < len; i++)
				sweep.shadow[sweep.flat[at + i]] = sweep.packet[i];
		}
		/* The whole arena: nothing outside the list was written either. */
		CHECK(memcmp(arena, sweep.shadow, ARENA) == 0);
		at += len;
		CHECK(pos_offset(pos) == at);
	}
	before = pos;
	CHECK(scatter(sweep.sge, sweep.num, &pos, sweep.packet, 1) == -EMSGSIZE);
	CHECK(pos_equal(pos, before));
}

TEST_WITH(random_scatters_agree_with_bytes, table_setup, table_teardown)
{
	unsigned refused = 0;

	sweep_open();
	arena_fill();
	for (sweep.round = 0; sweep.round < ROUNDS / 4; sweep.round++) {
		sweep_list(rand_below(&sweep.rand, 4) == 0);
		scatter_round(&refused);
	}
	assert_in_range(refused, 100, UINT32_MAX);
	sweep_close();
}

/* ---- One rule at a time. ---- */

TEST_WITH(refused_gather_changes_nothing, table_setup, table_teardown)
{
	uint8_t mem[32] = {1}, dst[32];
	uint32_t key = key_new(0, mem, 32, 0);
	struct sge sge[2] = {{0, 16, key}, {16, 16, key ^ 1}};
	struct sge_pos pos = {0};

	assert_int_equal(gather(sge, 2, &pos, dst, 32), -EACCES);
	assert_int_equal(sge_gather(LIST(sge, 1, PD + 1), dst, 16, NULL), -EACCES);
	sge[0].addr = 1;
	assert_int_equal(gather(sge, 2, &pos, dst, 17), -EACCES);
	sge[0].addr = 20;
	assert_int_equal(gather(sge, 2, &pos, dst, 16), -EACCES);
	assert_true(pos_equal(pos, (struct sge_pos){0}));
	/* The bytes in range can be gathered. */
	assert_int_equal(gather(sge, 2, &pos, dst, 12), 0);
	key_drop(key);
}

TEST_WITH(region_gone_between_packets, table_setup, table_teardown)
{
	uint8_t mem[32] = {0}, packet[16];
	uint32_t key = key_new(0, mem, 32, IBV_ACCESS_LOCAL_WRITE);
	struct sge sge = {0, 32, key};
	struct sge_pos pos = {0};

	memset(packet, 7, sizeof(packet));
	assert_int_equal(scatter(&sge, 1, &pos, packet, 16), 0);
	key_drop(key);
	assert_int_equal(scatter(&sge, 1, &pos, packet, 16), -EACCES);
	assert_int_equal(gather(&sge, 1, &pos, packet, 16), -EACCES);
	assert_int_equal(mem[15], 7);
	assert_int_equal(mem[16], 0);
}

TEST_WITH(empty_sges_need_no_key, table_setup, table_teardown)
{
	struct sge sge[2] = {{1, 0, 0xDEAD}, {UINT64_MAX, 0, 0}};
	struct sge_pos pos = {0};
	uint8_t byte = 1;

	assert_int_equal(sge_check(LIST(sge, 2, PD), IBV_ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(sge_total(sge, 2), 0);
	assert_int_equal(sge_total(NULL, 0), 0);
	assert_int_equal(gather(sge, 2, &pos, NULL, 0), 0);
	assert_int_equal(scatter(sge, 2, &pos, NULL, 0), 0);
	assert_int_equal(gather(NULL, 0, &pos, NULL, 0), 0);
	assert_int_equal(scatter(NULL, 0, &pos, NULL, 0), 0);
	assert_int_equal(scatter(NULL, 0, &pos, &byte, 1), -EMSGSIZE);
	assert_int_equal(scatter(sge, 2, &pos, &byte, 1), -EMSGSIZE);
	pos = sge_seek(NULL, 0, 0);
	assert_true(pos_equal(pos, (struct sge_pos){0}));
}

TEST_WITH(check_covers_whole_sges, table_setup, table_teardown)
{
	uint8_t mem[32];
	uint32_t key = key_new(0, mem, 32, 0);
	struct sge sge[3] = {{0, 32, key}, {32, 0, key}, {31, 1, key}};

	assert_int_equal(sge_check(LIST(sge, 3, PD), 0), 0);
	assert_int_equal(sge_check(LIST(sge, 3, PD), IBV_ACCESS_LOCAL_WRITE), -EACCES);
	assert_int_equal(sge_check(LIST(sge, 3, PD + 1), 0), -EACCES);
	sge[2].len = 2;
	assert_int_equal(sge_check(LIST(sge, 3, PD), 0), -EACCES);
	assert_int_equal(sge_check(LIST(sge, 2, PD), 0), 0);
	key_drop(key);
}

TEST_WITH(later_piece_of_overlap_wins, table_setup, table_teardown)
{
	uint8_t mem[8] = {0};
	uint32_t key = key_new(0, mem, 8, IBV_ACCESS_LOCAL_WRITE);
	struct sge sge[2] = {{0, 6, key}, {2, 6, key}};
	struct sge_pos pos = {0};

	assert_int_equal(scatter(sge, 2, &pos, (uint8_t[]){"abcdefABCDEF"}, 12), 0);
	assert_memory_equal(mem, "abABCDEF", 8);
	key_drop(key);
}

/* An SGE across 2^64 does not go on at the region at address 0. */
TEST_WITH(addresses_do_not_wrap, table_setup, table_teardown)
{
	uint8_t low[16] = {0}, high[16] = {0}, packet[32] = {0};
	uint32_t key = key_new(0, low, 16, IBV_ACCESS_LOCAL_WRITE);
	uint32_t top = key_new(-UINT64_C(16), high, 16, IBV_ACCESS_LOCAL_WRITE);
	struct sge sge = {-UINT64_C(16), 32, key};
	struct sge_pos pos = {0, 16};

	assert_int_equal(scatter(&sge, 1, &pos, packet, 16), -EACCES);
	assert_int_equal(gather(&sge, 1, &pos, packet, 16), -EACCES);
	assert_int_equal(sge_check(LIST(&sge, 1, PD), 0), -EACCES);
	sge.lkey = top;
	assert_int_equal(scatter(&sge, 1, &pos, packet, 1), -EACCES);
	pos = (struct sge_pos){0};
	assert_int_equal(scatter(&sge, 1, &pos, packet, 16), 0);
	pos = (struct sge_pos){0, 8};
	assert_int_equal(gather(&sge, 1, &pos, packet, 9), -EACCES);
	key_drop(key);
	key_drop(top);
}

/* The maximum message length in one SGE and in 16: only the edges are accessed. */
TEST_WITH(lengths_up_to_2_to_31, table_setup, table_teardown)
{
	const uint64_t base = UINT64_C(1) << 40;
	uint8_t *mem = mmap(NULL, GIB2 + 4096, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t key;
	uint8_t packet[4096], back[4096];
	struct sge sge[SGES];
	struct sge_pos pos;

	assert_ptr_not_equal(mem, MAP_FAILED);
	key = key_new(base, mem, GIB2, IBV_ACCESS_LOCAL_WRITE);
	for (unsigned i = 0; i < SGES; i++)
		sge[i] = (struct sge){base, (uint32_t)GIB2, key};
	memset(packet, 0x5A, sizeof(packet));

	assert_int_equal(sge_total(sge, SGES), GIB2 * SGES);
	assert_int_equal(sge_check(LIST(sge, SGES, PD), IBV_ACCESS_LOCAL_WRITE), 0);
	/* Across the boundary between two such SGEs. */
	pos = sge_seek(sge, SGES, 7 * GIB2 - 96);
	assert_true(pos_equal(pos, (struct sge_pos){6, (uint32_t)GIB2 - 96}));
	assert_int_equal(scatter(sge, SGES, &pos, packet, 4096), 0);
	assert_true(pos_equal(pos, (struct sge_pos){7, 4000}));
	assert_int_equal(mem[GIB2 - 97], 0);
	assert_memory_equal(mem + GIB2 - 96, packet, 96);
	assert_memory_equal(mem, packet, 4000);
	assert_int_equal(mem[4000], 0);
	assert_int_equal(mem[GIB2], 0);
	pos = sge_seek(sge, SGES, 7 * GIB2 - 96);
	assert_int_equal(gather(sge, SGES, &pos, back, 4096), 0);
	assert_memory_equal(back, packet, 4096);
	/* The last bytes of the list, and nothing beyond. */
	pos = sge_seek(sge, SGES, SGES * GIB2 - 4096);
	assert_int_equal(scatter(sge, SGES, &pos, packet, 4096), 0);
	assert_memory_equal(mem + GIB2 - 4096, packet, 4096);
	assert_int_equal(scatter(sge, SGES, &pos, packet, 1), -EMSGSIZE);
	/* One byte more than the region has. */
	sge[0].len++;
	assert_int_equal(sge_check(LIST(sge, 1, PD), 0), -EACCES);
	pos = (struct sge_pos){0, (uint32_t)GIB2 - 4095};
	assert_int_equal(scatter(sge, SGES, &pos, packet, 4096), -EACCES);

	key_drop(key);
	assert_int_equal(munmap(mem, GIB2 + 4096), 0);
}

/* A receive SGE of 2^31 bytes over a small region: access to the bytes written is
 * checked, not to the whole SGE. */
TEST_WITH(long_sge_over_a_short_region, table_setup, table_teardown)
{
	uint8_t mem[64] = {0}, packet[65];
	uint32_t key = key_new(0, mem, 64, IBV_ACCESS_LOCAL_WRITE);
	struct sge sge[2] = {{0, (uint32_t)GIB2, key}, {0, UINT32_MAX, key}};
	struct sge_pos pos = {0};

	memset(packet, 9, sizeof(packet));
	assert_int_equal(scatter(sge, 1, &pos, packet, 65), -EACCES);
	assert_int_equal(mem[0], 0);
	assert_int_equal(scatter(sge, 1, &pos, packet, 64), 0);
	assert_memory_equal(mem, packet, 64);
	pos = sge_seek(sge, 2, GIB2 + UINT32_MAX - 1);
	assert_true(pos_equal(pos, (struct sge_pos){1, UINT32_MAX - 1}));
	assert_int_equal(scatter(sge, 2, &pos, packet, 1), -EACCES);
	assert_int_equal(scatter(sge, 2, &pos, packet, 2), -EMSGSIZE);
	key_drop(key);
}
