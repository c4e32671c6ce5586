/* SPDX-License-Identifier: BSD-3-Clause */
/* What no daemon of this project sends: names that need escapes, and the same object twice. And the formats
 * of what is sent: Prometheus' text and OpenMetrics. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/status.h>

#include "case.h"
#include "status/latencies_sum.h"
#include "status/prometheus.h"

static const char snapshot_text[] =
	"{\"device\": {\"name\": \"ro\\\"c\\\\a\\nde\", \"mtu\": 9007199254740993,"
	"  \"local\": true, \"addresses\": [\"::1\", \"::2\", \"::1\"]},"
	" \"queues\": [{\"queue\": 0, \"clients\": 2, \"taken_over\": 3},"
	"  {\"queue\": 1, \"clients\": 0, \"taken_over\": 4, \"drop_handover_full\": 5}],"
	" \"clients\": [{\"id\": 1, \"name\": \"one\", \"answered\": true,"
	"   \"peers\": [{\"address\": \"::3\", \"qps\": 1, \"srtt_ns\": 1500,"
	"     \"send\": {\"cc_window\": 0.25}},"
	"    {\"address\": \"::3\", \"qps\": 2}]},"
	"  {\"id\": 2, \"pid\": 77, \"name\": \"two\", \"answered\": false, \"srq_count\": 1,"
	"   \"latencies\": [{\"type\": \"RC\", \"operation\": \"read\", \"count\": 9, \"sum_ns\": 7500,"
	"     \"buckets\": {\"512\": 2, \"1024\": 0, \"2147483648\": 4, \"inf\": 3}}]}],"
	" \"departed_latencies\": [{\"type\": \"UC\", \"operation\": \"send\", \"count\": 1,"
	"   \"sum_ns\": 1, \"buckets\": {\"512\": 1, \"inf\": 0}}]}";

/* Returns what is printed of the snapshot. */
static char *
printed_as(bool openmetrics, const struct view_conf *conf)
{
	json_t *snapshot = json_loads(snapshot_text, 0, NULL);
	char *text = NULL;
	size_t size;
	struct metrics_to to = {
		.file = open_memstream(&text, &size), .openmetrics = openmetrics};

	assert_non_null(snapshot);
	assert_non_null(to.file);
	prometheus_print(&to, snapshot, conf);
	assert_int_equal(fclose(to.file), 0);
	json_decref(snapshot);
	return text;
}

static char *
printed(const struct view_conf *conf)
{
	return printed_as(false, conf);
}

static unsigned
occurrences(const char *text, const char *part)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
		n++;
	return n;
}

#define DEVICE "device=\"ro\\\"c\\\\a\\nde\""

TEST(labels_are_escaped)
{
	char *text = printed(&(struct view_conf){.qps = false});

	assert_int_equal(occurrences(text, "rocade_device_local{" DEVICE "} 1\n"), 1);
	free(text);
}

TEST(integers_are_exact)
{
	char *text = printed(&(struct view_conf){.qps = false});

	assert_non_null(
		strstr(text, "rocade_device_mtu_bytes{" DEVICE "} 9007199254740993\n"));
	free(text);
}

TEST(series_are_unique)
{
	char *text = printed(&(struct view_conf){.peers = true});

	assert_int_equal(occurrences(text, "rocade_address_info{"), 2);
	assert_int_equal(occurrences(text, "rocade_peer_qps{"), 1);
	assert_int_equal(occurrences(text, "# TYPE rocade_peer_qps gauge\n"), 1);
	free(text);
}

TEST(values_are_in_base_units)
{
	char *text = printed(&(struct view_conf){.peers = true});

	assert_non_null(strstr(text,
		"rocade_peer_cc_window_packets{" DEVICE
		",client=\"1\",program=\"one\",peer=\"::3\",window=\"send\"} 0.25\n"));
	assert_int_equal(occurrences(text, "_ns"), 0);
	free(text);
}

/* 0: the process is in another PID namespace. */
TEST(a_pid_may_be_unknown)
{
	char *text = printed(&(struct view_conf){.peers = true});

	assert_int_equal(occurrences(text, "pid=\"unknown\""), 1);
	assert_int_equal(occurrences(text, "pid=\"77\""), 1);
	free(text);
}

