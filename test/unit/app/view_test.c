/* SPDX-License-Identifier: BSD-3-Clause */
/* Which counters rocade-status shows as errors, and its rates. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/status.h>

#include "case.h"
#include "status/snapshot.h"
#include "status/view.h"

/* An object in which each counter of the set is 1, and so are members that are no counters. */
static json_t *
all_counters(enum rocade_counters set)
{
	json_t *object = json_object();
	struct rocade_counter row;

	json_object_set_new(object, "id", json_integer(1));
	json_object_set_new(object, "qp_count", json_integer(1));
	json_object_set_new(object, "cc_waiting_room", json_integer(1));
	for (unsigned i = 0; (row = rocade_counter(set, i)).name != NULL; i++)
		json_object_set_new(object, row.name, json_integer(1));
	return object;
}

/* Returns the text of a snapshot, which the caller frees. */
static char *
text_of(const json_t *snapshot, bool latencies)
{
	const struct view_conf conf = {.latencies = latencies};
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	view_print(to, snapshot, &conf);
	assert_int_equal(fclose(to), 0);
	return text;
}

/* Returns the line of the text that begins so, which the caller frees. */
static char *
line_of(json_t *snapshot, const char *begin)
{
	char *text = text_of(snapshot, false), *line;

	json_decref(snapshot);
	line = strstr(text, begin);
	assert_non_null(line);
	line = strndup(line, strcspn(line, "\n"));
	free(text);
	return line;
}

/* The names in `list` are separated by blanks. */
static void
names_check(const char *line, const char *list, bool shown)
{
	char *copy = strdup(list), *rest = NULL;

	for (char *name = strtok_r(copy, " ", &rest); name != NULL;
		name = strtok_r(NULL, " ", &rest)) {
		char entry[64];

		snprintf(entry, sizeof(entry), " %s 1", name);
		if ((strstr(line, entry) != NULL) != shown)
			fail_msg("%s: %s in: %s", name, shown ? "not" : "is", line);
	}
	free(copy);
}

TEST(errors_of_an_engine)
{
	json_t *client = all_counters(ROCADE_COUNTERS_CLIENT);
	char *line;

	json_object_set_new(client, "engine", all_counters(ROCADE_COUNTERS_ENGINE));
	line = line_of(json_pack("{s:[o]}", "clients", client), "      engine: ");
	names_check(line,
		"rx_packets tx_bytes rx_other qps_steered ecn_marked cc_waits tx_from_post "
		"tx_from_post_missed ack_delayed "
		"ack_delayed_missed ack_coalesced ack_coalesced_missed core_offers "
		"events_waited events_waited_missed events_late pair_tx pair_tx_placed "
		"pair_tx_far "
		"pair_rx_placed pair_wakeups pair_lags rx_linearised spread "
		"timeouts_waited direct_placed direct_place_missed cqe_saved ext_queries "
		"ext_answers ext_hosts_none ext_hosts_silent drop_none cycles_parse id "
		"cc_waiting_room",
		false);
	names_check(line,
		"cc_cut_loss tx_no_buffer tx_given_up tx_no_neighbour pair_full "
		"pair_malformed rnr_nak_sent rnr_nak_received held seq_nak_sent "
		"sack_sent ack_timeouts retransmitted retries_exceeded "
		"rnr_retries_exceeded duplicates tlp_sent drop_icrc drop_qpn "
		"drop_ext_unasked",
		true);
	free(line);
}

TEST(errors_of_a_client_and_a_queue)
{
	json_t *client = all_counters(ROCADE_COUNTERS_CLIENT);
	char *line = line_of(json_pack("{s:[o]}", "clients", client), "      daemon: ");

	names_check(line,
		"tx_packets rx_bytes tx_blocked wakeups waited pair_packets pair_bytes "
		"requests ext_queries id qp_count",
		false);
	names_check(line,
		"rx_full rx_unheld throttled impair_lost impair_corrupted pairs_refused refused peer_taken "
		"drop_descriptor drop_not_owner drop_port_full",
		true);
	free(line);
	line = line_of(
		json_pack("{s:o}", "departed", all_counters(ROCADE_COUNTERS_CLIENT)),
		"departed clients: rx_full 1, rx_unheld 1, throttled 1, ");
	free(line);
	client = all_counters(ROCADE_COUNTERS_QUEUE);
	line = line_of(json_pack("{s:[o]}", "queues", client), "queue 0: drop");
	assert_string_equal(line, "queue 0: drop_handover_full 1");
	free(line);
}

/* One who wonders about losses must see that they are wanted. */
TEST(impairment_is_shown)
{
	char *line = line_of(
		json_pack("{s:{s:i,s:i,s:i,s:i,s:i}}", "impair", "loss_ppm", 10000,
			"corrupt_ppm", 500, "seed", 3, "lost", 77, "corrupted", 8),
		"packets ");

	assert_string_equal(line,
		"packets of the port are impaired on purpose: loss=1%,corrupt=0.05%, seed 3: "
		"77 lost, 0 duplicated, 0 reordered, 8 corrupted");
	free(line);
	line = line_of(json_pack("{s:{s:b},s:{s:i}}", "device", "local", true, "impair",
			       "reorder_ppm", 1),
		"packets between clients are impaired on purpose: reorder=0.0001%");
	free(line);
}

