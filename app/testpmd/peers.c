/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "peers.h"
#include "testpmd_parse.h"

/* An address of a list. */
struct peer_item {
	char text[PEER_TEXT_MAX];
	uint8_t raw[16];
	bool placed; /* @N is behind it */
	uint64_t place;
};

struct peer_list {
	unsigned n;
	struct peer_item items[PEERS_MAX];
};

static bool
peer_address_read(const char *text, size_t len, struct peer_item *item)
{
	static const uint8_t v4_prefix[12] = {[10] = 0xff, [11] = 0xff};
	bool is_v6;

	if (len >= sizeof(item->text) || !parse_host_address(text, len, &is_v6))
		return false;
	memcpy(item->text, text, len);
	item->text[len] = '\0';
	if (is_v6)
		return inet_pton(AF_INET6, item->text, item->raw) == 1;
	memcpy(item->raw, v4_prefix, sizeof(v4_prefix));
	return inet_pton(AF_INET, item->text, item->raw + sizeof(v4_prefix)) == 1;
}

static bool
peer_item_read(const char *text, size_t len, struct peer_item *item)
{
	size_t at = strcspn(text, "@,");
	char place[4];

	item->placed = at < len;
	item->place = 0;
	if (!item->placed)
		return peer_address_read(text, len, item);
	if (len - at - 1 >= sizeof(place))
		return false;
	memcpy(place, text + at + 1, len - at - 1);
	place[len - at - 1] = '\0';
	return parse_number(place, 0, PEERS_MAX - 1, &item->place) &&
	       peer_address_read(text, at, item);
}

static bool
peer_list_has(const struct peer_list *list, unsigned n, const uint8_t raw[16])
{
	for (unsigned i = 0; i < n; i++) {
		if (memcmp(list->items[i].raw, raw, 16) == 0)
			return true;
	}
	return false;
}

static bool
peer_list_read(const char *text, struct peer_list *list)
{
	for (list->n = 0;; list->n++) {
		size_t len = strcspn(text, ",");
		struct peer_item *item = &list->items[list->n];

		if (list->n == PEERS_MAX || !peer_item_read(text, len, item) ||
			peer_list_has(list, list->n, item->raw))
			return false;
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	list->n++;
	return true;
}

/* Whether the address is one of --addr. */
static bool
is_own_address(const struct port_conf *pc, const uint8_t raw[16])
{
	for (const char *a = pc->addr; *a != '\0'; a += *a == ',') {
		struct peer_item own;

		if (peer_address_read(a, strcspn(a, "/,"), &own) &&
			memcmp(own.raw, raw, sizeof(own.raw)) == 0)
			return true;
		a += strcspn(a, ",");
	}
	return false;
}

void
peers_set(struct port_conf *pc)
{
	struct peer_list list;
	unsigned own;

	pc->n_peers = 0;
	pc->peers[0] = (struct peer_conf){0};
	if (pc->peer[0] == '\0' || !peer_list_read(pc->peer, &list))
		return;
	for (own = 0; own < list.n && !is_own_address(pc, list.items[own].raw); own++)
		continue;
	for (unsigned i = 0; i < list.n; i++) {
		const struct peer_item *item = &list.items[i];
		struct peer_conf *peer = &pc->peers[pc->n_peers];

		if (is_own_address(pc, item->raw))
			continue;
		/* The peer's list has this end, and not the peer itself. */
		peer->place = item->placed   ? (unsigned)item->place
			      : own < list.n ? own - (own > i)
					     : 0;
		strcpy(peer->addr, item->text);
		pc->n_peers++;
	}
}

bool
peers_add(struct port_conf *pc, const char *text)
{
	char all[PEER_LIST_MAX];
	struct peer_list list;
	int len = snprintf(all, sizeof(all), "%s%s%s", pc->peer_open ? pc->peer : "",
		pc->peer_open ? "," : "", text);

	if ((size_t)len >= sizeof(all) || !peer_list_read(all, &list))
		return false;
	strcpy(pc->peer, all);
	pc->peer_open = true;
	peers_set(pc);
	return true;
}

void
peers_replace(struct port_conf *pc, const char *address)
{
	snprintf(pc->peer, sizeof(pc->peer), "%s", address);
	pc->n_peers = 1;
	pc->peers[0] = (struct peer_conf){0};
	snprintf(pc->peers[0].addr, sizeof(pc->peers[0].addr), "%s", address);
}

double
peers_fairness(const uint64_t *values, unsigned n)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < n; i++) {
		sum += (double)values[i];
		squares += (double)values[i] * (double)values[i];
	}
	return squares > 0 ? sum * sum / (n * squares) : 1;
}
