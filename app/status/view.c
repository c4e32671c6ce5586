/* SPDX-License-Identifier: BSD-3-Clause */
#include <pwd.h>
#include <rocade/status.h>

#include <common/impair_option.h>

#include "snapshot.h"
#include "view.h"
#include "view_latencies.h"
#include "view_slowest.h"

static const char *
text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text != NULL ? text : "";
}

/* If the daemon impairs packets: which, how many of them, and how often it was done. */
static void
view_impair(FILE *to, const json_t *impair, bool local)
{
	const struct rocade_impair rates = {
		.loss_ppm = (uint32_t)number_of(impair, "loss_ppm"),
		.duplicate_ppm = (uint32_t)number_of(impair, "duplicate_ppm"),
		.reorder_ppm = (uint32_t)number_of(impair, "reorder_ppm"),
		.corrupt_ppm = (uint32_t)number_of(impair, "corrupt_ppm"),
		.seed = (uint64_t)json_integer_value(json_object_get(impair, "seed"))};
	char text[IMPAIR_TEXT_MAX];

	if (!impair_wanted(&rates))
		return;
	fprintf(to,
		"packets %s are impaired on purpose: %s: %.0f lost, %.0f duplicated, "
		"%.0f reordered, %.0f corrupted\n",
		local ? "between clients" : "of the port", impair_format(&rates, text),
		number_of(impair, "lost"), number_of(impair, "duplicated"),
		number_of(impair, "reordered"), number_of(impair, "corrupted"));
}

static void
view_device(FILE *to, const json_t *snapshot)
{
	const json_t *device = json_object_get(snapshot, "device");
	const json_t *address;
	size_t i;

	fprintf(to, "%s at %s%s: MTU %.0f", text_of(device, "name"),
		text_of(snapshot, "socket"),
		json_is_true(json_object_get(device, "local")) ? ", this machine only"
							       : "",
		number_of(device, "mtu"));
	json_array_foreach(json_object_get(device, "addresses"), i, address)
		fprintf(to, ", %s", json_string_value(address));
	fprintf(to, "\n%.0f of %.0f QPNs in use",
		number_of(device, "qpn_count") - number_of(device, "qpns_free"),
		number_of(device, "qpn_count"));
	if (number_of(device, "disconnected") != 0)
		fprintf(to, "; %.0f clients disconnected for corrupted rings",
			number_of(device, "disconnected"));
	fprintf(to, "\n");
	view_impair(to, json_object_get(snapshot, "impair"),
		json_is_true(json_object_get(device, "local")));
}

/* Divides the value for its suffix, of thousands, millions and so on, and returns that. */
static char
short_scale(double *value)
{
	static const char units[] = " kMGTP";
	unsigned unit = 0;

	while (*value >= 9999.5 && unit + 2 < sizeof(units)) {
		*value /= 1000;
		unit++;
	}
	return units[unit];
}

static void
short_print(FILE *to, double value, int width)
{
	char unit = short_scale(&value);

	fprintf(to, " %*.0f%c", width - 1, value, unit);
}

static const char *
user_name(const json_t *client, char *buf, size_t size)
{
	const struct passwd *user = getpwuid((uid_t)number_of(client, "uid"));

	snprintf(buf, size, "%.0f", number_of(client, "uid"));
	return user != NULL ? user->pw_name : buf;
}

/* Prints the error counters that are not 0, in one line. */
static void
view_errors(FILE *to, const char *whose, enum rocade_counters set, const json_t *counters)
{
	const char *before = whose;
	struct rocade_counter row;

	for (unsigned i = 0; (row = rocade_counter(set, i)).name != NULL; i++) {
		double value = number_of(counters, row.name);

		if (!row.error || value == 0)
			continue;
		fprintf(to, "%s%s %.0f", before, row.name, value);
		before = ", ";
	}
	if (before != whose)
		fprintf(to, "\n");
}

