/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a client and the daemon share: which side writes it, and which process
 * its pages are charged to. */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

#include "server_fixture.h"
#include "../../lib/emulated.h"
#include "../../lib/held_page.h"

/* Holes would cost the daemon a page fault each, and memory. */
TEST(client_cannot_punch_holes)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	struct fixture_client c;
	struct server_fixture b;
	size_t size;

	SKIP_IF_EMULATED();
	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	size = region_client_size(&c.region.geom);
	assert_int_equal(fallocate(c.fds[SW_FD_CLIENT_MEM], punch, 0, (off_t)size), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fallocate(c.fds[SW_FD_DAEMON_MEM], punch, 0, 4096), -1);
	assert_int_equal(errno, EPERM);
	/* neither through the mapping, which the client has */
	assert_int_equal(madvise(c.region.client, size, MADV_REMOVE), -1);
	assert_int_equal(errno, EPERM);
	assert_ptr_equal(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
				 c.fds[SW_FD_CLIENT_MEM], 0),
		MAP_FAILED);
	client_detach(&b, &c);
	fixture_close(&b);
}

/* Attaches a client, but does not start it. */
static int
attach_only(struct server_fixture *b, int fds[SW_ATTACH_FDS], struct region_geom *geom)
{
	struct sw_request attach = {.type = SW_ATTACH};
	struct sw_reply reply;
	int fd = client_connect(b);

	assert_true(client_call(b, fd, &attach, &reply, fds));
	assert_int_equal(reply.error, 0);
	*geom = reply.geom;
	return fd;
}

static void
fds_close(int fds[SW_ATTACH_FDS])
{
	for (unsigned i = 0; i < SW_ATTACH_FDS; i++)
		close(fds[i]);
}

/* Returns whether the process has the memory mapped, with these rights: of a line of
 * /proc/self/maps. */
static bool
is_mapped(const void *mem, const char *rights)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	bool found = false;
	char line[512], has[5];

	assert_non_null(maps);
	while (!found && fgets(line, sizeof(line), maps) != NULL) {
		uintptr_t from;

		found = sscanf(line, "%" SCNxPTR "-%*x %4s", &from, has) == 2 &&
			from == (uintptr_t)mem && strcmp(has, rights) == 0;
	}
	fclose(maps);
	return found;
}

/* Before it has started, too. */
TEST(client_cannot_write_the_daemons_memory)
{
	int fds[SW_ATTACH_FDS], fd, other;
	struct region_geom geom;
	struct server_fixture b;
	char path[64];
	size_t size;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	fd = attach_only(&b, fds, &geom);
	size = region_daemon_size(&geom);
	assert_int_equal(fcntl(fds[SW_FD_DAEMON_MEM], F_GET_SEALS),
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[SW_FD_DAEMON_MEM]);
	other = open(path, O_RDWR | O_CLOEXEC);
	assert_true(other >= 0);
	for (unsigned i = 0; i < 2; i++) {
		int from = i == 0 ? fds[SW_FD_DAEMON_MEM] : other;

		assert_ptr_equal(
			mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, from, 0),
			MAP_FAILED);
		assert_int_equal(errno, EPERM);
		assert_int_equal(pwrite(from, "x", 1, 0), -1);
		assert_int_equal(errno, EPERM);
	}
	close(other);
	fds_close(fds);
	close(fd);
	daemon_handle_all(&b);
	fixture_close(&b);
}

/* A fault in the daemon cannot change what the client has written. */
TEST(daemon_maps_the_clients_memory_for_reading)
{
	struct fixture_client c;
	const struct conn *conn;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	assert_int_equal(client_attach(&b, &c), 0);
	conn = TAILQ_FIRST(&b.d->conns);
	assert_true(is_mapped(conn->client_mem, "r--s"));
	assert_true(is_mapped(conn->daemon_mem, "rw-s"));
	assert_ptr_equal(conn->client->region.client, conn->client_mem);
	assert_ptr_equal(conn->client->region.daemon, conn->daemon_mem);
	client_detach(&b, &c);
	fixture_close(&b);
}

static off_t
blocks(int fd, off_t size)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, size);
	return st.st_blocks;
}

/* A page that the daemon is the first to touch would be charged to it. A client that keeps
 * such pages when it disconnects could have the daemon run out of memory. */
TEST(client_allocates_all_pages)
{
	struct sw_request start = {.type = SW_START};
	int fds[SW_ATTACH_FDS], fd;
	struct region_geom geom;
	struct sw_reply reply;
	struct server_fixture b;

	for (unsigned i = 0; i < 2; i++) {
		off_t client, daemon;

		fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
		fd = attach_only(&b, fds, &geom);
		client = (off_t)region_client_size(&geom);
		daemon = (off_t)region_daemon_size(&geom);
		assert_int_equal(blocks(fds[SW_FD_CLIENT_MEM], client), 0);
		assert_int_equal(blocks(fds[SW_FD_DAEMON_MEM], daemon), 0);
		memory_fill(fds, &geom, i == 0 ? 4096 : 0, i == 0 ? 0 : 4096);
		memory_seal(fds[SW_FD_CLIENT_MEM]);
		/* Pages behind the end would count. */
		assert_int_equal(fallocate(fds[SW_FD_CLIENT_MEM], FALLOC_FL_KEEP_SIZE,
					 client, 4096),
			-1);
		assert_int_equal(fallocate(fds[SW_FD_DAEMON_MEM], FALLOC_FL_KEEP_SIZE,
					 daemon, 4096),
			-1);
		assert_true(client_call(&b, fd, &start, &reply, NULL));
		assert_int_equal(reply.error, ENOMEM);
		assert_int_equal(b.d->sw->client_count, 0);
		assert_null(TAILQ_FIRST(&b.d->conns)->client_mem);
		fds_close(fds);
		close(fd);
		daemon_handle_all(&b);
		fixture_close(&b);
	}
}

