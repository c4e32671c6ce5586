/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of rocaded's metrics, and how long each can keep what it takes. The sockets are local ones: what a
 * client has done can be seen at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "case.h"
#include "http_server.h"

#define GET "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
#define GET_OPENMETRICS                                                                  \
	"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n"
#define LONG_PAGE (8u << 20) /* more than a socket takes */

static struct http_server server;
static unsigned made;      /* pages */
static size_t page_length; /* 0: "page N" */
static bool fails;         /* no page can be made */
static uint64_t clock_now; /* of the server */
static uint64_t make_ms;   /* how long it takes to make a page */

static uint64_t
clock_ms(void)
{
	return clock_now;
}

static char *
make(bool openmetrics, size_t *size)
{
	char *page = NULL;

	made++;
	clock_now += make_ms;
	if (fails)
		return NULL;
	if (page_length != 0) {
		page = malloc(page_length);
		assert_non_null(page);
		memset(page, 'p', page_length);
		*size = page_length;
		return page;
	}
	*size = (size_t)asprintf(&page, "%s %u", openmetrics ? "open" : "page", made);
	return page;
}

static int
setup(void **state)
{
	struct sockaddr_un any = {.sun_family = AF_UNIX}; /* the kernel chooses a name */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memset(&server, 0, sizeof(server));
	made = 0;
	page_length = 0;
	make_ms = 0;
	fails = false;
	server.make = make;
	server.clock_ms = clock_ms;
	server.listen_fd = fd;
	server.stop_fd = eventfd(0, EFD_CLOEXEC);
	return bind(fd, (struct sockaddr *)&any, sizeof(any.sun_family)) != 0 ||
	       listen(fd, 2 * HTTP_ACCEPTS) != 0;
}

static int
teardown(void **state)
{
	http_server_fini(&server);
	close(server.listen_fd);
	close(server.stop_fd);
	return 0;
}

/* A turn of the server at a time. It does not wait: it would end. */
static void
turn(uint64_t now_ms)
{
	assert_int_equal(eventfd_write(server.stop_fd, 1), 0);
	assert_false(http_wait(&server, now_ms));
	clock_now = now_ms;
	http_handle(&server, now_ms);
}

static int
client_connect(uint64_t now_ms)
{
	struct sockaddr_un addr;
	socklen_t size = sizeof(addr);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(
		getsockname(server.listen_fd, (struct sockaddr *)&addr, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, size), 0);
	turn(now_ms);
	return fd;
}

static void
client_send(int fd, const char *text, uint64_t now_ms)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turn(now_ms);
}

