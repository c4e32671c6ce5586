/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serves one page to a few connections at a time, in one thread, which waits for none of them. A connection
 * has one answer, and 10 s for all. One that comes while all places are taken gets that of the oldest one
 * that is not sent its answer, or of the oldest one if all are.
 *
 * A page of each format is made at most once a second, counted from when the last one was ready. Until then all
 * connections of that format get the same one. The last two of each format exist. A connection that still sends
 * the one before these is closed.
 */
#ifndef ROCADED_HTTP_SERVER_H
#define ROCADED_HTTP_SERVER_H

#include <poll.h>
#include <stdint.h>

#include "http.h"

#define HTTP_CONNS 8
#define HTTP_CONN_MS 10000
#define HTTP_PAGE_MS 1000
#define HTTP_ACCEPTS 64   /* connections that are accepted in a second */
#define HTTP_UNREAD 65536 /* bytes behind a request that are read and forgotten */

enum http_format { HTTP_TEXT, HTTP_OPENMETRICS, HTTP_FORMATS };

struct http_page {
	char *bytes; /* NULL: could not be made */
	size_t size;
	uint64_t made_ms; /* when it was ready */
	bool made;
};

enum http_state { HTTP_FREE, HTTP_READING, HTTP_SENDING, HTTP_ENDING };

struct http_conn {
	enum http_state state;
	int fd;
	uint64_t begun_ms;
	struct http_answer answer;
	const struct http_page *page; /* NULL: no page follows the head */
	size_t read, sent, head_size;
	char request[HTTP_REQUEST_MAX + 1];
	char head[HTTP_HEAD_MAX];
};

struct http_server {
	/* Of the caller. All other members: zero at the start. */
	int listen_fd, stop_fd; /* non-blocking; stop_fd is readable at the end */
	/* Makes a page, which the server frees. Returns NULL on failure. */
	char *(*make)(bool openmetrics, size_t *size);
	uint64_t (*clock_ms)(void); /* that of now_ms */

	struct http_page pages[HTTP_FORMATS][2];
	unsigned newest[HTTP_FORMATS];
	struct http_conn conns[HTTP_CONNS];
	uint64_t second_ms; /* when the second began in which these were accepted */
	unsigned accepted;
	struct pollfd
		polled[HTTP_CONNS + 2]; /* behind those of conns: listen_fd, stop_fd */
};

/* Waits until there is something to do. Returns false at the end. now_ms: of a clock that is never set
 * back. */
bool http_wait(struct http_server *s, uint64_t now_ms);
/* Does it, without waiting; but make() may wait. */
void http_handle(struct http_server *s, uint64_t now_ms);
/* Closes all but the caller's descriptors. */
void http_server_fini(struct http_server *s);

#endif
