/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_server.h"

static void
http_conn_close(struct http_conn *c)
{
	close(c->fd);
	c->state = HTTP_FREE;
}

/* Returns the newest page of the format, which is made if it is too old. */
static const struct http_page *
http_page_get(struct http_server *s, enum http_format format, uint64_t now_ms)
{
	struct http_page *page = &s->pages[format][s->newest[format]];

	/* One that was made in this turn has been made later than now_ms. */
	if (page->made && now_ms < page->made_ms + HTTP_PAGE_MS)
		return page;
	s->newest[format] ^= 1;
	page = &s->pages[format][s->newest[format]];
	for (unsigned i = 0; i < HTTP_CONNS; i++) {
		if (s->conns[i].state == HTTP_SENDING && s->conns[i].page == page)
			http_conn_close(&s->conns[i]);
	}
	free(page->bytes);
	*page = (struct http_page){.made = true};
	page->bytes = s->make(format == HTTP_OPENMETRICS, &page->size);
	page->made_ms = s->clock_ms();
	return page;
}

/* The request has been read: decides what to send. */
static void
http_answer_begin(struct http_server *s, struct http_conn *c, uint64_t now_ms)
{
	const struct http_page *page = NULL;

	if (c->answer.status == 200) {
		page = http_page_get(
			s, c->answer.openmetrics ? HTTP_OPENMETRICS : HTTP_TEXT, now_ms);
		if (page->bytes == NULL)
			c->answer.status = 503;
	}
	c->head_size = http_head(c->head, &c->answer, page != NULL ? page->size : 0);
	c->page = c->answer.status == 200 && !c->answer.head ? page : NULL;
	c->sent = 0;
	c->state = HTTP_SENDING;
}

/* Sends what the socket takes at once. Behind the answer the connection ends when the client closes it: if it
 * were closed with bytes unread, TCP would reset it and the client could lose the answer. */
static void
http_send(struct http_conn *c)
{
	size_t page_size = c->page != NULL ? c->page->size : 0;

	while (c->sent < c->head_size + page_size) {
		bool head = c->sent < c->head_size;
		const char *from = head ? c->head + c->sent
					: c->page->bytes + (c->sent - c->head_size);
		size_t left = head ? c->head_size - c->sent
				   : c->head_size + page_size - c->sent;
		ssize_t n = send(c->fd, from, left,
			MSG_NOSIGNAL | MSG_DONTWAIT |
				(head && page_size != 0 ? MSG_MORE : 0));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			http_conn_close(c);
			return;
		}
		c->sent += (size_t)n;
	}
	(void)shutdown(c->fd, SHUT_WR);
	c->read = 0;
	c->state = HTTP_ENDING;
}

