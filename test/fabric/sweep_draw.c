/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "flow.h"
#include "random.h"
#include "sweep.h"

#define SPAN 128     /* packets that a QP has under way */
#define HOSTS_US 2.2 /* of a round trip: the loops of both hosts, on average */
#define MEASURED_US 20000.0
#define FAIR_PACKETS 100 /* of a flow's fair part: the measurement takes their time */
#define WARM_US 10000.0
#define ROUND_TRIPS 20
#define TURNS_US 36000.0 /* three turns of eight threads */

#define RESENDS 10      /* percent */
#define RESENDS_WORSE 2 /* times what cannot be helped */

#define PICK(state, ...)                                                                 \
	(((const unsigned[]){__VA_ARGS__})[rand_below(                                   \
		state, sizeof((const unsigned[]){__VA_ARGS__}) / sizeof(unsigned))])

static bool
one_in(uint64_t *state, unsigned n)
{
	return rand_below(state, n) == 0;
}

/* ---- The draw ---- */

static void
load_draw(struct row *row, uint64_t *state)
{
	static const enum load loads[] = {LOAD_INCAST, LOAD_INCAST, LOAD_INCAST,
		LOAD_INCAST, LOAD_FANOUT, LOAD_DUPLEX, LOAD_ALL, LOAD_PAIRS, LOAD_CHAIN};

	row->load = loads[rand_below(state, RTE_DIM(loads))];
	row->mbit_per_s =
		PICK(state, 1000, 1000, 10000, 10000, 25000, 25000, 40000, 100000);
	switch (row->load) {
	case LOAD_ALL:
		row->n = PICK(state, 3, 4, 6);
		break;
	case LOAD_PAIRS:
		row->n = 6;
		row->leaves = 2;
		row->spines = 3;
		break;
	case LOAD_CHAIN:
		row->n = PICK(state, 2, 3);
		row->leaves = row->n + 1;
		break;
	case LOAD_DUPLEX:
		row->n = PICK(state, 1, 2, 8);
		break;
	default:
		row->n = PICK(state, 1, 2, 4, 8, 16, 32, 64);
		break;
	}
	/* Many links are full: few packets. */
	if (row->load == LOAD_ALL || row->load == LOAD_PAIRS)
		row->mbit_per_s = PICK(state, 1000, 10000);
	if (row->load == LOAD_PAIRS)
		row->trunk_gbit_per_s = 2 * row->mbit_per_s / 1000;
}

static void
network_draw(struct row *row, uint64_t *state)
{
	unsigned rtt_us = PICK(state, 8, 20, 50, 100, 200, 1000);

	row->delay_ns = (unsigned)((rtt_us - HOSTS_US) * 1000) / 4;
	row->mtu = PICK(state, 1024, 4096);
	if (one_in(state, 4))
		row->shared_kb = PICK(state, 256, 1000, 4000, 16000);
	else
		row->port_kb = PICK(state, 64, 200, 500, 1000, 4000);
	if (one_in(state, 4))
		row->loss = PICK(state, 10, 100, 1000);
	if (row->load == LOAD_INCAST && one_in(state, 8)) {
		row->police_mbit_per_s = row->mbit_per_s / 5;
		row->police_kb = PICK(state, 100, 1000);
	}
}

static void
hosts_draw(struct row *row, uint64_t *state)
{
	row->message = PICK(state, 4096, 65536, FLOW_MSG, FLOW_MSG);
	row->depth = PICK(state, FLOW_DEPTH, 32);
	row->read = row->load != LOAD_DUPLEX && one_in(state, 4);
	row->client = one_in(state, 2);
	if (row->client && one_in(state, 4))
		row->threads = PICK(state, 3, 8);
	if (one_in(state, 2))
		row->hello = 20;
}

/* ---- What may be asked ---- */

/* Flows that share the bottleneck. */
static unsigned
flows_sharing(const struct row *row)
{
	switch (row->load) {
	case LOAD_ALL:
		return row->n - 1;
	case LOAD_PAIRS:
		return 1;
	case LOAD_CHAIN:
		return 2;
	default:
		return row->n;
	}
}

static unsigned
round_trip_links(const struct row *row)
{
	if (row->load == LOAD_CHAIN)
		return 2 * (row->n + 2);
	return row->load == LOAD_PAIRS ? 8 : 4;
}

void
sweep_draw(struct drawn *d, uint64_t seed)
{
	uint64_t state = seed;
	struct row *row = &d->row;
	double packet_us, rtt_us, packets, part, buffer, flows, measured;

	*d = (struct drawn){.row.name = "sweep"};
	load_draw(row, &state);
	network_draw(row, &state);
	hosts_draw(row, &state);
	flows = flows_sharing(row);
	packet_us = FLOW_PACKET_BYTES(row->mtu) * 8.0 / row->mbit_per_s;
	rtt_us = round_trip_links(row) * (row->delay_ns / 1000.0 + packet_us / 2) +
		 HOSTS_US;
	packets = fmin(SPAN, (double)row->message * row->depth / row->mtu);
	part = packets * packet_us / rtt_us;
	buffer = (row->shared_kb != 0 ? row->shared_kb / 2 : row->port_kb) * 1000.0;
	d->buffer_us = buffer * 8 / row->mbit_per_s;
	d->allowed = fmin(1, flows * part);
	d->fair = fmin(1 / flows, part);
	if (row->police_mbit_per_s != 0) {
		d->allowed = fmin(d->allowed, flows / 5);
		d->fair = fmin(d->fair, 0.2);
	}
	if (row->threads != 0)
		d->fair *= 2.0 / row->threads;
	if (row->threads != 0 || row->load == LOAD_PAIRS)
		d->allowed = 0;
	d->fluid = fmax(0, 1 - (rtt_us + d->buffer_us) / (packet_us * flows));
	d->resends = fmax(RESENDS, RESENDS_WORSE * (100 * d->fluid + row->loss / 1e4));
	measured = fmax(MEASURED_US, FAIR_PACKETS * packet_us / d->fair);
	if (row->threads != 0)
		measured = fmax(measured, TURNS_US);
	row->us = (unsigned)measured;
	row->warm_us = (unsigned)fmax(fmax(WARM_US, ROUND_TRIPS * rtt_us), measured / 2);
}

unsigned
sweep_judge(const struct drawn *d, const struct result *r)
{
	const double *value = r->value;
	unsigned faults = 0;

	if (r->least < d->fair / 10)
		faults |= SWEEP_STARVED;
	if (value[METRIC_resends] > d->resends)
		faults |= SWEEP_RESENDS;
	/* A fan-out fills its host's own link, which has no queue of a switch. */
	if (d->row.load != LOAD_FANOUT && d->fluid == 0 &&
		value[METRIC_queue_p50] > 0.9 * d->buffer_us)
		faults |= SWEEP_FULL;
	if (value[METRIC_goodput] < 80 * d->allowed)
		faults |= SWEEP_UNUSED;
	return faults;
}

struct sweep_verdict
sweep_compare(
	const struct sweep_listed *list, unsigned count, uint64_t seed, unsigned found)
{
	unsigned known = 0;

	for (unsigned i = 0; i < count; i++) {
		if (list[i].seed == seed)
			known |= list[i].faults;
	}
	return (struct sweep_verdict){.fresh = found & ~known, .gone = known & ~found};
}