static void
view_port(FILE *to, const json_t *port)
{
	if (port == NULL)
		return;
	fprintf(to, "port: link %s, %.0f frames in, %.0f out\n",
		json_is_true(json_object_get(port, "link_up")) ? "up" : "down",
		number_of(port, "rx_packets"), number_of(port, "tx_packets"));
	view_errors(to, "port: ", ROCADE_COUNTERS_ENGINE, port);
}

static void
view_queues(FILE *to, const json_t *queues)
{
	const json_t *queue;
	char whose[32];
	size_t i;

	json_array_foreach(queues, i, queue)
	{
		snprintf(whose, sizeof(whose), "queue %zu: ", i);
		fprintf(to,
			"%s%.0f clients, %.0f packets from them, %.0f received, %.0f handed "
			"over, %.0f taken over\n",
			whose, number_of(queue, "clients"),
			number_of(queue, "tx_packets"), number_of(queue, "rx_packets"),
			number_of(queue, "handed_over"), number_of(queue, "taken_over"));
		view_errors(to, whose, ROCADE_COUNTERS_QUEUE, queue);
	}
}

static void
view_srqs(FILE *to, const json_t *client)
{
	const json_t *srq;
	size_t i;

	json_array_foreach(json_object_get(client, "srqs"), i, srq)
	{
		fprintf(to, "      %s 0x%06x: %.0f of %.0f",
			json_is_true(json_object_get(srq, "xrc")) ? "XRC SRQ" : "SRQ",
			(unsigned)number_of(srq, "srqn"), number_of(srq, "fill"),
			number_of(srq, "size"));
		if (number_of(srq, "limit") != 0)
			fprintf(to, ", limit %.0f", number_of(srq, "limit"));
		fprintf(to, ", %.0f limit events, %.0f QPs%s\n",
			number_of(srq, "limit_events"), number_of(srq, "qps"),
			json_is_true(json_object_get(srq, "error")) ? ", in error" : "");
	}
}

/* Prints how long the oldest request of this kind has been there, if there is one. */
static void
view_age(FILE *to, const json_t *qp, const char *name, const char *kind)
{
	double ns = number_of(qp, name);

	if (ns != 0)
		fprintf(to, ", oldest %s %.3f s", kind, ns / 1e9);
}

static void
view_qps(FILE *to, const json_t *client)
{
	const json_t *qp;
	size_t i;

	json_array_foreach(json_object_get(client, "qps"), i, qp)
	{
		fprintf(to, "      QP 0x%06x %s %s", (unsigned)number_of(qp, "qpn"),
			text_of(qp, "type"), text_of(qp, "state"));
		if (number_of(qp, "dest_qpn") != 0)
			fprintf(to, " to 0x%06x", (unsigned)number_of(qp, "dest_qpn"));
		fprintf(to, ", SQ %.0f of %.0f", number_of(qp, "sq_fill"),
			number_of(qp, "sq_size"));
		view_age(to, qp, "sq_unacked_ns", "unacknowledged");
		view_age(to, qp, "sq_unsignaled_ns", "unsignaled");
		if (number_of(qp, "srqn") != 0)
			fprintf(to, ", SRQ 0x%06x", (unsigned)number_of(qp, "srqn"));
		else if (number_of(qp, "rq_size") != 0)
			fprintf(to, ", RQ %.0f of %.0f", number_of(qp, "rq_fill"),
				number_of(qp, "rq_size"));
		fprintf(to, "; %.0f sent, %.0f received, %.0f retransmitted\n",
			number_of(qp, "tx_msgs"), number_of(qp, "rx_msgs"),
			number_of(qp, "retransmitted"));
	}
	if ((double)i < number_of(client, "qp_count"))
		fprintf(to, "      and %.0f more QPs\n",
			number_of(client, "qp_count") - (double)i);
}

