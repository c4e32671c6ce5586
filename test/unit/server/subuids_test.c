/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of subordinate uids, and who pays for the processes that have them. */
#include <stdlib.h>

#include "server_fixture.h"

static char path[64];
static struct subuids subuids;

static void
file_read(const char *text)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/rocade-subuids.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	assert_int_equal(subuids_read(&subuids, path), 0);
	assert_int_equal(unlink(path), 0);
}

TEST(owner_pays_for_its_ranges)
{
	file_read("root:100000:65536\n1234:300000:10\nno-such-user:400000:5\n");
	assert_int_equal(subuids.count, 3);
	assert_int_equal(subuids_payer(&subuids, 99999), 99999);
	assert_int_equal(subuids_payer(&subuids, 100000), 0);
	assert_int_equal(subuids_payer(&subuids, 165535), 0);
	assert_int_equal(subuids_payer(&subuids, 165536), 165536);
	assert_int_equal(subuids_payer(&subuids, 300009), 1234);
	assert_int_equal(subuids_payer(&subuids, 300010), 300010);
	/* Its user does not exist. Its uids still count together. */
	assert_int_equal(subuids_payer(&subuids, 400000), 400000);
	assert_int_equal(subuids_payer(&subuids, 400004), 400000);
	assert_int_equal(subuids_payer(&subuids, 0), 0);
	assert_int_equal(subuids_payer(&subuids, UINT32_MAX), UINT32_MAX);
	subuids_free(&subuids);
	assert_int_equal(subuids_payer(&subuids, 300000), 300000);
}

TEST(other_lines_are_skipped)
{
	file_read("\n# comment\nroot\nroot:1\nroot:0:10\nroot:5:0\nroot:-5:10\nroot:5:x\n"
		  "root:4294967290:10\nroot:99999999999:1\nroot:5:4294967299\n:::\n"
		  "1234:4294967290:5");
	assert_int_equal(subuids.count, 1);
	assert_int_equal(subuids_payer(&subuids, 4294967294), 1234);
	assert_int_equal(subuids_payer(&subuids, 5), 5);
	subuids_free(&subuids);
	file_read("");
	assert_int_equal(subuids.count, 0);
	subuids_free(&subuids);
	assert_int_equal(subuids_read(&subuids, "/nonexistent/subuid"), 0);
	assert_int_equal(subuids.count, 0);
}

/* This process has a subordinate uid of a user who has all that it may have: it gets nothing. Its rights are
 * those of its own uid. */
TEST(subordinate_uids_pay_by_their_owner)
{
	struct subuid_range range = {
		.first = (uint32_t)getuid(), .count = 1, .owner = 4711};
	struct server_fixture b;
	struct fixture_client c;
	struct account *owner;
	struct conn *conn;

	fixture_open(
		&b, (struct rocade_daemon_conf){.socket_mode = 0666, .max_clients = 32});
	owner = account_open(&b.d->accounts, range.owner, 0);
	while (account_take(owner, ACCOUNT_clients, 1))
		continue;
	subuids_free(&b.d->subuids);
	b.d->subuids = (struct subuids){.ranges = &range, .count = 1};
	assert_int_equal(client_attach(&b, &c), ENOSPC);
	client_detach(&b, &c);
	account_give(owner, ACCOUNT_clients, 1);
	assert_int_equal(client_attach(&b, &c), 0);
	conn = TAILQ_FIRST(&b.d->conns);
	assert_ptr_equal(conn->account, owner);
	assert_int_equal(conn->uid, getuid());
	assert_int_equal(conn->client->uid, getuid());
	assert_int_equal(conn->client->user->uid, range.owner);
	client_detach(&b, &c);
	b.d->subuids = (struct subuids){.count = 0};
	account_give(owner, ACCOUNT_clients, owner->held[ACCOUNT_clients]);
	account_close(owner);
	fixture_close(&b);
}