TEST(a_silent_client_has_no_report)
{
	char *text = printed(&(struct view_conf){.peers = true});

	assert_non_null(strstr(text,
		"rocade_client_answered{" DEVICE ",client=\"2\",program=\"two\"} 0\n"));
	assert_null(strstr(text, "rocade_client_srqs"));
	free(text);
}

TEST(each_queue_has_series)
{
	char *text = printed(&(struct view_conf){.qps = false});

	assert_non_null(strstr(text, "rocade_queue_clients{" DEVICE ",queue=\"0\"} 2\n"));
	assert_non_null(strstr(
		text, "rocade_queue_taken_over_total{" DEVICE ",queue=\"1\"} 4\n"));
	assert_int_equal(
		occurrences(text, "# TYPE rocade_queue_taken_over_total counter\n"), 1);
	assert_int_equal(occurrences(text, "rocade_queue_drop_handover_full_total{"), 1);
	free(text);
}

#define READS DEVICE ",client=\"2\",program=\"two\",type=\"RC\",operation=\"read\""

/* Buckets contain those before them, and the last one is all. The daemon knows them of a client that does not
 * answer. */
TEST(histograms_are_cumulative)
{
	char *text = printed(&(struct view_conf){.latencies = true});

	assert_non_null(strstr(text,
		"# TYPE rocade_client_request_seconds histogram\n"
		"rocade_client_request_seconds_bucket{" READS ",le=\"5.12e-07\"} 2\n"
		"rocade_client_request_seconds_bucket{" READS ",le=\"1.024e-06\"} 2\n"
		"rocade_client_request_seconds_bucket{" READS ",le=\"2.147483648\"} 6\n"
		"rocade_client_request_seconds_bucket{" READS ",le=\"+Inf\"} 9\n"
		"rocade_client_request_seconds_sum{" READS "} 7.5e-06\n"
		"rocade_client_request_seconds_count{" READS "} 9\n"));
	assert_non_null(strstr(text, "rocade_departed_request_seconds_count{" DEVICE
				     ",type=\"UC\",operation=\"send\"} 1\n"));
	free(text);
	text = printed_as(true, &(struct view_conf){.latencies = true});
	assert_int_equal(
		occurrences(text, "# TYPE rocade_client_request_seconds histogram\n"), 1);
	free(text);
}

/* A client can have many series of them. */
TEST(histograms_are_printed_if_wanted)
{
	char *text = printed(&(struct view_conf){.qps = true, .peers = true});

	assert_int_equal(occurrences(text, "request_seconds"), 0);
	free(text);
}

static json_t *
latencies_of(long reads, long departed_reads)
{
	return json_pack("{s:{s:s},s:[{s:i,s:[{s:s,s:s,s:I,s:{s:I,s:i}}]},{s:i,s:[]}],"
			 "s:[{s:s,s:s,s:I,s:{s:I,s:i}}]}",
		"device", "name", "r", "clients", "id", 1, "latencies", "type", "RC",
		"operation", "read", "sum_ns", (json_int_t)1000 * reads, "buckets", "512",
		(json_int_t)reads, "inf", 0, "id", 2, "latencies", "departed_latencies",
		"type", "RC", "operation", "read", "sum_ns",
		(json_int_t)1000 * departed_reads, "buckets", "512",
		(json_int_t)departed_reads, "inf", 1);
}

/* Returns the metrics with the sum of all latencies. */
static char *
printed_sum(json_t *snapshot, json_t *kept)
{
	char *text = NULL;
	size_t size;
	struct metrics_to to = {.file = open_memstream(&text, &size)};

	assert_non_null(snapshot);
	assert_non_null(to.file);
	latencies_sum(snapshot, kept);
	prometheus_print(&to, snapshot, &(struct view_conf){.qps = false});
	assert_int_equal(fclose(to.file), 0);
	json_decref(snapshot);
	return text;
}

#define SUM "rocade_device_request_seconds_"
#define SUM_LABELS "{device=\"r\",type=\"RC\",operation=\"read\""

