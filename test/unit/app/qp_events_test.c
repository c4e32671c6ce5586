/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade-status --flight, with a daemon that this file stands for. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rocade/rocade.h>
#include <rocade/status.h>

#include "case.h"
#include "status/qp_events.h"
#include "status/snapshot.h"

static const char *snapshot_text; /* NULL: the daemon does not answer */

json_t *
snapshot_fetch(const char *socket)
{
	assert_string_equal(socket, "a socket");
	return snapshot_text == NULL ? NULL : json_loads(snapshot_text, 0, NULL);
}

double
number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

/* Client 7 has the QPs 20 and 21. It does not answer for 30. */
int
rocade_flight(const char *socket, uint32_t client, uint32_t qpn,
	void (*line)(const char *text, void *arg), void *arg)
{
	assert_string_equal(socket, "a socket");
	if (qpn == 30)
		return ETIMEDOUT;
	if (client != 7 || (qpn != 20 && qpn != 21))
		return ENOENT;
	line(qpn == 20 ? "of 20" : "of 21", arg);
	return 0;
}

const char *
rocade_error(void)
{
	return "the reason";
}

/* Returns what is printed, NULL if there is nothing to print. The caller frees it. */
static char *
shown(uint32_t client, uint32_t qpn, const char **why)
{
	const struct flight_conf conf = {.client = client, .qpn = qpn};
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	bool good;

	assert_non_null(to);
	good = flight_show(to, "a socket", &conf, why);
	fclose(to);
	if (good)
		return text;
	free(text);
	return NULL;
}

static void
assert_shown(uint32_t client, uint32_t qpn, const char *expected)
{
	const char *why;
	char *text = shown(client, qpn, &why);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static void
assert_refused(uint32_t client, uint32_t qpn, const char *expected)
{
	const char *why;

	assert_null(shown(client, qpn, &why));
	assert_non_null(strstr(why, expected));
}

TEST(values_are_read)
{
	static const char *const wrong[] = {"", "x", "0", "-1", "4294967296", "7:", "7:0",
		"7:0x1000000", "7:x", "7 ", "7:20x", "1234567890123456789:1"};
	struct flight_conf conf;

	assert_true(flight_conf_read(&conf, "7"));
	assert_int_equal(conf.client, 7);
	assert_int_equal(conf.qpn, 0);
	assert_true(flight_conf_read(&conf, "7:0x14"));
	assert_int_equal(conf.qpn, 20);
	assert_true(flight_conf_read(&conf, "7:020"));
	assert_int_equal(conf.qpn, 20);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(flight_conf_read(&conf, wrong[i]));
}

TEST(one_qp)
{
	assert_shown(7, 20, "of 20\n");
	assert_refused(7, 22, "the reason");
}

/* A QP that has gone since the snapshot is left out. */
TEST(all_qps)
{
	snapshot_text = NULL;
	assert_refused(7, 0, "the reason");
	snapshot_text =
		"{\"clients\": [{\"id\": 6}, {\"id\": 7, \"qps\": [{\"qpn\": 20}, "
		"{\"qpn\": 22}, {\"qpn\": 21}]}, {\"id\": 8, \"qps\": []}, "
		"{\"id\": 9, \"qps\": [{\"qpn\": 30}]}]}";
	assert_shown(7, 0, "of 20\nof 21\n");
	assert_refused(5, 0, "no such client");
	assert_refused(8, 0, "no QPs");
	assert_refused(9, 0, "the reason");
}