static void
http_conn_read(struct http_server *s, struct http_conn *c, uint64_t now_ms)
{
	bool ending = c->state == HTTP_ENDING;
	char *to = ending ? c->request : c->request + c->read;
	size_t room = ending ? HTTP_REQUEST_MAX : HTTP_REQUEST_MAX - c->read;
	ssize_t n = recv(c->fd, to, room, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->read += n > 0 ? (size_t)n : 0;
	if (n <= 0 || (ending && c->read > HTTP_UNREAD))
		http_conn_close(c);
	else if (!ending && http_read(c->request, c->read, &c->answer)) {
		http_answer_begin(s, c, now_ms);
		http_send(c);
	}
}

/* Returns whether a connection loses its place sooner than another one. One that is sent its answer loses it last,
 * else the older one first. */
static bool
http_loses_place(const struct http_conn *c, const struct http_conn *other)
{
	bool sending = c->state == HTTP_SENDING;

	if (sending != (other->state == HTTP_SENDING))
		return !sending;
	return c->begun_ms < other->begun_ms;
}

/* Returns a free place: at worst that of another connection, which is closed. */
static struct http_conn *
http_place_get(struct http_server *s)
{
	struct http_conn *loser = &s->conns[0];

	for (unsigned i = 0; i < HTTP_CONNS; i++) {
		if (s->conns[i].state == HTTP_FREE)
			return &s->conns[i];
		if (http_loses_place(&s->conns[i], loser))
			loser = &s->conns[i];
	}
	http_conn_close(loser);
	return loser;
}

static void
http_accept(struct http_server *s, uint64_t now_ms)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct http_conn *c;

	if (fd < 0) {
		/* No descriptor or no memory: it is tried again in the next second. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			s->accepted = HTTP_ACCEPTS;
		return;
	}
	s->accepted++;
	c = http_place_get(s);
	c->fd = fd;
	c->begun_ms = now_ms;
	c->read = 0;
	c->state = HTTP_READING;
}

/* Returns whether connections are accepted now. */
static bool
http_accepts(struct http_server *s, uint64_t now_ms)
{
	if (now_ms - s->second_ms >= 1000) {
		s->second_ms = now_ms;
		s->accepted = 0;
	}
	return s->accepted < HTTP_ACCEPTS;
}

/* Returns the milliseconds until a time, at least 0. */
static int
until_ms(uint64_t at_ms, uint64_t now_ms)
{
	return at_ms > now_ms ? (int)(at_ms - now_ms) : 0;
}

bool
http_wait(struct http_server *s, uint64_t now_ms)
{
	static const short events[] = {[HTTP_FREE] = 0,
		[HTTP_READING] = POLLIN,
		[HTTP_SENDING] = POLLOUT,
		[HTTP_ENDING] = POLLIN};
	struct pollfd *polled = s->polled;
	int wait_ms = -1;

	for (unsigned i = 0; i < HTTP_CONNS; i++) {
		const struct http_conn *c = &s->conns[i];
		int left = until_ms(c->begun_ms + HTTP_CONN_MS, now_ms);
		bool used = c->state != HTTP_FREE;

		polled[i] = (struct pollfd){
			.fd = used ? c->fd : -1, .events = events[c->state]};
		if (used && (wait_ms < 0 || left < wait_ms))
			wait_ms = left;
	}
	polled[HTTP_CONNS] = (struct pollfd){.fd = s->listen_fd, .events = POLLIN};
	if (!http_accepts(s, now_ms)) {
		int left = until_ms(s->second_ms + 1000, now_ms);

		polled[HTTP_CONNS].fd = -1;
		if (wait_ms < 0 || left < wait_ms)
			wait_ms = left;
	}
	polled[HTTP_CONNS + 1] = (struct pollfd){.fd = s->stop_fd, .events = POLLIN};
	if (poll(polled, HTTP_CONNS + 2, wait_ms) < 0) {
		for (unsigned i = 0; i < HTTP_CONNS + 2; i++)
			polled[i].revents = 0;
	}
	return polled[HTTP_CONNS + 1].revents == 0;
}

void
http_handle(struct http_server *s, uint64_t now_ms)
{
	for (unsigned i = 0; i < HTTP_CONNS; i++) {
		struct http_conn *c = &s->conns[i];

		/* A page that another connection wants may have closed this one. */
		if (c->state == HTTP_FREE)
			continue;
		if (now_ms >= c->begun_ms + HTTP_CONN_MS)
			http_conn_close(c);
		else if (s->polled[i].revents == 0)
			continue;
		else if (c->state == HTTP_SENDING)
			http_send(c);
		else
			http_conn_read(s, c, now_ms);
	}
	/* After the others: the place of a connection may change hands. */
	if (s->polled[HTTP_CONNS].revents != 0)
		http_accept(s, now_ms);
}

void
http_server_fini(struct http_server *s)
{
	for (unsigned i = 0; i < HTTP_CONNS; i++) {
		if (s->conns[i].state != HTTP_FREE)
			http_conn_close(&s->conns[i]);
	}
	for (unsigned i = 0; i < HTTP_FORMATS; i++) {
		free(s->pages[i][0].bytes);
		free(s->pages[i][1].bytes);
	}
}
