/* SPDX-License-Identifier: BSD-3-Clause */
/* Control path. */
/* rocade_port_dump(): wraps every queue of a port, and a thread that writes the copies of frames
 * to a file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rocade/pcapng.h>
#include <rocade/rocade.h>

#include "base/no_cancel.h"
#include "base/own_thread.h"
#include "dump/frame_copies.h"
#include "engine/engine.h"
#include "port/impair.h"
#include "verbs/verbs_port.h"

#define ROOM_KIB 4096
#define ROOM_KIB_MAX (1024 * 1024)
#define SLOTS_MIN 64
#define TURN 256 /* frames of a queue that are written before those of the next */
#define PAUSE_NS NS_PER_MS

struct port_dump {
	struct rocade_port *port;
	FILE *file;
	struct own_thread thread;
	pid_t process; /* that the thread is in: a child of fork() has none */
	bool stop;     /* no copies are made any more */
	/* CLOCK_REALTIME less the engines' clock when the dump began: as one number, so that
	 * the order of times is that of the engines' */
	uint64_t wall_ns;
	struct dump_queue {
		struct frame_copies *copies;
		uint64_t written, last_ns;
		uint32_t lost; /* as of the frame that was written last */
	} queues[DEV_MAX_ENGINES];
};

static bool
dump_frame_write(struct port_dump *d, unsigned index)
{
	struct dump_queue *q = &d->queues[index];
	struct frame_copy copy;
	char comment[32];

	if (!frame_copies_peek(q->copies, &copy))
		return false;
	q->last_ns = copy.when + d->wall_ns;
	snprintf(comment, sizeof(comment), "%s QP 0x%06" PRIx32, copy.out ? "from" : "to",
		copy.qpn);
	pcapng_packet(d->file, &(struct pcapng_packet){.interface = index,
				       .wall_ns = q->last_ns,
				       .len = copy.len,
				       .kept = copy.kept,
				       .data = copy.data,
				       .out = copy.out,
				       .lost = copy.lost - q->lost,
				       .comment = copy.qpn != 0 ? comment : NULL});
	q->lost = copy.lost;
	q->written++;
	frame_copies_release(q->copies);
	return true;
}

/* Returns how many frames were written. */
static unsigned
dump_turn(struct port_dump *d)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->port->engine_count; i++) {
		for (unsigned k = 0; k < TURN && dump_frame_write(d, i); k++)
			n++;
	}
	return n;
}

static void *
port_dump_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct port_dump *d = arg;
	bool stop;

	for (;;) {
		/* Read before the queues are: pairs with the release in dump_end(). */
		stop = __atomic_load_n(&d->stop, __ATOMIC_ACQUIRE);
		if (dump_turn(d) != 0)
			continue;
		/* A reader of the file sees all frames that have come. */
		fflush(d->file);
		if (stop)
			return NULL;
		(void)nanosleep(&pause, NULL);
	}
}

/* ---- With all engine locks held ---- */

/* Puts a queue in the place of the one that is next to the port. */
static void
queue_replace(struct rocade_engine *e, const struct port_queue *queue)
{
	if (e->impair == NULL) {
		engine_set_queue(e->engine, queue);
		return;
	}
	e->inner = *queue;
	impair_set_inner(e->impair, queue);
}

static int
dump_queues_wrap(struct port_dump *d, const struct frame_filter *filter, uint32_t slots)
{
	struct port_queue inner, outer;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < d->port->engine_count; i++) {
		struct rocade_engine *e = &d->port->engines[i];

		inner = e->impair != NULL ? e->inner : engine_queue(e->engine);
		rc = frame_copies_wrap(&inner, filter, engine_pass_time(e->engine), slots,
			&d->queues[i].copies, &outer);
		if (rc == 0)
			queue_replace(e, &outer);
	}
	return rc;
}

static void
dump_queues_unwrap(struct port_dump *d)
{
	for (unsigned i = 0; i < d->port->engine_count; i++) {
		if (d->queues[i].copies != NULL)
			queue_replace(&d->port->engines[i],
				frame_copies_inner(d->queues[i].copies));
	}
}

/* ---- With the port's lock held ---- */

static void
port_dump_free(struct port_dump *d)
{
	for (unsigned i = 0; i < d->port->engine_count; i++) {
		if (d->queues[i].copies != NULL)
			frame_copies_free(d->queues[i].copies);
	}
	fclose(d->file);
	free(d);
}

static int
dump_thread_start(struct port_dump *d)
{
	d->process = getpid();
	d->thread = (struct own_thread){
		.name = "rocade-dump", .main = port_dump_main, .arg = d};
	return own_thread_start(&d->thread);
}

static void
dump_head_write(const struct port_dump *d, uint32_t snap)
{
	char name[128];

	pcapng_begin(d->file, "Rocade " ROCADE_VERSION);
	for (unsigned i = 0; i < d->port->engine_count; i++) {
		snprintf(name, sizeof(name), "%s queue %u", d->port->dev->conf.name, i);
		pcapng_interface(d->file, name, "a port of Rocade", snap);
	}
}

