/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of ended clients is unmapped one mapping at a time, and charged until then. */
#include <stdint.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "await.h"
#include "base/base_alloc.h"
#include "base/common.h"
#include "case.h"
#include "server/ended_memory.h"

#define PAGE 4096

static struct accounts accounts;
static struct account *user;
static struct ended_memory all;
static struct passed_fds passed;

static int
setup(void **state)
{
	accounts_init(&accounts);
	accounts_limit(&accounts, ACCOUNT_memory_kib, 1 << 20, false);
	user = account_open(&accounts, 1000, 0);
	assert_non_null(user);
	passed_fds_init(&passed);
	ended_memory_init(&all, &passed);
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(ended_memory_deadline(&all), TIME_NEVER);
	assert_int_equal(user->held[ACCOUNT_memory_kib], 0);
	account_close(user);
	accounts_fini(&accounts);
	return 0;
}

/* Returns a mapping that is charged to the account. */
static struct mapping
mapping_create(struct account *account, size_t size)
{
	struct mapping m = {.size = size, .fd = -1};

	m.at = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(m.at != MAP_FAILED);
	assert_true(account_take(account, ACCOUNT_memory_kib, (uint32_t)(size / 1024)));
	return m;
}

static bool
is_mapped(const struct mapping *m)
{
	return msync(m->at, PAGE, MS_ASYNC) == 0;
}

TEST_WITH(mappings_are_unmapped_one_by_one, setup, teardown)
{
	struct mapping m[3];
	uint64_t now = NS_PER_SEC;

	for (unsigned i = 0; i < 3; i++) {
		m[i] = mapping_create(user, (i + 1) * PAGE);
		ended_memory_add(&all, &m[i], user, (uint32_t)(m[i].size / 1024));
	}
	for (unsigned i = 0; i < 3; i++) {
		assert_true(ended_memory_deadline(&all) <= now);
		assert_true(is_mapped(&m[i]));
		ended_memory_run(&all, now);
		assert_false(is_mapped(&m[i]));
		now += ENDED_MEMORY_NS - 1;
		ended_memory_run(&all, now); /* not due */
		assert_int_equal(user->held[ACCOUNT_memory_kib], i == 0 ? 5 * PAGE / 1024
								 : i == 1
									 ? 3 * PAGE / 1024
									 : 0);
		now++;
	}
}

/* The user may have ended all connections meanwhile. */
TEST_WITH(account_lives_until_the_last_one, setup, teardown)
{
	struct mapping m = mapping_create(user, PAGE), n = mapping_create(user, PAGE);

	ended_memory_add(&all, &m, user, PAGE / 1024);
	ended_memory_add(&all, &n, user, PAGE / 1024);
	assert_int_equal(user->holders, 3);
	ended_memory_run(&all, 0);
	assert_int_equal(user->holders, 2);
	ended_memory_free(&all);
	assert_int_equal(user->holders, 1);
	assert_false(is_mapped(&n));
}

/* Clients that come and go faster than memory is unmapped must not be refused. */
TEST_WITH(own_mappings_make_room, setup, teardown)
{
	struct account *other = account_open(&accounts, 1001, 0);
	struct mapping kept, m[5];

	assert_non_null(other);
	kept = mapping_create(other, PAGE);
	ended_memory_add(&all, &kept, other, PAGE / 1024);
	for (unsigned i = 0; i < RTE_DIM(m); i++) {
		m[i] = mapping_create(user, PAGE);
		ended_memory_add(&all, &m[i], user, PAGE / 1024);
	}
	accounts_limit(&accounts, ACCOUNT_memory_kib, 8 * PAGE / 1024, false);
	/* There is room. */
	assert_true(ended_memory_take(&all, user, PAGE / 1024));
	assert_true(is_mapped(&m[0]));
	/* Two make room, the user's oldest ones. */
	assert_true(ended_memory_take(&all, user, 3 * PAGE / 1024));
	assert_false(is_mapped(&m[0]));
	assert_false(is_mapped(&m[1]));
	assert_true(is_mapped(&m[2]));
	assert_int_equal(user->refused[ACCOUNT_memory_kib], 0);
	/* Three would, but one request unmaps no more than two. */
	assert_false(ended_memory_take(&all, user, 3 * PAGE / 1024));
	assert_int_equal(user->refused[ACCOUNT_memory_kib], 1);
	assert_true(is_mapped(&m[4]));
	assert_true(is_mapped(&kept));
	account_give(user, ACCOUNT_memory_kib, 4 * PAGE / 1024);
	ended_memory_free(&all);
	account_close(other);
}

/* A client that has not started: one part is not mapped yet. */
TEST_WITH(nothing_mapped_is_given_back_at_once, setup, teardown)
{
	assert_true(account_take(user, ACCOUNT_memory_kib, 7));
	ended_memory_add(&all, &(struct mapping){.size = 7 * 1024, .fd = -1}, user, 7);
	assert_int_equal(user->held[ACCOUNT_memory_kib], 0);
}

/* Returns whether the user's thread has closed all descriptors. */
static bool
closed_await(void)
{
	if (!awaited(passed_fds_pending(&passed) == 0))
		return false;
	passed_fds_collect(&passed);
	return true;
}

/* The client's locks go with the last close of the file, which the mapping keeps open, too. */
TEST_WITH(descriptor_is_closed_behind_its_mapping, setup, teardown)
{
	struct mapping m = {.size = PAGE, .fd = memfd_create("rocade", MFD_CLOEXEC)};

	accounts_limit(&accounts, ACCOUNT_descriptors, 1, false);
	assert_int_equal(ftruncate(m.fd, PAGE), 0);
	m.at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	assert_true(m.at != MAP_FAILED);
	assert_true(account_take(user, ACCOUNT_memory_kib, PAGE / 1024));
	ended_memory_add(&all, &m, user, PAGE / 1024);
	assert_int_equal(user->held[ACCOUNT_descriptors], 1);
	assert_int_equal(passed_fds_pending(&passed), 0);
	assert_true(fcntl(m.fd, F_GETFD) >= 0);
	/* The thread may get memory at the same address. */
	ended_memory_run(&all, 0);
	assert_int_equal(user->held[ACCOUNT_memory_kib], 0);
	assert_true(closed_await());
	assert_int_equal(fcntl(m.fd, F_GETFD), -1);
	assert_int_equal(user->held[ACCOUNT_descriptors], 0);
	/* and without a mapping */
	m = (struct mapping){.fd = memfd_create("rocade", MFD_CLOEXEC)};
	ended_memory_add(&all, &m, user, 0);
	assert_true(closed_await());
	assert_int_equal(fcntl(m.fd, F_GETFD), -1);
}
