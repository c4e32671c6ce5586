/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a snapshot. All series of a metric stand together, so each kind of object
 * (clients, SRQs ...) is first listed with its labels. */
#include <string.h>

#include <rocade/status.h>

#include "prometheus.h"
#include "snapshot.h"

static const struct metric device_metrics[] = {
	{"mtu", "mtu_bytes", GAUGE, 0, "IP MTU of the device"},
	{"local", "local", GAUGE, 0, "1: the daemon connects this machine only"},
	{"qpn_count", "qpns", GAUGE, 0, "QPNs of the device"},
	{"qpns_free", "qpns_free", GAUGE, 0, "QPNs that are not in use"},
	{"disconnected", "disconnected_clients_total", COUNTER, 0,
		"clients disconnected because their rings were corrupt"},
	{"parked", "parked_connections_total", COUNTER, 0,
		"times that a connection was parked"},
	{"core_slept", "core_slept_total", COUNTER, 0,
		"times that a thread slept because another program kept its core"},
	{"log_lines_lost", "log_lines_lost_total", COUNTER, 0,
		"lines of the daemon's log that standard error did not take"},
};

static const struct metric port_metrics[] = {
	{"link_up", "link_up", GAUGE, 0, "1: the port has a link"},
	{"unresolved", "unresolved_packets", GAUGE, 0,
		"packets that wait for the MAC address of their next hop"},
};

static const struct metric queue_metrics[] = {
	{"clients", "clients", GAUGE, 0, "clients of the queue's thread"},
};

static const struct metric cm_metrics[] = {
	{"ids", "ids", GAUGE, 0, "RDMA-CM IDs of all clients"},
	{"listeners", "listeners", GAUGE, 0, "RDMA-CM listeners of all clients"},
	{"groups", "groups", GAUGE, 0, "multicast groups of all clients"},
};

static const struct metric hidden_metrics[] = {
	{"clients", "clients", GAUGE, 0, "clients that the caller may not see"},
	{"users", "users", GAUGE, 0, "users that the caller may not see"},
};

static const struct metric limit_metrics[] = {
	{"all", "all", GAUGE, 0, "how much there is of a kind"},
	{"user", "user", GAUGE, 0, "how much one user may hold of a kind"},
	{"reserved", "reserved", GAUGE, 0, "how much is reserved for each user"},
	{"used", "used", GAUGE, 0, "how much all users hold of a kind"},
};

static const struct metric user_metrics[] = {
	{"refused", "refused_total", COUNTER, 0,
		"requests refused because the user held too much"},
	{"requests", "requests_total", COUNTER, 0, "control requests of the user"},
	{"request_us", "request_seconds_total", COUNTER, 1e-6,
		"CPU time that the user's control requests took"},
};

static const struct metric held_metric = {
	NULL, "held", GAUGE, 0, "how much the user's processes hold of a kind"};

static const struct metric info_metric = {
	NULL, "info", INFO, 0, "always 1: the labels are the information"};

static const struct metric latency_metric = {NULL, "request_seconds", HISTOGRAM, 1e-9,
	"how long requests took that were measured, every seventeenth of a QP"};

static const struct metric client_metrics[] = {
	{"answered", "answered", GAUGE, 0, "1: the client has answered the daemon"},
	{"qp_count", "qps", GAUGE, 0, "QPs of the client"},
	{"rx_waiting", "rx_waiting_packets", GAUGE, 0, "packets in the client's ring"},
	{"pairs", "pairs", GAUGE, 0,
		"other clients with which it exchanges packets directly"},
};

static const struct metric report_metrics[] = {
	{"srq_count", "srqs", GAUGE, 0, "SRQs of the client"},
	{"peer_count", "peers", GAUGE, 0, "addresses that the client is connected to"},
};

static const struct metric srq_metrics[] = {
	{"fill", "receives", GAUGE, 0, "posted receives"},
	{"size", "size", GAUGE, 0, "receives that the SRQ has room for"},
	{"limit", "limit", GAUGE, 0, "the armed limit; 0: none"},
	{"qps", "qps", GAUGE, 0, "QPs that use the SRQ"},
	{"error", "error", GAUGE, 0, "1: the SRQ is in the error state"},
	{"limit_events", "limit_events_total", COUNTER, 0,
		"times that the limit was reached"},
};

