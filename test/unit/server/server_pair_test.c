/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of pairs: which client can write it and pays for it, and that nothing is left. */
#include <sys/stat.h>
#include <time.h>

#include "server_pair_fixture.h"
#include "lingering.h"
#include "../../lib/emulated.h"

TEST(parts_have_one_writer)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct two t;
	size_t size;
	void *own[2];
	int fds[2], peer;

	SKIP_IF_EMULATED();
	two_open(&t);
	size = part_size(&t);
	two_connect(&t);
	for (unsigned i = 0; i < 2; i++) {
		fds[i] = expect_event(&t, i, 0, SW_PAIR_OWN);
		own[i] = own_map(&t, fds[i], 0);
		if (i == 0)
			(void)expect_event(&t, 0, SW_PAIR_OWN, SW_PAIR_NONE);
	}
	peer = expect_event(&t, 1, SW_PAIR_OWN, SW_PAIR_PEER);
	strcpy(own[0], "from 0");
	assert_int_equal(fcntl(peer, F_GET_SEALS),
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	assert_ptr_equal(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, peer, 0),
		MAP_FAILED);
	assert_int_equal(pwrite(peer, "x", 1, 0), -1);
	assert_int_equal(fallocate(peer, punch, 0, 4096), -1);
	assert_int_equal(madvise(own[0], size, MADV_REMOVE), -1);
	assert_int_equal(errno, EPERM);
	munmap(own[1], size);
	own[1] = memory_map(peer, size, PROT_READ);
	assert_string_equal(own[1], "from 0");
	for (unsigned i = 0; i < 2; i++) {
		munmap(own[i], size);
		close(fds[i]);
	}
	close(peer);
	two_close(&t);
}

TEST(pages_are_allocated_by_their_writer)
{
	struct two t;
	void *own;
	int fd;

	SKIP_IF_EMULATED();
	two_open(&t);
	two_connect(&t);
	fd = expect_event(&t, 0, 0, SW_PAIR_OWN);
	own = own_map(&t, fd, 4096);
	assert_int_equal(expect_event(&t, 0, SW_PAIR_OWN, SW_PAIR_END), -1);
	munmap(own, part_size(&t));
	close(fd);
	two_close(&t);
}

static uint32_t
used(const struct two *t, enum account_kind kind)
{
	return t->b.d->accounts.limits[kind].used;
}

/* A part each, and two descriptors until both have mapped what they need and these are closed. */
TEST(pair_is_charged_until_it_ends)
{
	uint32_t kib, descriptors, part;
	struct two t;

	SKIP_IF_EMULATED();
	two_open(&t);
	part = (uint32_t)(part_size(&t) / 1024);
	kib = used(&t, ACCOUNT_memory_kib);
	descriptors = used(&t, ACCOUNT_descriptors);
	two_connect(&t);
	assert_int_equal(used(&t, ACCOUNT_memory_kib), kib + 2 * part);
	assert_int_equal(used(&t, ACCOUNT_descriptors), descriptors + 4);
	for (unsigned i = 0; i < 2; i++) {
		int fd = expect_event(&t, i, 0, SW_PAIR_OWN);

		munmap(own_map(&t, fd, 0), part_size(&t));
		close(fd);
		if (i == 0)
			(void)expect_event(&t, 0, SW_PAIR_OWN, SW_PAIR_NONE);
	}
	close(expect_event(&t, 1, SW_PAIR_OWN, SW_PAIR_PEER));
	close(expect_event(&t, 0, 0, SW_PAIR_PEER));
	(void)expect_event(&t, 0, SW_PAIR_PEER, SW_PAIR_NONE);
	(void)expect_event(&t, 1, SW_PAIR_PEER, SW_PAIR_NONE);
	assert_int_equal(used(&t, ACCOUNT_descriptors), descriptors);
	(void)expect_event(&t, 0, SW_PAIR_FAILED, SW_PAIR_END);
	(void)expect_event(&t, 0, SW_PAIR_END, SW_PAIR_NONE);
	assert_int_equal(used(&t, ACCOUNT_memory_kib), kib + part);
	(void)expect_event(&t, 1, 0, SW_PAIR_END);
	(void)expect_event(&t, 1, SW_PAIR_END, SW_PAIR_NONE);
	assert_int_equal(used(&t, ACCOUNT_memory_kib), kib);
	two_close(&t);
}