/* Reads up to the end, or what is there. Returns whether the end was read. */
static bool
client_read(int fd, char text[1024])
{
	size_t len = 0;
	ssize_t n;

	while ((n = recv(fd, text + len, 1023 - len, 0)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	return n == 0;
}

/* Returns what is behind the head of the answer to a request of a new connection. */
static const char *
page_of(const char *request, uint64_t now_ms)
{
	static char text[1024];
	int fd = client_connect(now_ms);
	const char *body;

	client_send(fd, request, now_ms);
	assert_true(client_read(fd, text));
	close(fd);
	turn(now_ms);
	body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	return body + 4;
}

static unsigned
conns_used(void)
{
	unsigned used = 0;

	for (unsigned i = 0; i < HTTP_CONNS; i++)
		used += server.conns[i].state != HTTP_FREE;
	return used;
}

TEST_WITH(a_page_is_served, setup, teardown)
{
	char text[1024];
	int fd = client_connect(5000);

	client_send(fd, GET, 5000);
	assert_true(client_read(fd, text));
	assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
	assert_non_null(strstr(text, "\r\nContent-Length: 6\r\n"));
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\npage 1");
	assert_int_equal(conns_used(), 1);
	close(fd);
	turn(5000);
	assert_int_equal(conns_used(), 0);
}

TEST_WITH(a_request_may_come_in_pieces, setup, teardown)
{
	char text[1024], one[2] = "";
	int fd = client_connect(5000);

	for (const char *at = GET; *at != '\0'; at++) {
		assert_false(client_read(fd, text));
		assert_string_equal(text, "");
		one[0] = *at;
		client_send(fd, one, 5000);
	}
	assert_true(client_read(fd, text));
	assert_non_null(strstr(text, "page 1"));
	close(fd);
}

TEST_WITH(head_has_no_page, setup, teardown)
{
	assert_string_equal(
		page_of("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 5000), "");
	assert_string_equal(page_of("GET /favicon.ico HTTP/1.0\r\n\r\n", 5000),
		"Not Found: expected GET /metrics, HTTP/1.1\n");
	assert_int_equal(made, 1);
}

TEST_WITH(a_page_is_made_once_a_second, setup, teardown)
{
	for (unsigned i = 0; i < 20; i++)
		assert_string_equal(page_of(GET, 5000), "page 1");
	assert_string_equal(page_of(GET_OPENMETRICS, 5500), "open 2");
	assert_string_equal(page_of(GET, 5000 + HTTP_PAGE_MS - 1), "page 1");
	assert_string_equal(page_of(GET, 5000 + HTTP_PAGE_MS), "page 3");
	assert_string_equal(page_of(GET_OPENMETRICS, 5000 + HTTP_PAGE_MS), "open 2");
}

/* The daemon may take longer than a page lasts. Those who wait meanwhile get it, and the daemon has a second without
 * a request behind it. */
TEST_WITH(the_second_of_a_page_begins_when_it_is_ready, setup, teardown)
{
	char text[1024];
	int one = client_connect(5000), two = client_connect(5000);

	make_ms = HTTP_PAGE_MS + 500;
	assert_int_equal(send(one, GET, strlen(GET), MSG_NOSIGNAL), strlen(GET));
	client_send(two, GET, 5000);
	assert_true(client_read(one, text));
	assert_non_null(strstr(text, "page 1"));
	assert_true(client_read(two, text));
	assert_non_null(strstr(text, "page 1"));
	assert_int_equal(made, 1);
	assert_string_equal(page_of(GET, 5000 + make_ms + HTTP_PAGE_MS - 1), "page 1");
	assert_string_equal(page_of(GET, 5000 + make_ms + HTTP_PAGE_MS), "page 2");
	close(one);
	close(two);
}

TEST_WITH(a_failure_is_an_answer, setup, teardown)
{
	fails = true;
	for (unsigned i = 0; i < 5; i++)
		assert_string_equal(page_of(GET, 5000),
			"Service Unavailable: the daemon does not answer\n");
	assert_int_equal(made, 1);
	fails = false;
	assert_string_equal(page_of(GET, 6000), "page 2");
}

/* As many as there are places, and a client that wants a page. */
TEST_WITH(silent_connections_do_not_keep_places, setup, teardown)
{
	int silent[HTTP_CONNS];
	char text[1024];

	for (unsigned i = 0; i < HTTP_CONNS; i++)
		silent[i] = client_connect(5000 + i);
	assert_int_equal(conns_used(), HTTP_CONNS);
	assert_string_equal(page_of(GET, 5100), "page 1");
	assert_true(client_read(silent[0], text));
	for (unsigned i = 1; i < HTTP_CONNS; i++)
		assert_false(client_read(silent[i], text));
	assert_int_equal(conns_used(), HTTP_CONNS - 1);
	turn(5000 + HTTP_CONN_MS);
	for (unsigned i = 1; i < HTTP_CONNS; i++)
		assert_false(client_read(silent[i], text));
	turn(5000 + HTTP_CONN_MS + HTTP_CONNS);
	for (unsigned i = 0; i < HTTP_CONNS; i++) {
		assert_true(client_read(silent[i], text));
		close(silent[i]);
	}
	assert_int_equal(conns_used(), 0);
}

/* It came before all of them. If all are sent a page, the oldest one loses its place. */
TEST_WITH(other_connections_do_not_end_an_answer, setup, teardown)
{
	int fds[2 * HTTP_CONNS], senders[HTTP_CONNS];

	page_length = LONG_PAGE;
	senders[0] = client_connect(5000);
	client_send(senders[0], GET, 5000);
	for (unsigned i = 0; i < 2 * HTTP_CONNS; i++)
		fds[i] = client_connect(5001 + i);
	assert_int_equal(server.conns[0].state, HTTP_SENDING);
	assert_int_equal(server.conns[0].begun_ms, 5000);
	for (unsigned i = 1; i < HTTP_CONNS; i++) {
		senders[i] = client_connect(5100 + i);
		client_send(senders[i], GET, 5100 + i);
	}
	for (unsigned i = 0; i < HTTP_CONNS; i++)
		assert_int_equal(server.conns[i].state, HTTP_SENDING);
	assert_int_equal(server.conns[0].begun_ms, 5000);
	page_length = 0;
	assert_string_equal(page_of("GET / HTTP/1.0\r\n\r\n", 5200),
		"Not Found: expected GET /metrics, HTTP/1.1\n");
	assert_int_equal(server.conns[0].state, HTTP_FREE);
	assert_int_equal(conns_used(), HTTP_CONNS - 1);
	for (unsigned i = 0; i < HTTP_CONNS; i++)
		close(senders[i]);
	for (unsigned i = 0; i < 2 * HTTP_CONNS; i++)
		close(fds[i]);
}

/* The server does not wait for it. Its page is kept while the next one is made, and not for ever. */
TEST_WITH(a_slow_reader_keeps_no_page, setup, teardown)
{
	int slow;

	page_length = LONG_PAGE;
	slow = client_connect(5000);
	client_send(slow, GET, 5000);
	assert_int_equal(server.conns[0].state, HTTP_SENDING);
	assert_true(server.conns[0].sent < LONG_PAGE);
	page_length = 0;
	assert_string_equal(page_of(GET, 6000), "page 2");
	assert_int_equal(server.conns[0].state, HTTP_SENDING);
	assert_string_equal(page_of(GET, 7000), "page 3");
	assert_int_equal(conns_used(), 0);
	close(slow);
}

/* A client that reads gets all, in as many turns as it takes. */
TEST_WITH(a_long_page_is_sent_in_parts, setup, teardown)
{
	static char part[1u << 16];
	size_t got = 0;
	ssize_t n;
	int fd;

	page_length = LONG_PAGE;
	fd = client_connect(5000);
	client_send(fd, GET, 5000);
	while ((n = recv(fd, part, sizeof(part), 0)) > 0) {
		got += (size_t)n;
		turn(5000);
	}
	assert_int_equal(n, 0);
	assert_true(got > LONG_PAGE && got < LONG_PAGE + HTTP_HEAD_MAX);
	close(fd);
}

/* A client that goes on sending behind its request. */
TEST_WITH(bytes_behind_a_request_have_a_limit, setup, teardown)
{
	static const char more[4096];
	unsigned sent = 0;
	int fd = client_connect(5000);

	client_send(fd, GET, 5000);
	while (conns_used() != 0 && sent < 64) {
		if (send(fd, more, sizeof(more), MSG_NOSIGNAL) == (ssize_t)sizeof(more))
			sent++;
		turn(5000);
	}
	assert_int_equal(conns_used(), 0);
	assert_in_range(sent * sizeof(more), HTTP_UNREAD, HTTP_UNREAD + 2 * sizeof(more));
	close(fd);
}

TEST_WITH(connections_of_a_second_have_a_limit, setup, teardown)
{
	int last, fd;

	for (unsigned i = 0; i < HTTP_ACCEPTS; i++)
		close(client_connect(5000));
	turn(5999);
	assert_int_equal(conns_used(), 0);
	last = client_connect(5999);
	assert_int_equal(conns_used(), 0);
	turn(6000);
	assert_int_equal(conns_used(), 1);
	fd = client_connect(6000);
	assert_int_equal(conns_used(), 2);
	close(fd);
	close(last);
}

/* The server waits no longer than a connection may last, nor for the next second. */
TEST_WITH(a_wait_ends_in_time, setup, teardown)
{
	int fd = client_connect(5000);
	eventfd_t value;

	assert_int_equal(eventfd_read(server.stop_fd, &value), 0);
	assert_true(http_wait(&server, 5000 + HTTP_CONN_MS));
	http_handle(&server, 5000 + HTTP_CONN_MS);
	assert_int_equal(conns_used(), 0);
	close(fd);
}

/* Clients that begin and end anything at any time. In the end a page is served, and no place is taken. */
TEST_WITH(sweep_of_clients, setup, teardown)
{
	int fds[3 * HTTP_CONNS];
	uint64_t random = 1, now_ms = 5000;
	const unsigned count = sizeof(fds) / sizeof(fds[0]);

	memset(fds, -1, sizeof(fds));
	for (unsigned round = 0; round < 20000; round++) {
		int *fd = &fds[(random >> 33) % count];
		char text[1024];
		size_t from = (random >> 20) % sizeof(GET);

		random = random * 6364136223846793005u + 1442695040888963407u;
		if (*fd < 0)
			*fd = client_connect(now_ms);
		switch ((random >> 45) % 8) {
		case 0:
			(void)send(*fd, GET, sizeof(GET) - 1, MSG_NOSIGNAL);
			break;
		case 1:
		case 2:
			(void)send(*fd, &GET[from], sizeof(GET) - from, MSG_NOSIGNAL);
			break;
		case 3:
			(void)shutdown(*fd, SHUT_WR);
			break;
		case 4:
			(void)shutdown(*fd, SHUT_RD);
			break;
		case 5:
			(void)client_read(*fd, text);
			break;
		case 6:
			close(*fd);
			*fd = -1;
			break;
		default:
			now_ms += (random >> 50) % 512;
			break;
		}
		turn(now_ms);
		assert_in_range(conns_used(), 0, HTTP_CONNS);
	}
	for (unsigned i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	/* Those that were not accepted yet, too. */
	for (unsigned i = 0; i < 2 * count; i++)
		turn(now_ms += 1000);
	assert_int_equal(conns_used(), 0);
	assert_int_equal(strncmp(page_of(GET, now_ms), "page ", 5), 0);
}