static const struct metric qp_metrics[] = {
	{"sq_fill", "sq_requests", GAUGE, 0, "requests in the send queue"},
	{"sq_size", "sq_size", GAUGE, 0, "requests that the send queue has room for"},
	{"sq_unacked_ns", "sq_unacknowledged_seconds", GAUGE, 1e-9,
		"age of the oldest unacknowledged request; 0: none"},
	{"sq_unsignaled_ns", "sq_unsignaled_seconds", GAUGE, 1e-9,
		"age of the oldest unsignaled request that holds its slot; 0: none"},
	{"rq_fill", "rq_receives", GAUGE, 0, "posted receives"},
	{"rq_size", "rq_size", GAUGE, 0, "receives that the receive queue has room for"},
};

static const struct metric peer_metrics[] = {
	{"qps", "qps", GAUGE, 0, "QPs that are connected to the address"},
	{"srtt_ns", "rtt_seconds", GAUGE, 1e-9,
		"smoothed round trip; 0: none was measured"},
	{"cap", "window_cap_packets", GAUGE, 0, "the most that a window can be"},
	{"cc", "cc", GAUGE, 0, "1: congestion control is on"},
};

static const struct metric window_metrics[] = {
	{"qps_blocked", "blocked_qps", GAUGE, 0, "QPs that wait for the window"},
	{"inflight", "inflight_packets", GAUGE, 0, "packets in flight"},
	{"window", "window_packets", GAUGE, 0, "the most packets that may be in flight"},
	{"cc_window", "cc_window_packets", GAUGE, 0, "window of congestion control"},
	{"cc_paced", "cc_paced", GAUGE, 0, "1: that window is below one packet"},
	{"cc_delay_ns", "cc_delay_seconds", GAUGE, 1e-9, "delay of the last round trip"},
	{"cc_target_ns", "cc_target_seconds", GAUGE, 1e-9,
		"delay that congestion control aims at; 0: delays do not count"},
};

static const char *
member_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text != NULL ? text : "";
}

#define METRICS_PRINT(to, list, prefix, metrics)                                         \
	metrics_print(to, list, prefix, metrics, sizeof(metrics) / sizeof((metrics)[0]))

static void
metrics_print(const struct metrics_to *to, const json_t *list, const char *prefix,
	const struct metric *metrics, size_t count)
{
	for (size_t i = 0; i < count; i++)
		metric_print(to, list, prefix, &metrics[i]);
}

static void
counters_print(const struct metrics_to *to, const json_t *list, const char *prefix,
	enum rocade_counters set)
{
	struct rocade_counter row;

	for (unsigned i = 0; (row = rocade_counter(set, i)).name != NULL; i++) {
		char name[80];
		struct metric m = {row.name, name, COUNTER, 0, row.text};

		if (strcmp(row.name, "drop_none") == 0)
			continue;
		snprintf(name, sizeof(name), "%s_total", row.name);
		metric_print(to, list, prefix, &m);
	}
}

static const char *
number_text(char text[24], const json_t *object, const char *name, const char *format)
{
	snprintf(text, 24, format, (long)number_of(object, name));
	return text;
}

static void
device_metrics_print(
	const struct metrics_to *to, const json_t *snapshot, const char *base)
{
	const json_t *address;
	json_t *list = json_object();
	size_t i;

	json_array_foreach(
		json_object_get(json_object_get(snapshot, "device"), "addresses"), i,
		address) list_add(list, json_true(), base, "address",
		json_string_value(address), NULL);
	metric_print(to, list, "address", &info_metric);
	json_decref(list);
	list = list_of_one(json_object_get(snapshot, "device"), base);
	METRICS_PRINT(to, list, "device", device_metrics);
	json_decref(list);
	list = list_of_one(json_object_get(snapshot, "port"), base);
	METRICS_PRINT(to, list, "port", port_metrics);
	counters_print(to, list, "port", ROCADE_COUNTERS_ENGINE);
	json_decref(list);
	list = list_of_one(json_object_get(snapshot, "rdma_cm"), base);
	METRICS_PRINT(to, list, "rdma_cm", cm_metrics);
	counters_print(to, list, "rdma_cm", ROCADE_COUNTERS_CM);
	json_decref(list);
	list = list_of_one(json_object_get(snapshot, "departed"), base);
	counters_print(to, list, "departed", ROCADE_COUNTERS_CLIENT);
	json_decref(list);
	list = list_of_one(json_object_get(snapshot, "hidden"), base);
	METRICS_PRINT(to, list, "hidden", hidden_metrics);
	json_decref(list);
}