/* A line has what clients that have ended moved, through the daemon and by pairs. */
TEST(traffic_of_departed_clients)
{
	free(line_of(json_pack("{s:{s:i,s:i,s:i,s:i,s:i,s:i}}", "departed", "tx_packets",
			     12, "tx_bytes", 3456, "rx_packets", 7, "rx_bytes", 890,
			     "pair_packets", 40000, "pair_bytes", 50),
		"departed clients moved through the daemon: tx pkt 12, tx B 3456, rx pkt 7, "
		"rx B 890; by pairs: rx pkt 40k, rx B 50"));
	free(line_of(json_pack("{s:{s:i}}", "departed", "pair_packets", 1),
		"departed clients moved "));
}

static json_t *
snapshot_of_latencies(void)
{
	return json_pack(
		"{s:[{s:i,s:[{s:s,s:s,s:i,s:i,s:{s:i,s:i,s:i,s:i}}]}],s:[{s:s,s:s,s:i,s:"
		"i,s:{s:i,s:i}}]}",
		"clients", "id", 1, "latencies", "type", "RC", "operation", "read",
		"count", 1000, "sum_ns", 1500000, "buckets", "512", 499, "1024", 490,
		"4194304", 9, "inf", 2, "departed_latencies", "type", "UC", "operation",
		"send", "count", 1, "sum_ns", 2000000, "buckets", "2147483648", 1, "inf",
		0);
}

/* By the longest time of a bucket; of the last bucket by the shortest one. */
TEST(latencies_of_clients)
{
	json_t *snapshot = snapshot_of_latencies();
	char *text = text_of(snapshot, true);

	assert_non_null(strstr(text,
		"\n      RC read: 1000 measured, mean 1.5 us, 50 % within 1.0 us, 99 % within "
		"4.2 ms, 99.9 % above 4.2 ms\n"));
	assert_non_null(strstr(text,
		"\ndeparted clients: UC send: 1 measured, mean 2.0 ms, 50 % within 2.1 s, 99 % "
		"within 2.1 s, 99.9 % within 2.1 s\n"));
	free(text);
	text = text_of(snapshot, false);
	assert_null(strstr(text, "measured"));
	free(text);
	json_decref(snapshot);
}

/* Each row goes to its client, that with the id 0 to those that have departed. */
TEST(latencies_have_their_client)
{
	json_t *snapshot = snapshot_read(strdup(
		"{\"daemon\": {\"clients\": [{\"id\": 1}, {\"id\": 2}], \"latencies\": "
		"[{\"id\": 0, \"latencies\": [7]}, {\"id\": 2, \"latencies\": [8, 9]},"
		" {\"id\": 3, \"latencies\": [1]}]}, \"reports\": []}"));
	const json_t *clients = json_object_get(snapshot, "clients");

	assert_int_equal(
		json_array_size(json_object_get(snapshot, "departed_latencies")), 1);
	assert_true(
		json_is_array(json_object_get(json_array_get(clients, 0), "latencies")));
	assert_int_equal(
		json_array_size(json_object_get(json_array_get(clients, 0), "latencies")),
		0);
	assert_int_equal(
		json_array_size(json_object_get(json_array_get(clients, 1), "latencies")),
		2);
	assert_null(json_object_get(snapshot, "latencies"));
	assert_true(
		json_is_array(json_object_get(json_array_get(clients, 1), "slowest")));
	json_decref(snapshot);
}

/* Parts that are 0, and counts, are left out, and the longest part stands first. */
TEST(slowest_requests_of_clients)
{
	const struct view_conf conf = {.slow = true};
	json_t *snapshot = json_pack(
		"{s:[{s:i,s:[{s:s,s:s,s:[{s:i,s:i,s:i,s:i,s:{s:i,s:i,s:i},s:i,s:i},"
		"{s:i,s:i,s:i,s:i,s:{}}]}]}]}",
		"clients", "id", 1, "slowest", "type", "RC", "operation", "read",
		"requests", "ended_ns", 1, "qpn", 0x12ab, "bytes", 4096, "took_ns",
		4200500, "spent_ns", "queue", 500, "window", 0, "timer", 4200000,
		"resent", 3, "naks", 1, "ended_ns", 1, "qpn", 1, "bytes", 0, "took_ns", 0,
		"spent_ns");
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	view_print(to, snapshot, &conf);
	assert_int_equal(fclose(to), 0);
	assert_non_null(strstr(text, "\n      slowest RC read:\n        4.2 ms, "));
	assert_non_null(strstr(text,
		" s ago, QP 0x0012ab, 4096 bytes: timer 4.2 ms, queue 0.5 us; "
		"resent 3, NAKs 1\n        0.0 us, "));
	assert_non_null(strstr(text, " s ago, QP 0x000001, 0 bytes\n"));
	free(text);
	text = text_of(snapshot, true);
	assert_null(strstr(text, "slowest"));
	free(text);
	json_decref(snapshot);
}