/* The daemon does not serve a client whose memory is not sealed. */
TEST(client_starts_once_with_sealed_memory)
{
	struct sw_request attach = {.type = SW_ATTACH}, start = {.type = SW_START},
			  take = {.type = SW_QPN_TAKE};
	int fds[SW_ATTACH_FDS], none, other;
	struct region_geom geom;
	struct fixture_client c;
	struct sw_reply reply;
	struct server_fixture b;

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	none = client_connect(&b);
	assert_true(client_call(&b, none, &start, &reply, NULL));
	assert_int_equal(reply.error, ENOTCONN);
	close(none);
	daemon_handle_all(&b);
	none = attach_only(&b, fds, &geom);
	assert_true(client_call(&b, none, &take, &reply, NULL));
	assert_int_equal(reply.error, ENOTCONN);
	assert_true(client_call(&b, none, &attach, &reply, NULL));
	assert_int_equal(reply.error, EALREADY);
	/* Without both seals: the first one alone could be followed by another one. */
	memory_fill(fds, &geom, 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(client_call(&b, none, &start, &reply, NULL));
		assert_int_equal(reply.error, EPERM);
		assert_int_equal(b.d->sw->client_count, 0);
		assert_int_equal(fcntl(fds[SW_FD_CLIENT_MEM], F_ADD_SEALS,
					 i == 0 ? F_SEAL_FUTURE_WRITE : F_SEAL_SEAL),
			0);
	}
	assert_true(client_call(&b, none, &start, &reply, NULL));
	assert_int_equal(reply.error, 0);
	fds_close(fds);
	/* Memory that can be written by others, and stays so. */
	other = attach_only(&b, fds, &geom);
	memory_fill(fds, &geom, 0, 0);
	assert_int_equal(fcntl(fds[SW_FD_CLIENT_MEM], F_ADD_SEALS, F_SEAL_SEAL), 0);
	assert_true(client_call(&b, other, &start, &reply, NULL));
	assert_int_equal(reply.error, EPERM);
	fds_close(fds);
	close(other);
	assert_int_equal(client_attach(&b, &c), 0);
	assert_true(client_call(&b, c.fd, &start, &reply, NULL));
	assert_int_equal(reply.error, EALREADY);
	client_detach(&b, &c);
	close(none);
	daemon_handle_all(&b);
	fixture_close(&b);
}

struct writer {
	pthread_t thread;
	struct held_page page;
	int fd;
	bool ended;
};

/* It keeps the file locked until the page is there. */
static void *
writer_main(void *arg)
{
	struct writer *w = arg;
	ssize_t written = pwrite(w->fd, w->page.at, HELD_PAGE, 0);

	(void)written;
	__atomic_store_n(&w->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Waits until the thread sleeps in the system call: another one that needs the lock waits for it. */
static void
writer_await(const struct writer *w)
{
	struct pollfd fault = {.fd = w->page.fd, .events = POLLIN};

	await(poll(&fault, 1, 0) == 1);
	assert_int_equal(fault.revents, POLLIN);
	assert_false(__atomic_load_n(&w->ended, __ATOMIC_ACQUIRE));
}

/* A client keeps the file of its memory locked, and starts. */
TEST(client_that_locks_its_memory_does_not_stop_the_daemon)
{
	struct sw_request start = {.type = SW_START};
	int fds[SW_ATTACH_FDS], fd;
	struct region_geom geom;
	struct server_fixture b;
	struct sw_reply reply;
	struct writer w = {.ended = false};

	fixture_open(&b, (struct rocade_daemon_conf){.size = 0});
	if (!held_page_open(&w.page)) {
		held_page_close(&w.page);
		fixture_close(&b);
		skip();
	}
	fd = attach_only(&b, fds, &geom);
	memory_fill(fds, &geom, 0, 0);
	w.fd = fds[SW_FD_CLIENT_MEM];
	assert_int_equal(pthread_create(&w.thread, NULL, writer_main, &w), 0);
	writer_await(&w);
	/* The page comes only after the daemon's answer. */
	assert_true(client_call(&b, fd, &start, &reply, NULL));
	assert_int_equal(reply.error, EPERM);
	held_page_close(&w.page);
	pthread_join(w.thread, NULL);
	fds_close(fds);
	close(fd);
	daemon_handle_all(&b);
	fixture_close(&b);
}