/* Of a daemon with several queues. */
static void
queues_metrics_print(
	const struct metrics_to *to, const json_t *snapshot, const char *base)
{
	json_t *list = json_object();
	const json_t *queue;
	char number[24];
	size_t i;

	json_array_foreach(json_object_get(snapshot, "queues"), i, queue)
	{
		number_text(number, queue, "queue", "%ld");
		list_add(list, queue, base, "queue", number, NULL);
	}
	METRICS_PRINT(to, list, "queue", queue_metrics);
	counters_print(to, list, "queue", ROCADE_COUNTERS_QUEUE);
	json_decref(list);
}

static void
users_metrics_print(const struct metrics_to *to, const json_t *snapshot, const char *base)
{
	const json_t *limits = json_object_get(snapshot, "limits");
	json_t *kinds = json_object(), *users = json_object(), *held = json_object();
	const json_t *limit, *user;
	const char *kind;
	char uid[24];
	size_t i;

	json_object_foreach((json_t *)limits, kind, limit)
		list_add(kinds, limit, base, "kind", kind, NULL);
	json_array_foreach(json_object_get(snapshot, "users"), i, user)
	{
		number_text(uid, user, "uid", "%ld");
		list_add(users, user, base, "uid", uid, NULL);
		json_object_foreach((json_t *)limits, kind, limit)
			list_add(held, json_object_get(user, kind), base, "uid", uid,
				"kind", kind, NULL);
	}
	METRICS_PRINT(to, kinds, "limit", limit_metrics);
	METRICS_PRINT(to, users, "user", user_metrics);
	metric_print(to, held, "user", &held_metric);
	json_decref(kinds);
	json_decref(users);
	json_decref(held);
}

static void
latency_rows_add(json_t *list, const json_t *rows, const char *labels)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		list_add(list, row, labels, "type", member_text(row, "type"), "operation",
			member_text(row, "operation"), NULL);
	}
}

/* A client has up to 18 histograms with 26 series each: they are printed only if they are wanted. */
static void
latencies_metrics_print(const struct metrics_to *to, const json_t *snapshot,
	const json_t *clients, const char *base)
{
	json_t *list = json_object();
	const json_t *client;
	const char *labels;

	json_object_foreach((json_t *)clients, labels, client)
		latency_rows_add(list, json_object_get(client, "latencies"), labels);
	metric_print(to, list, "client", &latency_metric);
	json_object_clear(list);
	latency_rows_add(list, json_object_get(snapshot, "departed_latencies"), base);
	metric_print(to, list, "departed", &latency_metric);
	json_decref(list);
}

static void
latencies_sum_print(const struct metrics_to *to, const json_t *snapshot, const char *base)
{
	json_t *list = json_object();

	latency_rows_add(list, json_object_get(snapshot, "all_latencies"), base);
	metric_print(to, list, "device", &latency_metric);
	json_decref(list);
}

static void
clients_metrics_print(const struct metrics_to *to, const json_t *list)
{
	json_t *infos = json_object();
	const json_t *client;
	const char *labels;
	char pid[24], uid[24];

	json_object_foreach((json_t *)list, labels, client)
	{
		/* 0: the process is in another PID namespace than the daemon. */
		if (number_of(client, "pid") == 0)
			snprintf(pid, sizeof(pid), "unknown");
		else
			number_text(pid, client, "pid", "%ld");
		list_add(infos, json_true(), labels, "pid", pid, "uid",
			number_text(uid, client, "uid", "%ld"), NULL);
	}
	metric_print(to, infos, "client", &info_metric);
	METRICS_PRINT(to, list, "client", client_metrics);
	counters_print(to, list, "client", ROCADE_COUNTERS_CLIENT);
	json_decref(infos);
}

