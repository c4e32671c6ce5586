/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "peers.h"
#include "testpmd_parse.h"
#include "verify.h"

#define PLACE_DIGITS 3 /* of @N */

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

static const char *
item_peer(const char *text, void *list, unsigned n)
{
	struct peer_item *items = list, *item = &items[n];
	size_t at = strcspn(text, "@");

	item->placed = text[at] != '\0';
	item->place = 0;
	if (!peer_address_read(text, at, item))
		return "has no address that a host can have";
	if (item->placed &&
		(strlen(text + at + 1) > PLACE_DIGITS ||
			!parse_number(text + at + 1, 0, PEERS_MAX - 1, &item->place)))
		return "has no number from 0 to 63 behind @";
	for (unsigned i = 0; i < n; i++) {
		if (memcmp(items[i].raw, item->raw, sizeof(item->raw)) == 0)
			return "comes twice";
	}
	return NULL;
}

static bool
peer_list_read(const char *text, struct peer_list *list)
{
	list->n = parse_list(text, list->items, PEERS_MAX, item_peer);
	return list->n != 0;
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

const char *
peers_list_wrong(const struct port_conf *pc, char entry[PEER_TEXT_MAX])
{
	struct peer_list list;
	unsigned own = PEERS_MAX;

	if (pc->peer[0] == '\0' || !peer_list_read(pc->peer, &list))
		return NULL;
	for (unsigned i = 0; i < list.n; i++) {
		strcpy(entry, list.items[i].text);
		if (!is_own_address(pc, list.items[i].raw))
			continue;
		if (list.items[i].placed)
			return "is the port's own address; expected it without @N, in a list "
			       "of all ends";
		if (own != PEERS_MAX)
			return "is the second of the port's own addresses; expected one of "
			       "each end";
		own = i;
	}
	for (unsigned i = 0; own != PEERS_MAX && i < list.n; i++) {
		strcpy(entry, list.items[i].text);
		if (list.items[i].placed)
			return "has @N in a list of all ends; expected none, as the order of "
			       "the list says it";
		if ((strchr(entry, ':') == NULL) !=
			(strchr(list.items[own].text, ':') == NULL))
			return "is of another family than the port's own address in the list";
	}
	return NULL;
}

int
peers_place_of(const struct conf *conf, const struct port_conf *pc, uint32_t qpn,
	bool back, uint64_t msg, const uint8_t *data, uint64_t len)
{
	uint32_t base = (uint32_t)conf->qpn_base,
		 qps = (uint32_t)conf_qps(conf, pc) * conf_qpns(conf, pc);
	uint32_t index = (qpn - base) % qps;
	size_t first;

	for (uint32_t place = 0; place < PEERS_MAX && len >= sizeof(uint64_t); place++) {
		uint32_t flow = verify_flow(base + place * qps + index, qpn, back);

		if (verify_check(data, len, verify_seed(flow, msg), &first) == 0)
			return (int)place;
	}
	return -1;
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
	return squares > 0 ? sum * sum / (n * squares) : 0;
}
