/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/gid.h"
#include "shm/session.h"
#include "shm/shm_facts.h"
#include "switch/socket.h"

/* For a process that has had the facts before, and then keeps those: a program that reads a file does not wait
 * longer for a daemon that is stopped. */
#define AGAIN_MS 200

uint64_t
shm_device_guid(const struct sw_device *device)
{
	uint8_t gid[16];
	uint64_t guid = 0;

	gid_link_local(device->net.mac, gid);
	for (unsigned i = 8; i < 16; i++)
		guid = guid << 8 | gid[i];
	return guid;
}

/* Adds up the members of this name, of all objects of the text. */
static uint64_t
members_sum(const char *text, const char *name)
{
	uint64_t sum = 0;
	char member[40];

	snprintf(member, sizeof(member), "\"%s\":", name);
	while ((text = strstr(text, member)) != NULL) {
		text += strlen(member);
		sum += strtoull(text, NULL, 10);
	}
	return sum;
}

/* Packets of a pair of programs do not go through the daemon: what one has received the other has
 * sent. */
static void
counters_add(const char *text, struct device_facts *out)
{
	uint64_t packets = members_sum(text, "pair_packets");
	uint64_t bytes = members_sum(text, "pair_bytes");

	out->tx_packets += members_sum(text, "tx_packets") + packets;
	out->tx_bytes += members_sum(text, "tx_bytes") + bytes;
	out->rx_packets += members_sum(text, "rx_packets") + packets;
	out->rx_bytes += members_sum(text, "rx_bytes") + bytes;
}

/* Fetches a part of the daemon's state. *text points into the reply. */
static int
part_fetch(struct session *s, enum sw_status_part part, uint32_t from,
	struct sw_data_reply *reply, const char **text)
{
	struct sw_request req = {.type = SW_STATUS, .qpn = part, .dest_qpn = from};
	int rc = session_fetch(s, &req, reply);

	if (rc != 0)
		return rc;
	reply->bytes[RTE_MIN(reply->len, SW_DATA_MAX - 1u)] = '\0';
	*text = (const char *)reply->bytes;
	return 0;
}

static int
counters_fetch(struct session *s, struct device_facts *out)
{
	struct sw_data_reply reply;
	const char *text, *departed;
	uint32_t from = 0;
	int rc = part_fetch(s, SW_STATUS_DEVICE, 0, &reply, &text);

	if (rc != 0)
		return rc;
	out->cm_ids = members_sum(text, "ids");
	/* The members before it count the port's packets, which are packets of clients, too. */
	departed = strstr(text, "\"departed\":");
	if (departed != NULL)
		counters_add(departed, out);
	do {
		rc = part_fetch(s, SW_STATUS_CLIENT, from, &reply, &text);
		if (rc == 0) {
			counters_add(text, out);
			out->qps += members_sum(text, "qp_count");
			from = reply.id + 1;
		}
	} while (rc == 0 && from != 0);
	return rc == -ENOENT ? 0 : rc;
}

static void
socket_name(const char *socket, struct device_facts *out)
{
	char whole[PATH_MAX];
	struct sockaddr_un addr;

	if (sw_socket_path(socket, true, &addr) == 0 &&
		realpath(addr.sun_path, whole) != NULL &&
		strlen(whole) < sizeof(out->socket))
		strcpy(out->socket, whole);
	else
		snprintf(out->socket, sizeof(out->socket), "%s", addr.sun_path);
}

int
shm_facts(const char *socket, bool counters, bool again, struct device_facts *out)
{
	struct sw_device device;
	struct session session;
	int rc = again ? session_open_within(&session, socket, AGAIN_MS)
		       : session_open(&session, socket);

	memset(out, 0, sizeof(*out));
	if (rc != 0)
		return rc;
	rc = session_device(&session, &device);
	if (rc == 0) {
		memcpy(out->name, device.name, sizeof(out->name));
		out->guid = shm_device_guid(&device);
		out->instance = device.index;
		out->link_up = device.link_up;
		socket_name(socket, out);
		gid_link_local(
			device.net.mac, device.net.addr[device.net.addr_count].gid);
		device.net.addr_count++;
		dev_gids_fill(&device.net, out->gids);
		if (counters)
			rc = counters_fetch(&session, out);
	}
	if (rc == -ENODEV && session.timed_out)
		rc = -ETIMEDOUT;
	session_close(&session);
	return rc;
}
