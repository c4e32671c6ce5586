/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <string.h>

#include <common/number.h>

#include "metrics.h"

/* host: an address of IPv6. */
static bool
ipv6_read(const char *host, in_port_t port, struct metrics_address *address)
{
	address->in6.sin6_family = AF_INET6;
	address->in6.sin6_port = port;
	address->size = sizeof(address->in6);
	return inet_pton(AF_INET6, host, &address->in6.sin6_addr) == 1;
}

static bool
ipv4_read(const char *host, in_port_t port, struct metrics_address *address)
{
	address->in.sin_family = AF_INET;
	address->in.sin_port = port;
	address->size = sizeof(address->in);
	return inet_pton(AF_INET, host, &address->in.sin_addr) == 1;
}

bool
metrics_address_read(const char *text, struct metrics_address *address)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2] = "127.0.0.1";
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;
	uint64_t port;

	memset(address, 0, sizeof(*address));
	if (strcmp(text, "off") == 0)
		return true;
	if (strlen(text) >= sizeof(address->text))
		return false;
	strcpy(address->text, text);
	if (strchr(text, '/') != NULL) {
		address->un.sun_family = AF_UNIX;
		strcpy(address->un.sun_path, text);
		address->size = sizeof(address->un);
		return true;
	}
	if (len >= sizeof(host) ||
		!parse_number(colon != NULL ? colon + 1 : text, 1, 65535, &port))
		return false;
	if (colon != NULL) {
		memcpy(host, text, len);
		host[len] = '\0';
	}
	if (host[0] != '[')
		return ipv4_read(host, htons((uint16_t)port), address);
	if (host[len - 1] != ']')
		return false;
	host[len - 1] = '\0';
	return ipv6_read(host + 1, htons((uint16_t)port), address);
}
