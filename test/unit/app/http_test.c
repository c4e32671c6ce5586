/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that rocaded reads, and a sweep of ones that no client sends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "http.h"

#define GOOD "GET /metrics HTTP/1.1\r\nHost: localhost:9469\r\n\r\n"
/* As version 2.42 of Prometheus sends it. */
#define SCRAPE                                                                               \
	"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9469\r\nUser-Agent: Prometheus/2.42.0\r\n" \
	"Accept: application/openmetrics-text;version=1.0.0,"                                \
	"application/openmetrics-text;version=0.0.1;q=0.75,"                                 \
	"text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\nAccept-Encoding: gzip\r\n"              \
	"X-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"

/* Reads bytes in memory of their own, so that a sanitizer sees a read behind them. Returns the status,
 * 0: more bytes are needed. */
static unsigned
request_answer(const char *bytes, size_t len, struct http_answer *answer)
{
	char *copy = malloc(len + 1);
	bool complete;

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	copy[len] = 'x';
	complete = http_read(copy, len, answer);
	free(copy);
	return complete ? answer->status : 0;
}

static unsigned
status_of(const char *request)
{
	struct http_answer answer;

	return request_answer(request, strlen(request), &answer);
}

/* Whether a request with this field is answered with OpenMetrics. */
static bool
openmetrics_of(const char *accept)
{
	struct http_answer answer;
	char request[512];
	int len = snprintf(request, sizeof(request),
		"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: %s\r\n\r\n", accept);

	assert_int_equal(request_answer(request, (size_t)len, &answer), 200);
	return answer.openmetrics;
}