TEST(without_errors_there_is_no_line)
{
	json_t *snapshot = json_pack("{s:{s:i,s:i,s:i}}", "port", "rx_packets", 5,
		"tx_from_post", 7, "drop_icrc", 0);
	char *text = text_of(snapshot, false);

	json_decref(snapshot);
	assert_null(strstr(text, "port: tx"));
	assert_null(strstr(text, "drop_icrc"));
	free(text);
}

/* The name says it: what was dropped is an error in each set. */
TEST(each_drop_is_an_error)
{
	struct rocade_counter row;

	for (int set = ROCADE_COUNTERS_ENGINE; set <= ROCADE_COUNTERS_QUEUE; set++) {
		unsigned errors = 0, i;

		for (i = 0;
			(row = rocade_counter((enum rocade_counters)set, i)).name != NULL;
			i++) {
			errors += row.error;
			if (strncmp(row.name, "drop_", 5) == 0 &&
				row.error != (strcmp(row.name, "drop_none") != 0))
				fail_msg("%s", row.name);
		}
		assert_in_range(errors, 1, i - 1);
	}
}

/* Two clients: one came since the last round. */
TEST(rates_of_a_new_client)
{
	json_t *before = json_pack("{s:[{s:i,s:i,s:i}]}", "clients", "id", 1,
		"tx_packets", 100, "rx_bytes", 7);
	json_t *now = json_pack("{s:[{s:i,s:i,s:i}, {s:i,s:i,s:i}]}", "clients", "id", 1,
		"tx_packets", 600, "rx_bytes", 7, "id", 2, "tx_packets", 4000, "rx_bytes",
		60000);
	const json_t *clients = json_object_get(now, "clients");
	const json_t *old, *new;
	char *line;

	snapshot_rates(now, before, 0);
	assert_null(json_object_get(json_array_get(clients, 0), "rates"));
	snapshot_rates(now, before, 2);
	old = json_object_get(json_array_get(clients, 0), "rates");
	new = json_object_get(json_array_get(clients, 1), "rates");
	assert_true(
		number_of(old, "tx_packets") == 250 && number_of(old, "rx_bytes") == 0);
	assert_true(number_of(new, "tx_packets") == 2000 &&
		    number_of(new, "rx_bytes") == 30000);
	json_decref(before);
	line = line_of(now, "   2 ");
	assert_non_null(strstr(line, "    2000        0        0       30k"));
	free(line);
}

#define CLIENTS 65536

/* Returns what a daemon says that has the most clients: each number with its report, in another order. */
static char *
text_of_clients(void)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	fprintf(to, "{\"daemon\": {\"clients\": [");
	for (unsigned i = 0; i < CLIENTS; i++)
		fprintf(to, "%s{\"id\": %u, \"tx_packets\": %u}", i != 0 ? "," : "",
			i + 1, 2 * i);
	fprintf(to, "]}, \"reports\": [");
	for (unsigned i = CLIENTS; i-- > 0;)
		fprintf(to, "{\"id\": %u, \"qps\": %u},", i + 1, i + 7);
	fprintf(to, "{\"id\": %u, \"qps\": 1}]}", CLIENTS + 1);
	assert_int_equal(fclose(to), 0);
	return text;
}

/* A step for each client, not one for each two: those take more than the time of a test. */
TEST(each_of_many_clients_has_its_report_and_its_rates)
{
	json_t *before = snapshot_read(text_of_clients()),
	       *now = snapshot_read(text_of_clients()), *client;
	size_t i;

	json_array_foreach(json_object_get(now, "clients"), i, client)
		json_object_set_new(
			client, "tx_packets", json_integer((json_int_t)(3 * i)));
	snapshot_rates(now, before, 1);
	assert_int_equal(json_array_size(json_object_get(now, "clients")), CLIENTS);
	json_array_foreach(json_object_get(now, "clients"), i, client)
	{
		assert_true(number_of(client, "id") == (double)i + 1);
		assert_true(number_of(client, "qps") == (double)i + 7);
		assert_true(number_of(json_object_get(client, "rates"), "tx_packets") ==
			    (double)i);
	}
	json_decref(before);
	json_decref(now);
}

/* 0: the process is in another PID namespace. */
TEST(a_pid_may_be_unknown)
{
	char *line = line_of(
		json_pack("{s:[{s:i,s:i}]}", "clients", "id", 5, "pid", 77), "   5 ");

	assert_non_null(strstr(line, "      77 "));
	free(line);
	line = line_of(
		json_pack("{s:[{s:i,s:i}]}", "clients", "id", 5, "pid", 0), "   5 ");
	assert_non_null(strstr(line, " unknown "));
	free(line);
}
