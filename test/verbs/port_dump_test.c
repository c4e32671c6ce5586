/* SPDX-License-Identifier: BSD-3-Clause */
/* rocade_port_dump(): the file has the frames that the port received and sent. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/cancelled.h"
#include "case.h"
#include "verbs_pair.h"

#define MESSAGES 20
#define FILE_MAX (1u << 20)

enum {
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
	PACKET_DATA = 28 /* where the packet begins in its block */
};

static struct verbs_pair pair;
static char path[64];

static int
setup(void **state)
{
	const struct verbs_pair_conf conf = {.qps = 2, .srq_wr = 64};

	snprintf(path, sizeof(path), "port_dump_test.%d.pcapng", (int)getpid());
	pair_open(&pair, &conf);
	return 0;
}

static int
teardown(void **state)
{
	pair_close(&pair);
	unlink(path);
	return 0;
}

/* Sends from each QP of a, to the end of the last acknowledgement. */
static void
messages_send(void)
{
	struct ibv_wc wc[MESSAGES];

	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(pair_post_srq(&pair.b, i, 0, 64), 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(
			pair_send(&pair.a, i % 2, i, 0, 64, IBV_SEND_SIGNALED), 0);
	pair_poll_cq(&pair, pair.a.send_cq, wc, MESSAGES);
	pair_poll_cq(&pair, pair.b.recv_cq, wc, MESSAGES);
	pair_drain(&pair);
}

static uint32_t
word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

struct contents {
	unsigned interfaces, statistics, packets;
	uint32_t longest; /* bytes kept of a packet */
	unsigned to_peer,
		from_it; /* packets by the QP of b that they are for: qp[0]; any of a */
};

static struct contents
file_read(void)
{
	static uint8_t bytes[FILE_MAX];
	struct contents c = {.interfaces = 0};
	FILE *file = fopen(path, "rb");
	size_t len, at = 0;

	assert_non_null(file);
	len = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	while (at < len) {
		uint32_t type = word_at(bytes + at), size = word_at(bytes + at + 4);

		assert_true(size >= 12 && size % 4 == 0 && size <= len - at);
		assert_int_equal(word_at(bytes + at + size - 4), size);
		c.interfaces += type == BLOCK_INTERFACE;
		c.statistics += type == BLOCK_STATISTICS;
		if (type == BLOCK_PACKET) {
			const uint8_t *bth = bytes + at + PACKET_DATA + 14 + 20 + 8;
			uint32_t kept = word_at(bytes + at + 20);
			uint32_t qpn =
				(uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];

			c.packets++;
			c.longest = kept > c.longest ? kept : c.longest;
			c.to_peer += qpn == pair.b.qp[0]->qp_num;
			c.from_it += qpn == pair.a.qp[0]->qp_num;
		}
		at += size;
	}
	return c;
}

static struct contents
dumped(struct rocade_port_dump_conf conf, struct rocade_port_dump_stats *stats)
{
	conf.size = sizeof(conf);
	conf.file = path;
	assert_int_equal(rocade_port_dump(pair.a.port, &conf), 0);
	messages_send();
	assert_int_equal(rocade_port_dump_stop(pair.a.port, stats), 0);
	return file_read();
}

TEST_WITH(all_frames_are_written, setup, teardown)
{
	uint64_t frames =
		pair_stat(&pair.a, "rx_packets") + pair_stat(&pair.a, "tx_packets");
	struct rocade_port_dump_stats stats;
	struct contents c = dumped((struct rocade_port_dump_conf){0}, &stats);

	frames = pair_stat(&pair.a, "rx_packets") + pair_stat(&pair.a, "tx_packets") -
		 frames;
	assert_int_equal(stats.lost, 0);
	assert_int_equal(stats.written, frames);
	assert_int_equal(c.packets, frames);
	assert_int_equal(c.interfaces, 1);
	assert_int_equal(c.statistics, 1);
	assert_true(c.to_peer >= MESSAGES / 2 && c.from_it > 0);
	/* Without a dump no frame is copied. */
	messages_send();
	assert_int_equal(file_read().packets, frames);
}

TEST_WITH(filters_choose, setup, teardown)
{
	struct rocade_port_dump_stats stats;
	struct contents c = dumped(
		(struct rocade_port_dump_conf){.qpn = pair.a.qp[0]->qp_num, .snap = 60},
		&stats);

	assert_int_equal(c.packets, stats.written);
	assert_int_equal(c.longest, 60);
	assert_true(c.to_peer >= MESSAGES / 2 && c.from_it > 0);
	assert_int_equal(c.to_peer + c.from_it, c.packets);
	c = dumped((struct rocade_port_dump_conf){.no_in = true}, &stats);
	assert_int_equal(c.from_it, 0);
	assert_true(c.to_peer > 0);
	c = dumped((struct rocade_port_dump_conf){.no_out = true}, &stats);
	assert_int_equal(c.to_peer, 0);
	assert_true(c.from_it > 0);
}

/* The dump is between the impairment and the port: it has what leaves, and what comes. */
TEST_WITH(dump_and_impairment, setup, teardown)
{
	const struct rocade_impair all = {.duplicate_ppm = 1000000},
				   none = {.duplicate_ppm = 0};
	struct rocade_port_dump_stats stats;
	struct rocade_port_dump_conf conf = {.size = sizeof(conf), .file = path};
	struct rocade_impair_stats impaired;
	struct contents c;

	assert_int_equal(rocade_port_impair(pair.a.port, &all), 0);
	c = dumped((struct rocade_port_dump_conf){0}, &stats);
	assert_int_equal(c.packets, stats.written);
	assert_int_equal(rocade_port_impair_stats(pair.a.port, &impaired), 0);
	assert_true(impaired.duplicated != 0);
	/* The other order: the impairment begins and ends around a dump. */
	assert_int_equal(rocade_port_dump(pair.a.port, &conf), 0);
	messages_send();
	assert_int_equal(rocade_port_impair(pair.a.port, &none), 0);
	messages_send();
	assert_int_equal(rocade_port_dump_stop(pair.a.port, &stats), 0);
	assert_true(stats.written > 0);
	messages_send();
}

TEST_WITH(misuse_is_refused, setup, teardown)
{
	struct rocade_port_dump_conf conf = {.size = sizeof(conf), .file = path};
	struct rocade_port_dump_conf bad = conf;

	assert_int_equal(rocade_port_dump_stop(pair.a.port, NULL), ENOENT);
	bad.file = NULL;
	assert_int_equal(rocade_port_dump(pair.a.port, &bad), EINVAL);
	bad = conf;
	bad.size--;
	assert_int_equal(rocade_port_dump(pair.a.port, &bad), EINVAL);
	bad = conf;
	bad.qpn = 1u << 24;
	assert_int_equal(rocade_port_dump(pair.a.port, &bad), EINVAL);
	bad = conf;
	bad.room_kib = UINT32_MAX;
	assert_int_equal(rocade_port_dump(pair.a.port, &bad), EINVAL);
	bad = conf;
	bad.no_in = bad.no_out = true;
	assert_int_equal(rocade_port_dump(pair.a.port, &bad), EINVAL);
	bad = conf;
	bad.file = "no/such/folder/file";
	assert_int_equal(rocade_port_dump(pair.a.port, &bad), ENOENT);
	assert_int_equal(rocade_port_dump(pair.a.port, &conf), 0);
	assert_int_equal(rocade_port_dump(pair.a.port, &conf), EBUSY);
	/* The port is closed in teardown(), with the dump. */
}

static void
frames_dump(void *errors)
{
	const struct rocade_port_dump_conf conf = {.size = sizeof(conf), .file = path};

	*(int *)errors += rocade_port_dump(pair.a.port, &conf) != 0;
	*(int *)errors += rocade_port_dump_stop(pair.a.port, NULL) != 0;
}

/* They open and write a file, and wait for a thread, with the port's lock held. */
TEST_WITH(no_call_is_a_cancellation_point, setup, teardown)
{
	int errors = 0;
	struct cancelled c = {.fn = frames_dump, .arg = &errors};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, cancelled_main, &c), 0);
	assert_true(cancelled_after_return(thread, &c));
	assert_int_equal(errors, 0);
}