static void
reports_metrics_print(const struct metrics_to *to, const json_t *list)
{
	json_t *engines = json_object(), *srqs = json_object();
	const json_t *client, *srq;
	const char *labels;
	char number[24];
	size_t i;

	json_object_foreach((json_t *)list, labels, client)
	{
		list_add(engines, json_object_get(client, "engine"), labels, NULL);
		json_array_foreach(json_object_get(client, "srqs"), i, srq)
			list_add(srqs, srq, labels, "srqn",
				number_text(number, srq, "srqn", "0x%06lx"), NULL);
	}
	METRICS_PRINT(to, list, "client", report_metrics);
	counters_print(to, engines, "engine", ROCADE_COUNTERS_ENGINE);
	METRICS_PRINT(to, srqs, "srq", srq_metrics);
	json_decref(engines);
	json_decref(srqs);
}

static void
qps_metrics_print(const struct metrics_to *to, const json_t *list)
{
	json_t *qps = json_object(), *infos = json_object();
	const json_t *client, *qp;
	const char *labels;
	char qpn[24], dest[24];
	size_t i;

	json_object_foreach((json_t *)list, labels, client)
	{
		json_array_foreach(json_object_get(client, "qps"), i, qp)
		{
			number_text(qpn, qp, "qpn", "0x%06lx");
			list_add(qps, qp, labels, "qpn", qpn, NULL);
			list_add(infos, json_true(), labels, "qpn", qpn, "type",
				member_text(qp, "type"), "state",
				member_text(qp, "state"), "dest_qpn",
				number_text(dest, qp, "dest_qpn", "0x%06lx"), NULL);
		}
	}
	metric_print(to, infos, "qp", &info_metric);
	METRICS_PRINT(to, qps, "qp", qp_metrics);
	counters_print(to, qps, "qp", ROCADE_COUNTERS_QP);
	json_decref(qps);
	json_decref(infos);
}

static void
peers_metrics_print(const struct metrics_to *to, const json_t *list)
{
	json_t *peers = json_object(), *windows = json_object();
	const json_t *client, *peer;
	const char *labels;
	size_t i;

	json_object_foreach((json_t *)list, labels, client)
	{
		json_array_foreach(json_object_get(client, "peers"), i, peer)
		{
			const char *address = member_text(peer, "address");

			list_add(peers, peer, labels, "peer", address, NULL);
			list_add(windows, json_object_get(peer, "send"), labels, "peer",
				address, "window", "send", NULL);
			list_add(windows, json_object_get(peer, "read"), labels, "peer",
				address, "window", "read", NULL);
		}
	}
	METRICS_PRINT(to, peers, "peer", peer_metrics);
	METRICS_PRINT(to, windows, "peer", window_metrics);
	json_decref(peers);
	json_decref(windows);
}

void
prometheus_print(
	const struct metrics_to *to, const json_t *snapshot, const struct view_conf *conf)
{
	json_t *devices = json_object(), *clients = json_object();
	json_t *answered = json_object();
	const char *base, *labels;
	json_t *client;
	char id[24];
	size_t i;

	list_add(devices, json_true(), "", "device",
		member_text(json_object_get(snapshot, "device"), "name"), NULL);
	base = json_object_iter_key(json_object_iter(devices));
	if (base == NULL) /* no memory */
		base = "";
	json_array_foreach(json_object_get(snapshot, "clients"), i, client)
	{
		number_text(id, client, "id", "%ld");
		list_add(clients, client, base, "client", id, "program",
			member_text(client, "name"), NULL);
	}
	json_object_foreach(clients, labels, client)
	{
		/* Without an answer there are no values, or old ones. */
		if (json_is_true(json_object_get(client, "answered")))
			json_object_set(answered, labels, (json_t *)client);
	}
	device_metrics_print(to, snapshot, base);
	queues_metrics_print(to, snapshot, base);
	users_metrics_print(to, snapshot, base);
	clients_metrics_print(to, clients);
	latencies_sum_print(to, snapshot, base);
	if (conf->latencies)
		latencies_metrics_print(to, snapshot, clients, base);
	reports_metrics_print(to, answered);
	if (conf->peers)
		peers_metrics_print(to, answered);
	if (conf->qps)
		qps_metrics_print(to, answered);
	metrics_end(to);
	json_decref(devices);
	json_decref(clients);
	json_decref(answered);
}