/* Without room the QPs are connected all the same. */
TEST(pair_without_room_is_refused)
{
	static const enum account_kind kinds[] = {
		ACCOUNT_memory_kib, ACCOUNT_descriptors};

	for (unsigned i = 0; i < 2 * RTE_DIM(kinds); i++) {
		enum account_kind kind = kinds[i / 2];
		struct account_limit *limit;
		uint32_t before, capacity;
		struct sw_stats stats;
		struct two t;

		two_open(&t);
		limit = &t.b.d->accounts.limits[kind];
		before = limit->used;
		capacity = limit->shared;
		/* Room for one side, or for none. */
		limit->shared = before;
		if (i % 2 == 0)
			limit->shared += kind == ACCOUNT_descriptors
						 ? 2
						 : (uint32_t)(part_size(&t) / 1024);
		two_connect(&t);
		assert_int_equal(limit->used, before);
		sw_client_stats_read(TAILQ_LAST(&t.b.d->sw->clients, sw_clients), &stats);
		assert_int_equal(stats.pairs_refused, 1);
		assert_int_equal(expect_event(&t, 0, 0, SW_PAIR_NONE), -1);
		limit->shared = capacity;
		two_close(&t);
	}
}

/* Another process could map it for writing, or remove pages. */
TEST(part_without_seals_ends_the_pair)
{
	struct two t;
	int fd;

	SKIP_IF_EMULATED();
	two_open(&t);
	two_connect(&t);
	fd = expect_event(&t, 0, 0, SW_PAIR_OWN);
	assert_int_equal(fallocate(fd, 0, 0, (off_t)part_size(&t)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	assert_int_equal(expect_event(&t, 0, SW_PAIR_OWN, SW_PAIR_END), -1);
	close(fd);
	two_close(&t);
}

/* Asks once more, without saying that it has done what it was asked for. */
static void
expect_already(struct two *t, unsigned c)
{
	struct sw_request req = {.type = SW_PAIR};

	assert_int_equal(call(t, c, req, NULL).error, EALREADY);
}

/* No descriptor comes along then, however often it asks. */
TEST(descriptors_are_given_once)
{
	struct stat st;
	struct two t;
	int fd;

	SKIP_IF_EMULATED();
	two_open(&t);
	two_connect(&t);
	for (unsigned i = 0; i < 2; i++) {
		fd = expect_event(&t, i, 0, SW_PAIR_OWN);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, part_size(&t));
		assert_int_equal(st.st_blocks, 0);
		for (unsigned again = 0; again < 3; again++)
			expect_already(&t, i);
		munmap(own_map(&t, fd, 0), part_size(&t));
		close(fd);
		fd = expect_event(&t, i, SW_PAIR_OWN, i == 0 ? 0 : SW_PAIR_PEER);
	}
	expect_already(&t, 1);
	close(fd);
	(void)expect_event(&t, 1, SW_PAIR_PEER, SW_PAIR_NONE);
	close(expect_event(&t, 0, 0, SW_PAIR_PEER));
	expect_already(&t, 0);
	two_close(&t);
}

static void
expect_pairs(struct two *t, unsigned c, const char *text)
{
	struct sw_request req = {.type = SW_STATUS,
		.qpn = SW_STATUS_CLIENT,
		.dest_qpn = t->c[c].reply.client_id};
	static struct sw_data_reply reply;

	assert_int_equal(client_fetch(&t->b, t->c[c].fd, &req, &reply), 0);
	reply.bytes[reply.len] = '\0';
	assert_non_null(strstr((char *)reply.bytes, text));
}

TEST(pairs_are_shown_and_can_be_refused)
{
	static const struct {
		uint32_t pairs, no_pairs;
		const char *shown;
	} rows[] = {{1, 0, "\"pairs\": 1,"}, {1, 1, "\"pairs\": 0,"},
		{0, 0, "\"pairs\": 0,"}};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		struct two t;

		two_open_with(&t, rows[i].pairs, rows[i].no_pairs);
		two_connect(&t);
		for (unsigned c = 0; c < 2; c++) {
			expect_pairs(&t, c, rows[i].shown);
			assert_int_equal(t.c[c].region.daemon->pair_events,
				rows[i].pairs != 0 && rows[i].no_pairs == 0);
		}
		two_close(&t);
	}
}

/* The life of a pair. */
static const struct {
	unsigned client;
	uint32_t done, next;
} steps[] = {
	{0, SW_PAIR_NONE, SW_PAIR_OWN},
	{0, SW_PAIR_OWN, SW_PAIR_NONE},
	{1, SW_PAIR_NONE, SW_PAIR_OWN},
	{1, SW_PAIR_OWN, SW_PAIR_PEER},
	{0, SW_PAIR_NONE, SW_PAIR_PEER},
	{0, SW_PAIR_PEER, SW_PAIR_NONE},
	{1, SW_PAIR_PEER, SW_PAIR_NONE},
	{1, SW_PAIR_FAILED, SW_PAIR_END},
	{1, SW_PAIR_END, SW_PAIR_NONE},
	{0, SW_PAIR_NONE, SW_PAIR_END},
	{0, SW_PAIR_END, SW_PAIR_NONE},
};