TEST(latencies_of_all_clients_are_one_sum)
{
	json_t *kept = json_array();
	char *text = printed_sum(latencies_of(5, 2), kept);

	assert_non_null(strstr(text,
		SUM "bucket" SUM_LABELS ",le=\"5.12e-07\"} 7\n" SUM "bucket" SUM_LABELS
		    ",le=\"+Inf\"} 8\n" SUM "sum" SUM_LABELS "} 7e-06\n" SUM
		    "count" SUM_LABELS "} 8\n"));
	assert_null(strstr(text, "rocade_client_request_seconds"));
	free(text);
	json_decref(kept);
}

/* A snapshot may lack a client that is about to be among the departed ones. */
TEST(the_sum_of_latencies_does_not_fall)
{
	json_t *kept = json_array();

	free(printed_sum(latencies_of(5, 2), kept));
	for (long reads = 0; reads < 7; reads++) {
		char *text = printed_sum(latencies_of(reads, 2), kept);

		assert_non_null(strstr(text, reads < 6 ? SUM "count" SUM_LABELS "} 8\n"
						       : SUM "count" SUM_LABELS "} 9\n"));
		free(text);
	}
	json_decref(kept);
}

/* The bounds of the daemon's rows. */
TEST(the_sum_of_latencies_has_bounds)
{
	const long most = 1L << 48;
	json_t *kept = json_array(), *snapshot = latencies_of(most, most);
	const json_t *row;
	char *text;

	json_object_set_new(
		json_array_get(json_object_get(snapshot, "departed_latencies"), 0),
		"sum_ns", json_integer(1LL << 62));
	json_object_set_new(
		json_array_get(
			json_object_get(
				json_array_get(json_object_get(snapshot, "clients"), 0),
				"latencies"),
			0),
		"sum_ns", json_integer(1LL << 62));
	text = printed_sum(snapshot, kept);
	row = json_array_get(kept, 0);
	assert_true(json_integer_value(json_object_get(row, "sum_ns")) == 1LL << 62);
	assert_true(json_integer_value(json_object_get(
			    json_object_get(row, "buckets"), "512")) == most);
	free(text);
	json_decref(kept);
}

/* OpenMetrics describes a family by its name without the suffix of its values. */
TEST(openmetrics_names_families)
{
	char *text = printed_as(true, &(struct view_conf){.peers = true});

	assert_int_equal(
		occurrences(text, "# TYPE rocade_queue_taken_over counter\n"), 1);
	assert_int_equal(occurrences(text, "rocade_queue_taken_over_total{" DEVICE
					   ",queue=\"1\"} 4\n"),
		1);
	assert_int_equal(occurrences(text, "# HELP rocade_address "), 1);
	assert_int_equal(occurrences(text, "# TYPE rocade_address info\n"), 1);
	assert_int_equal(occurrences(text, "rocade_address_info{"), 2);
	assert_int_equal(occurrences(text, "# TYPE rocade_peer_qps gauge\n"), 1);
	assert_int_equal(occurrences(text, "_total counter\n"), 0);
	free(text);
}

/* The last line, and only of OpenMetrics. */
TEST(openmetrics_has_an_end)
{
	char *text = printed_as(true, &(struct view_conf){.qps = true});

	assert_int_equal(occurrences(text, "# EOF\n"), 1);
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
	free(text);
	text = printed(&(struct view_conf){.qps = true});
	assert_int_equal(occurrences(text, "EOF"), 0);
	assert_int_equal(occurrences(text, " info\n"), 0);
	free(text);
}

/* A quote in HELP would need an escape in OpenMetrics alone. */
TEST(descriptions_have_no_quotes)
{
	for (unsigned set = ROCADE_COUNTERS_ENGINE; set <= ROCADE_COUNTERS_QUEUE; set++) {
		struct rocade_counter row;

		for (unsigned i = 0;
			(row = rocade_counter((enum rocade_counters)set, i)).name != NULL;
			i++)
			assert_null(strpbrk(row.text, "\"\\\n"));
	}
}