/* Takes the wrappers away, waits for the thread and writes the end of the file. */
static int
dump_end(struct port_dump *d, struct rocade_port_dump_stats *stats)
{
	struct rocade_port_dump_stats sum = {0};
	int err = 0;

	dev_engines_lock(d->port->dev);
	dump_queues_unwrap(d);
	dev_engines_unlock(d->port->dev);
	/* Pairs with the acquire in port_dump_main(): there are no more copies. */
	__atomic_store_n(&d->stop, true, __ATOMIC_RELEASE);
	if (d->process == getpid())
		pthread_join(d->thread.id, NULL);
	for (unsigned i = 0; i < d->port->engine_count; i++) {
		struct dump_queue *q = &d->queues[i];
		uint32_t lost = frame_copies_lost(q->copies);

		pcapng_statistics(d->file, i, q->last_ns, q->written, lost);
		sum.written += q->written;
		sum.lost += lost;
	}
	if (fflush(d->file) != 0 || ferror(d->file))
		err = EIO;
	if (stats != NULL)
		*stats = sum;
	port_dump_free(d);
	return err;
}

static void
port_dump_close(struct rocade_port *port)
{
	if (port->dump != NULL)
		(void)dump_end(port->dump, NULL);
	port->dump = NULL;
}

/* ---- */

static int
port_dump_start(struct rocade_port *port, const struct rocade_port_dump_conf *conf)
{
	struct frame_filter filter = {.qpn = conf->qpn,
		.snap = port->dev->port.caps.max_frame,
		.in = !conf->no_in,
		.out = !conf->no_out,
		.vlan = port->dev->conf.net.vlan};
	uint32_t room_kib = conf->room_kib != 0 ? conf->room_kib : ROOM_KIB;
	uint32_t slots = SLOTS_MIN;
	uint64_t now;
	struct port_dump *d;
	int err;

	if (conf->snap != 0)
		filter.snap = RTE_MIN(filter.snap, conf->snap);
	while (slots * (uint64_t)frame_copies_slot_size(&filter) * 2 <=
		room_kib * UINT64_C(1024))
		slots *= 2;
	d = calloc(1, sizeof(*d));
	if (d == NULL)
		return rocade_fail(ENOMEM, "no memory");
	now = engine_clock();
	d->port = port;
	d->wall_ns = engine_clock_wall(now) - now;
	d->file = fopen(conf->file, "wbe");
	if (d->file == NULL) {
		err = errno;
		free(d);
		return rocade_fail(err, "%s: %s", conf->file, strerror(err));
	}
	dump_head_write(d, conf->snap);
	dev_engines_lock(port->dev);
	err = -dump_queues_wrap(d, &filter, slots);
	if (err == 0)
		err = dump_thread_start(d);
	if (err != 0)
		dump_queues_unwrap(d);
	dev_engines_unlock(port->dev);
	if (err != 0) {
		port_dump_free(d);
		return rocade_fail(
			err, "cannot copy the frames of the port: %s", strerror(err));
	}
	port->dump = d;
	port->dump_close = port_dump_close;
	return 0;
}

static int
port_dump_begin(struct rocade_port *port, const struct rocade_port_dump_conf *conf)
{
	int err, state = no_cancel_begin();

	pthread_mutex_lock(&port->lock);
	if (port->dump != NULL)
		err = rocade_fail(
			EBUSY, "the frames of this port are being written already");
	else
		err = port_dump_start(port, conf);
	pthread_mutex_unlock(&port->lock);
	no_cancel_end(state);
	return err;
}

EXPORT int
rocade_port_dump(struct rocade_port *port, const struct rocade_port_dump_conf *given)
{
	struct rocade_port_dump_conf taken, *conf = &taken;
	int err;

	if (arg_missing("port", port))
		return EINVAL;
	if (given == NULL)
		return rocade_fail(EINVAL, "no configuration of the dump given");
	err = conf_take(CONF_KIND(struct rocade_port_dump_conf, no_out), conf, given,
		given->size);
	if (err != 0)
		return err;
	if (conf->file == NULL)
		return rocade_fail(EINVAL, "file is NULL: expected the path of a file");
	if (conf->qpn > 0xFFFFFF)
		return rocade_fail(EINVAL,
			"qpn 0x%" PRIx32 ": expected 0, or a QPN up to 0xffffff",
			conf->qpn);
	if (conf->room_kib > ROOM_KIB_MAX)
		return rocade_fail(EINVAL, "room_kib %" PRIu32 ": expected 0 to %d",
			conf->room_kib, ROOM_KIB_MAX);
	if (conf->no_in && conf->no_out)
		return rocade_fail(EINVAL, "no_in and no_out: no frame is left");
	return port_dump_begin(port, conf);
}

EXPORT int
rocade_port_dump_stop_sized(
	struct rocade_port *port, struct rocade_port_dump_stats *stats, size_t size)
{
	struct rocade_port_dump_stats sum = {0};
	int err = ENOENT, state;

	if (arg_missing("port", port))
		return EINVAL;
	state = no_cancel_begin();
	pthread_mutex_lock(&port->lock);
	if (port->dump != NULL)
		err = dump_end(port->dump, &sum);
	port->dump = NULL;
	pthread_mutex_unlock(&port->lock);
	no_cancel_end(state);
	if (stats != NULL && err != ENOENT)
		out_give(stats, size, &sum, sizeof(sum));
	if (err == EIO)
		return rocade_fail(
			EIO, "the file could not be written, and lacks frames");
	if (err != 0)
		return rocade_fail(ENOENT, "no frames of this port are being written");
	return 0;
}