static void
steps_make(struct two *t, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		int fd = expect_event(t, steps[i].client, steps[i].done, steps[i].next);

		if (steps[i].next == SW_PAIR_OWN)
			munmap(own_map(t, fd, 0), part_size(t));
		if (fd >= 0)
			close(fd);
	}
}

/* After this number of steps: the client has been told of the pair, and does not know its end yet. */
static bool
knows_pair(unsigned client, unsigned count)
{
	return client == 0 ? count >= 1 && count <= 10 : count >= 3 && count <= 8;
}

/* The descriptors are closed, and the part of the other one is charged until it knows. */
static void
client_ends(unsigned count, unsigned dead)
{
	unsigned alive = 1 - dead;
	struct two t;
	uint32_t kib, part;

	two_open(&t);
	kib = share_kib(&t.c[0].region.geom);
	part = (uint32_t)(part_size(&t) / 1024);
	two_connect(&t);
	steps_make(&t, count);
	client_detach(&t.b, &t.c[dead]);
	assert_int_equal(used(&t, ACCOUNT_descriptors), 2 + SW_ATTACH_FDS);
	if (knows_pair(alive, count)) {
		assert_int_equal(used(&t, ACCOUNT_memory_kib), kib + part);
		(void)expect_event(&t, alive, 0, SW_PAIR_END);
		(void)expect_event(&t, alive, SW_PAIR_END, SW_PAIR_NONE);
	}
	assert_int_equal(used(&t, ACCOUNT_memory_kib), kib);
	(void)expect_event(&t, alive, 0, SW_PAIR_NONE);
	client_detach(&t.b, &t.c[alive]);
	sw_ended_free(t.b.d->sw);
	assert_int_equal(used(&t, ACCOUNT_memory_kib), 0);
	fixture_close(&t.b);
}

/* Takes the ends of the connection by which the clients wake each other. */
static void
ends_take(struct two *t, int ends[2])
{
	struct sw_request req = {.type = SW_PAIR};
	int fds[SW_ATTACH_FDS];
	struct sw_reply reply;

	for (unsigned i = 0; i < 2; i++) {
		assert_true(client_call(&t->b, t->c[i].fd, &req, &reply, fds));
		assert_int_equal(reply.qpn, SW_PAIR_OWN);
		close(fds[0]);
		ends[i] = fds[1];
	}
}

/* One of two clients allows descriptors in the queue of its end, as older kernels do, and gives up the end
 * with one in it. The user's thread closes it, and what the daemon has given to both. */
TEST(wake_connection_does_not_stop_the_daemon)
{
	const int on = 1;
	struct lingering l;
	struct two t;
	int ends[2];

	SKIP_IF_EMULATED();
	two_open(&t);
	two_connect(&t);
	ends_take(&t, ends);
	t.b.closers_wait = true;
	lingering_open(&l);
	(void)setsockopt(ends[1], SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
	assert_int_equal(lingering_send(&l, ends[0], "", 1), 1);
	close(ends[1]);
	close(ends[0]);
	client_detach(&t.b, &t.c[0]);
	assert_true(passed_fds_pending(&t.b.d->passed) > 0);
	lingering_end(&t.b, &l);
	client_detach(&t.b, &t.c[1]);
	sw_ended_free(t.b.d->sw);
	fixture_close(&t.b);
}

TEST(partner_refuses_descriptors)
{
	struct lingering l;
	struct two t;
	int ends[2];

	SKIP_IF_EMULATED();
	two_open(&t);
	two_connect(&t);
	ends_take(&t, ends);
	if (!t.b.d->passed.refused) {
		two_close(&t);
		skip(); /* an older kernel */
	}
	for (unsigned i = 0; i < 2; i++) {
		lingering_open(&l);
		assert_int_equal(lingering_send(&l, ends[i], "", 1), -1);
		assert_int_equal(errno, EPERM);
		close(l.end);
		close(ends[i]);
	}
	two_close(&t);
}

TEST(clients_end_at_any_time)
{
	SKIP_IF_EMULATED();
	for (unsigned count = 0; count <= RTE_DIM(steps); count++) {
		struct two t;

		client_ends(count, 0);
		client_ends(count, 1);
		/* both, without a word */
		two_open(&t);
		two_connect(&t);
		steps_make(&t, count);
		two_close(&t);
	}
}
