/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of HTTP/1.1 (RFC 9112) and 1.0 for the one page that there is, and the heads of the answers. */
#ifndef ROCADED_HTTP_H
#define ROCADED_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_PATH "/metrics"
#define HTTP_REQUEST_MAX 4096 /* bytes of a request; Prometheus sends about 300 */
#define HTTP_HEAD_MAX 512

struct http_answer {
	unsigned
		status; /* 200: the page; else the answer is the head alone, which has a text */
	bool head;        /* the request is HEAD: no page follows the head */
	bool openmetrics; /* format of the page; else the text format of Prometheus, 0.0.4 */
};

/* Reads the first len bytes of a request. Returns false if more are needed: never with HTTP_REQUEST_MAX
 * bytes. Changes the bytes, of which there are len + 1, when it returns true. */
bool http_read(char *bytes, size_t len, struct http_answer *answer);

/* Writes the head of the answer. size: bytes of the page. Returns its length. */
size_t http_head(char out[HTTP_HEAD_MAX], const struct http_answer *answer, size_t size);

#endif