/* Prints a line for one of a peer's windows. cc: congestion control is on. */
static void
view_peer_window(FILE *to, const json_t *peer, const char *name, bool cc)
{
	const json_t *w = json_object_get(peer, name);

	fprintf(to, "        %s: %.0f of %.0f packets in flight, %.0f QPs blocked", name,
		number_of(w, "inflight"), number_of(w, "window"),
		number_of(w, "qps_blocked"));
	if (cc) {
		fprintf(to, ", congestion window %.2f packets%s",
			number_of(w, "cc_window"),
			json_is_true(json_object_get(w, "cc_paced")) ? " (paced)" : "");
		if (number_of(w, "cc_target_ns") == 0)
			fprintf(to, ", delays do not count");
		else {
			if (json_object_get(w, "cc_delay_ns") != NULL)
				fprintf(to, ", delay %.1f us",
					number_of(w, "cc_delay_ns") / 1e3);
			fprintf(to, ", target %.1f us",
				number_of(w, "cc_target_ns") / 1e3);
		}
	}
	fputc('\n', to);
}

static void
view_peers(FILE *to, const json_t *client)
{
	const json_t *peer;
	size_t i;

	json_array_foreach(json_object_get(client, "peers"), i, peer)
	{
		bool cc = json_is_true(json_object_get(peer, "cc"));

		fprintf(to, "      peer %s: %.0f QPs, ", text_of(peer, "address"),
			number_of(peer, "qps"));
		if (number_of(peer, "srtt_ns") != 0)
			fprintf(to, "round trip %.1f us",
				number_of(peer, "srtt_ns") / 1e3);
		else
			fprintf(to, "no round trip measured");
		fprintf(to, ", window cap %.0f packets%s\n", number_of(peer, "cap"),
			cc ? "" : ", no congestion control");
		view_peer_window(to, peer, "send", cc);
		view_peer_window(to, peer, "read", cc);
	}
	if ((double)i < number_of(client, "peer_count"))
		fprintf(to, "      and %.0f more peers\n",
			number_of(client, "peer_count") - (double)i);
}

/* Prints what the client has received directly from other clients, if there is any. moved: the
 * client, or its rates. */
static void
view_pairs(FILE *to, const json_t *client, const json_t *moved)
{
	const char *per = moved != client ? "/s" : "";

	if (number_of(client, "pairs") == 0 && number_of(client, "pair_packets") == 0)
		return;
	fprintf(to, "      %.0f pairs: rx pkt%s", number_of(client, "pairs"), per);
	short_print(to, number_of(moved, "pair_packets"), 8);
	fprintf(to, ", rx B%s", per);
	short_print(to, number_of(moved, "pair_bytes"), 8);
	fputc('\n', to);
}

/* Prints what clients that have ended have moved, unless it is nothing. */
static void
view_departed(FILE *to, const json_t *departed)
{
	static const char *const what[][2] = {
		{"tx_packets", "through the daemon: tx pkt"}, {"tx_bytes", ", tx B"},
		{"rx_packets", ", rx pkt"}, {"rx_bytes", ", rx B"},
		{"pair_packets", "; by pairs: rx pkt"}, {"pair_bytes", ", rx B"}};

	if (number_of(departed, "tx_packets") + number_of(departed, "rx_packets") +
			number_of(departed, "pair_packets") !=
		0) {
		fprintf(to, "departed clients moved ");
		for (unsigned i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
			double value = number_of(departed, what[i][0]);
			char unit = short_scale(&value);

			fprintf(to, "%s %.0f%.*s", what[i][1], value, unit != ' ', &unit);
		}
		fputc('\n', to);
	}
	view_errors(to, "departed clients: ", ROCADE_COUNTERS_CLIENT, departed);
}

/* The daemon does not know the number of a process in another PID namespace. */
static const char *
process_text(const json_t *client, char *text, size_t size)
{
	snprintf(text, size, "%.0f", number_of(client, "pid"));
	return number_of(client, "pid") != 0 ? text : "unknown";
}