TEST(requests_have_their_status)
{
	static const struct {
		unsigned status;
		const char *request;
	} rows[] = {
		{200, GOOD},
		{200, SCRAPE},
		{200, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
		{200, "GET /metrics?x=1 HTTP/1.1\r\nhost:x\r\n\r\n"},
		{200, "GET http://x:1/metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
		{200, "GET /metrics HTTP/1.0\r\n\r\n"},
		{200, "GET /metrics HTTP/1.0\n\n"},
		{404, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{404, "GET /metricsx HTTP/1.1\r\nHost: x\r\n\r\n"},
		{404, "GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n"},
		{404, "GET metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
		{404, "GET http://x HTTP/1.1\r\nHost: x\r\n\r\n"},
		{405, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"},
		{405, "get /metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
		{400, "GET  /metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "GET /metrics\r\nHost: x\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1 \r\nHost: x\r\n\r\n"},
		{400, "GET /metrics HTTP/1\r\nHost: x\r\n\r\n"},
		{400, "GET /metrics http/1.1\r\nHost: x\r\n\r\n"},
		{400, "G(T /metrics HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost : x\r\n\r\n"},
		{400, "GET /metrics HTTP/1.1\r\nHost: x\r\nnothing\r\n\r\n"},
		{400, "\r\n\r\n"},
		{400, "\x16\x03\x01"},
		{400, "GET /metrics HTTP/1.1\r\nHost: \x7f"},
		{505, "GET /metrics HTTP/2.0\r\nHost: x\r\n\r\n"},
		{505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{0, ""},
		{0, "GET /metrics HTTP/1.1\r\nHost: x\r\n"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (status_of(rows[i].request) != rows[i].status)
			fail_msg("%u instead of %u: %s", status_of(rows[i].request),
				rows[i].status, rows[i].request);
	}
}

/* NUL is no character of a request. */
TEST(nul_bytes_are_refused)
{
	char request[] = GOOD;
	struct http_answer answer;

	request[10] = '\0';
	assert_int_equal(request_answer(request, sizeof(GOOD) - 1, &answer), 400);
}

TEST(format_is_chosen_by_accept)
{
	struct http_answer answer;

	assert_int_equal(request_answer(SCRAPE, strlen(SCRAPE), &answer), 200);
	assert_true(answer.openmetrics && !answer.head);
	assert_int_equal(request_answer(GOOD, strlen(GOOD), &answer), 200);
	assert_false(answer.openmetrics);
	assert_true(openmetrics_of("application/openmetrics-text"));
	assert_true(
		openmetrics_of("Application/OpenMetrics-Text; Version=\"1.0.0\" ; q=1"));
	assert_true(openmetrics_of(
		"text/plain;q=0.500, application/openmetrics-text;q=0.501"));
	assert_false(
		openmetrics_of("application/openmetrics-text;q=0.4,text/plain;q=0.5"));
	assert_false(openmetrics_of("application/openmetrics-text;version=0.0.1"));
	assert_false(openmetrics_of("application/openmetrics-text;q=0"));
	assert_false(openmetrics_of("application/openmetrics-text;q=nonsense"));
	assert_false(openmetrics_of("*/*"));
	assert_false(openmetrics_of(""));
	assert_false(openmetrics_of(";;;q=;,,;"));
}

/* A request may come in any pieces. It has its answer with its last byte, and not before. */
TEST(every_prefix_needs_more)
{
	struct http_answer answer;

	for (size_t len = 0; len < strlen(SCRAPE); len++)
		assert_int_equal(request_answer(SCRAPE, len, &answer), 0);
}

TEST(a_request_has_an_end)
{
	char request[HTTP_REQUEST_MAX];
	struct http_answer answer;

	memset(request, 'a', sizeof(request));
	memcpy(request, "GET /", 5);
	assert_int_equal(request_answer(request, sizeof(request) - 1, &answer), 0);
	assert_int_equal(request_answer(request, sizeof(request), &answer), 431);
	memcpy(request + sizeof(request) - 4, "\r\n\r\n", 4);
	assert_int_equal(request_answer(request, sizeof(request), &answer), 400);
}

/* A request with one or more bytes of another value, cut off or doubled: has one of the statuses, and
 * takes no byte behind its end, which a sanitizer sees. */
TEST(sweep_of_bad_requests)
{
	static const unsigned statuses[] = {0, 200, 400, 404, 405, 505};
	static const char odd[] = "\r\n \t:;,=/?\"\x7f\x01\xff"
				  "AaHh019.*q";
	unsigned seen[sizeof(statuses) / sizeof(statuses[0])] = {0};
	uint64_t random = 1;

	for (unsigned round = 0; round < 50000; round++) {
		char request[2 * sizeof(SCRAPE)];
		size_t len = strlen(SCRAPE), changes = 1 + round % 4, n = 0;
		struct http_answer answer;
		unsigned status;

		memcpy(request, SCRAPE, len);
		for (size_t i = 0; i < changes; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			request[(random >> 33) % (round % 2 ? 30 : len)] =
				odd[(random >> 20) % sizeof(odd)];
		}
		if (round % 5 == 0)
			len = (random >> 40) % len;
		if (round % 7 == 0) {
			memmove(request + len, request, len);
			len *= 2;
		}
		status = request_answer(request, len, &answer);
		while (n < sizeof(statuses) / sizeof(statuses[0]) &&
			statuses[n] != status)
			n++;
		assert_in_range(n, 0, sizeof(statuses) / sizeof(statuses[0]) - 1);
		seen[n]++;
	}
	for (unsigned i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		assert_int_not_equal(seen[i], 0);
}

/* Returns the head of an answer, which is as long as it says. */
static const char *
head_of(const struct http_answer *answer, size_t size)
{
	static char head[HTTP_HEAD_MAX];
	size_t len = http_head(head, answer, size);

	assert_int_equal(len, strlen(head));
	return head;
}

TEST(heads_of_answers)
{
	struct http_answer page = {.status = 200, .openmetrics = true};
	struct http_answer wrong = {.status = 405};
	const char *head = head_of(&page, 1234), *body;

	assert_non_null(strstr(head, "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(head,
		"\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
	assert_non_null(strstr(head, "\r\nContent-Length: 1234\r\n"));
	page.openmetrics = false;
	assert_non_null(strstr(head_of(&page, 0),
		"\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	head = head_of(&wrong, 0);
	assert_non_null(strstr(head, "\r\nAllow: GET, HEAD\r\n"));
	body = strstr(head, "\r\n\r\n");
	assert_non_null(body);
	assert_string_equal(
		body + 4, "Method Not Allowed: expected GET /metrics, HTTP/1.1\n");
	assert_int_equal(strtoul(strstr(head, "Content-Length: ") + 16, NULL, 10),
		strlen(body + 4));
	wrong = (struct http_answer){.status = 404, .head = true};
	assert_string_equal(strstr(head_of(&wrong, 0), "\r\n\r\n"), "\r\n\r\n");
}
