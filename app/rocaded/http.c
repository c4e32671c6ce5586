/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http.h"

/* RFC 9110, 5.6.2 */
#define TOKEN                                                                            \
	"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define BLANKS " \t"

/* What a request wants, in thousandths of quality (RFC 9110, 12.4.2). */
struct accepted {
	unsigned openmetrics, text;
};

/* Returns whether the bytes may be part of a request: NUL and other control characters are not. */
static bool
bytes_are_text(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if ((c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == 0x7f)
			return false;
	}
	return true;
}

/* Returns whether the bytes contain an empty line, which ends the head of a request. RFC 9112, 2.2: a
 * line may end with LF alone. */
static bool
head_is_complete(const char *bytes, size_t len)
{
	return memmem(bytes, len, "\n\r\n", 3) != NULL ||
	       memmem(bytes, len, "\n\n", 2) != NULL;
}

/* Returns the line at *at without its end, and moves *at to the next one. */
static char *
line_next(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	*at = end + 1;
	if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	return line;
}

static char *
blanks_cut(char *text)
{
	size_t len;

	text += strspn(text, BLANKS);
	for (len = strlen(text); len != 0 && strchr(BLANKS, text[len - 1]) != NULL; len--)
		text[len - 1] = '\0';
	return text;
}

/* 0 to 1 with up to three decimals. */
static unsigned
quality_read(const char *text)
{
	unsigned quality, unit = 100;

	if ((text[0] != '0' && text[0] != '1') || (text[1] != '\0' && text[1] != '.'))
		return 0;
	quality = text[0] == '1' ? 1000 : 0;
	for (text += text[1] == '.' ? 2 : 1; isdigit((unsigned char)*text) && unit != 0;
		text++, unit /= 10)
		quality += (unsigned)(*text - '0') * unit;
	return quality > 1000 ? 1000 : quality;
}

/* A media range, such as "application/openmetrics-text;version=1.0.0;q=0.5". */
static void
media_range_read(char *range, struct accepted *accepted)
{
	char *rest = range, *type = blanks_cut(strsep(&rest, ";")), *part;
	unsigned quality = 1000, *best = NULL;
	bool version = true;

	while ((part = strsep(&rest, ";")) != NULL) {
		part = blanks_cut(part);
		if (strncasecmp(part, "q=", 2) == 0)
			quality = quality_read(part + 2);
		else if (strncasecmp(part, "version=", 8) == 0)
			version = strcmp(part + 8, "1.0.0") == 0 ||
				  strcmp(part + 8, "\"1.0.0\"") == 0;
	}
	if (strcasecmp(type, "application/openmetrics-text") == 0 && version)
		best = &accepted->openmetrics;
	else if (strcasecmp(type, "text/plain") == 0 || strcasecmp(type, "text/*") == 0 ||
		 strcmp(type, "*/*") == 0)
		best = &accepted->text;
	if (best != NULL && quality > *best)
		*best = quality;
}

/* A header field. Returns false if it is none. */
static bool
field_read(char *line, struct accepted *accepted, unsigned *hosts)
{
	size_t name = strspn(line, TOKEN);
	char *ranges = line + name + 1, *range;

	if (name == 0 || line[name] != ':')
		return false;
	line[name] = '\0';
	if (strcasecmp(line, "Host") == 0)
		(*hosts)++;
	while (strcasecmp(line, "Accept") == 0 && (range = strsep(&ranges, ",")) != NULL)
		media_range_read(range, accepted);
	return true;
}

/* The path of a target "/path?query" or "http://host/path?query". */
static bool
target_is_page(const char *target)
{
	size_t len = strlen(HTTP_PATH);

	if (strncasecmp(target, "http://", 7) == 0)
		target = strchrnul(target + 7, '/');
	return strncmp(target, HTTP_PATH, len) == 0 &&
	       (target[len] == '\0' || target[len] == '?');
}

/* "GET /metrics HTTP/1.1". Returns the status, and whether its version is one that needs a Host. */
static unsigned
request_line_read(char *line, bool *head, bool *needs_host)
{
	char *method = strsep(&line, " "), *target = strsep(&line, " ");
	const char *version = line;

	if (method[0] == '\0' || method[strspn(method, TOKEN)] != '\0' ||
		target == NULL || target[0] == '\0' || version == NULL ||
		strncmp(version, "HTTP/", 5) != 0 ||
		!isdigit((unsigned char)version[5]) || version[6] != '.' ||
		!isdigit((unsigned char)version[7]) || version[8] != '\0')
		return 400;
	if (version[5] != '1')
		return 505;
	*needs_host = version[7] != '0';
	*head = strcmp(method, "HEAD") == 0;
	if (!*head && strcmp(method, "GET") != 0)
		return 405;
	return target_is_page(target) ? 200 : 404;
}

static unsigned
request_read(char *bytes, struct http_answer *answer)
{
	struct accepted accepted = {0, 0};
	bool needs_host = false;
	unsigned hosts = 0, status;
	char *line;

	status = request_line_read(line_next(&bytes), &answer->head, &needs_host);
	while (status != 400 && (line = line_next(&bytes))[0] != '\0') {
		if (!field_read(line, &accepted, &hosts))
			status = 400;
	}
	/* RFC 9112, 3.2 */
	if (status != 505 && (hosts > 1 || (needs_host && hosts == 0)))
		status = 400;
	answer->openmetrics =
		accepted.openmetrics != 0 && accepted.openmetrics >= accepted.text;
	return status;
}

bool
http_read(char *bytes, size_t len, struct http_answer *answer)
{
	*answer = (struct http_answer){.status = 400};
	if (!bytes_are_text(bytes, len))
		return true;
	if (!head_is_complete(bytes, len)) {
		answer->status = 431;
		return len >= HTTP_REQUEST_MAX;
	}
	bytes[len] = '\0';
	answer->status = request_read(bytes, answer);
	return true;
}

static const char *
reason_of(unsigned status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 431:
		return "Request Header Fields Too Large";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Service Unavailable";
	}
}

size_t
http_head(char out[HTTP_HEAD_MAX], const struct http_answer *answer, size_t size)
{
	const char *reason = reason_of(answer->status);
	const char *expected = answer->status == 503 ? "the daemon does not answer"
						     : "expected GET " HTTP_PATH
						       ", HTTP/1.1";
	const char *type = answer->openmetrics
				   ? "application/openmetrics-text; version=1.0.0"
				   : "text/plain; version=0.0.4";

	if (answer->status == 200)
		return (size_t)snprintf(out, HTTP_HEAD_MAX,
			"HTTP/1.1 200 OK\r\nContent-Type: %s; charset=utf-8\r\n"
			"Content-Length: %zu\r\nVary: Accept\r\nConnection: close\r\n\r\n",
			type, size);
	return (size_t)snprintf(out, HTTP_HEAD_MAX,
		"HTTP/1.1 %u %s\r\n%sContent-Type: text/plain; charset=utf-8\r\n"
		"Content-Length: %zu\r\nConnection: close\r\n\r\n%s%s%s%s",
		answer->status, reason,
		answer->status == 405 ? "Allow: GET, HEAD\r\n" : "",
		strlen(reason) + strlen(": \n") + strlen(expected),
		answer->head ? "" : reason, answer->head ? "" : ": ",
		answer->head ? "" : expected, answer->head ? "" : "\n");
}
