/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connections are of one process, and that finding them does not look at all others. */
#include "server_fixture.h"

#include "server/conn_process.h"

#define OTHERS 1000

static struct rocade_daemon daemon_of_all;
static unsigned calls;
static const struct conn *last;

static void
call_count(const struct conn *conn)
{
	calls++;
	last = conn;
}

static void
conn_shows(struct conn *conn, uint32_t type, uint64_t high, uint64_t low)
{
	const uint64_t key[2] = {high, low};
	struct sw_request req = {.type = type};

	conn->daemon = &daemon_of_all;
	memcpy(req.sgid, key, sizeof(key));
	conn_process_take(conn, &req);
}

static unsigned
each_count(const struct conn *conn)
{
	calls = 0;
	conn_process_each(conn, call_count);
	return calls;
}

TEST(one_process_of_many)
{
	static struct conn others[OTHERS];
	struct conn a = {.key = {0}}, b = {.key = {0}};
	const struct conn *other;
	unsigned looked_at = 0;

	for (uint64_t i = 0; i < OTHERS; i++)
		conn_shows(&others[i], SW_ATTACH, i + 1, 1);
	conn_shows(&a, SW_ATTACH, 7, 2);
	conn_shows(&b, SW_CM_OPEN, 7, 2);
	assert_true(conn_process_is_same(&a, &b));
	/* The same bucket, and half of the key. */
	assert_false(conn_process_is_same(&a, &others[6]));
	assert_int_equal(each_count(&a), 2);
	assert_int_equal(each_count(&others[6]), 1);
	assert_ptr_equal(last, &others[6]);
	LIST_FOREACH(other, &daemon_of_all.by_key[7], key_link)
	{
		looked_at++;
	}
	assert_true(looked_at < OTHERS / 100);

	conn_process_forget(&a);
	assert_int_equal(each_count(&b), 1);
	conn_process_forget(&b);
	for (unsigned i = 0; i < OTHERS; i++)
		conn_process_forget(&others[i]);
	for (unsigned i = 0; i < KEY_BUCKETS; i++)
		assert_true(LIST_EMPTY(&daemon_of_all.by_key[i]));
}

TEST(a_connection_without_a_key_is_a_process_of_its_own)
{
	struct conn a = {.key = {0}}, b = {.key = {0}};

	conn_shows(&a, SW_ATTACH, 0, 0);
	conn_shows(&b, SW_DEVICE_INFO, 5, 5);
	assert_false(conn_process_is_same(&a, &b));
	assert_true(conn_process_is_same(&a, &a));
	assert_int_equal(each_count(&a), 1);
	assert_int_equal(each_count(&b), 1);
	conn_process_forget(&a);
	conn_process_forget(&b);
}

TEST(the_first_key_counts)
{
	struct conn a = {.key = {0}};

	conn_shows(&a, SW_ATTACH, 1, 1);
	conn_shows(&a, SW_CM_OPEN, 2, 2);
	assert_int_equal(a.key[0], 1);
	assert_int_equal(each_count(&a), 1);
	conn_process_forget(&a);
	assert_int_equal(each_count(&a), 1);
}