static void
view_client(FILE *to, const json_t *client, const struct view_conf *conf)
{
	const json_t *rates = json_object_get(client, "rates");
	const json_t *moved = rates != NULL ? rates : client;
	char uid[24], pid[24];

	fprintf(to, "%4.0f %7s %-10.10s %-15s %6.0f %5.0f", number_of(client, "id"),
		process_text(client, pid, sizeof(pid)),
		user_name(client, uid, sizeof(uid)), text_of(client, "name"),
		number_of(client, "qp_count"), number_of(client, "srq_count"));
	short_print(to, number_of(moved, "tx_packets"), 8);
	short_print(to, number_of(moved, "tx_bytes"), 8);
	short_print(to, number_of(moved, "rx_packets"), 8);
	short_print(to, number_of(moved, "rx_bytes"), 8);
	fprintf(to, "%s\n",
		json_is_false(json_object_get(client, "answered")) ? "  does not answer"
								   : "");
	view_pairs(to, client, moved);
	view_errors(to, "      daemon: ", ROCADE_COUNTERS_CLIENT, client);
	view_errors(to, "      engine: ", ROCADE_COUNTERS_ENGINE,
		json_object_get(client, "engine"));
	view_srqs(to, client);
	if (conf->latencies)
		view_latencies(to, "      ", json_object_get(client, "latencies"));
	if (conf->slow)
		view_slowest(to, json_object_get(client, "slowest"));
	if (conf->peers)
		view_peers(to, client);
	if (conf->qps)
		view_qps(to, client);
}

/* Says what is missing, and why. */
static void
view_hidden(FILE *to, const json_t *hidden)
{
	if (number_of(hidden, "users") == 0)
		return;
	fprintf(to,
		"not shown: %.0f clients of %.0f other users (only root and the daemon's "
		"user see them)\n",
		number_of(hidden, "clients"), number_of(hidden, "users"));
}

/* Prints what a user holds of what one user may hold. */
static void
view_user(FILE *to, const json_t *user, const json_t *limits)
{
	const json_t *limit;
	const char *kind, *before = " holds ";
	char uid[24];

	fprintf(to, "user %s", user_name(user, uid, sizeof(uid)));
	json_object_foreach((json_t *)limits, kind, limit)
	{
		if (number_of(user, kind) == 0)
			continue;
		fprintf(to, "%s%.0f of %.0f %s", before, number_of(user, kind),
			number_of(limit, "user"), kind);
		before = ", ";
	}
	if (number_of(user, "refused") != 0)
		fprintf(to, "; %.0f requests refused", number_of(user, "refused"));
	fprintf(to, "\n");
}

void
view_print(FILE *to, const json_t *snapshot, const struct view_conf *conf)
{
	const json_t *clients = json_object_get(snapshot, "clients");
	const json_t *client;
	bool rates = false;
	size_t i;

	view_device(to, snapshot);
	view_port(to, json_object_get(snapshot, "port"));
	view_queues(to, json_object_get(snapshot, "queues"));
	fprintf(to, "\n");
	json_array_foreach(clients, i, client) rates |=
		json_object_get(client, "rates") != NULL;
	fprintf(to, "%4s %7s %-10s %-15s %6s %5s %8s %8s %8s %8s\n", "id", "pid", "user",
		"program", "QPs", "SRQs", rates ? "tx pkt/s" : "tx pkt",
		rates ? "tx B/s" : "tx B", rates ? "rx pkt/s" : "rx pkt",
		rates ? "rx B/s" : "rx B");
	json_array_foreach(clients, i, client) view_client(to, client, conf);
	if (json_array_size(clients) == 0)
		fprintf(to, "no clients%s\n",
			number_of(json_object_get(snapshot, "hidden"), "clients") != 0
				? " of this user"
				: "");
	json_array_foreach(json_object_get(snapshot, "users"), i, client)
		view_user(to, client, json_object_get(snapshot, "limits"));
	view_hidden(to, json_object_get(snapshot, "hidden"));
	view_departed(to, json_object_get(snapshot, "departed"));
	if (conf->latencies)
		view_latencies(to, "departed clients: ",
			json_object_get(snapshot, "departed_latencies"));
}
