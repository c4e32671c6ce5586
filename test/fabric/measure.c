/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "measure.h"
#include "numbers.h"

#define SMALL_PACKETS 8 /* 32 KiB */
#define BIG_PACKETS 244 /* 1 MB */
#define ACK_BYTES 86    /* on the wire */

static void *
array(size_t n, size_t size)
{
	void *mem = calloc(n + 1, size);

	CHECK(mem != NULL, "no memory");
	return mem;
}

void
measure_init(struct measure *m, const struct row *row, struct fabric *fabric,
	struct load_flows *flows, struct plot *plot)
{
	*m = (struct measure){
		.row = row,
		.fabric = fabric,
		.flows = flows,
		.plot = plot,
		.started = clock_ps,
		.begun = clock_ps,
		.packets_before = array(flows->count, sizeof(uint64_t)),
		.slice_end = clock_ps + MEASURE_SLICE,
		.slice_packets = array(flows->count, sizeof(uint64_t)),
	};
}

/* ---- Slices ---- */

static void
settle_check(struct measure *m, double jain)
{
	uint64_t step = m->flows->step, slice_began = clock_ps - MEASURE_SLICE;
	unsigned changes = step != 0 ? (unsigned)((slice_began - m->started) / step) : 0;

	if (changes != m->changes) {
		if (m->unsettled)
			m->settled = step;
		m->changes = changes;
		m->changed = m->started + changes * step;
		m->unsettled = true;
	}
	if (m->unsettled && jain >= MEASURE_FAIR) {
		m->unsettled = false;
		m->settled = RTE_MAX(m->settled, clock_ps - m->changed);
	}
}

static void
slice_end(struct measure *m)
{
	unsigned n = m->flows->count, active = 0;
	double *rates = array(n, sizeof(*rates)), *fair = array(n, sizeof(*fair));
	double jain;

	for (unsigned i = 0; i < n; i++) {
		struct flow *flow = &m->flows->flow[i];
		uint64_t packets = flow_packets(flow);

		rates[i] = (double)(packets - m->slice_packets[i]) * flow->conf.mtu *
			   8e3 / (double)MEASURE_SLICE; /* Gb/s */
		m->slice_packets[i] = packets;
		if (i < m->flows->sharing &&
			flow_is_active(flow, clock_ps - MEASURE_SLICE))
			fair[active++] = rates[i];
	}
	jain = jain_index(fair, active);
	if (active > 1) {
		m->jain_sum += jain;
		m->jain_slices++;
	}
	settle_check(m, active > 1 ? jain : 1);
	if (m->plot != NULL)
		plot_slice(m->plot, clock_ps - m->started, m->flows->bottleneck->bytes,
			rates, n, active > 1 ? jain : 1);
	free(rates);
	free(fair);
	m->slice_end += MEASURE_SLICE;
}

void
measure_sample(struct measure *m)
{
	if (m->samples == m->room) {
		m->room = m->room != 0 ? 2 * m->room : 4096;
		m->queue = realloc(m->queue, m->room * sizeof(*m->queue));
		CHECK(m->queue != NULL, "no memory");
	}
	m->queue[m->samples++] = (uint32_t)m->flows->bottleneck->bytes;
	if (clock_ps >= m->slice_end && m->row->load != LOAD_MIX)
		slice_end(m);
}

bool
measure_is_done(struct measure *m)
{
	const struct flow *flow;

	for (; m->first_undone < m->flows->count; m->first_undone++) {
		flow = &m->flows->flow[m->first_undone];
		if (flow->conf.bytes == 0 || flow->finished == 0)
			return false;
	}
	return true;
}

void
measure_begin(struct measure *m)
{
	m->begun = clock_ps;
	m->samples = 0;
	for (unsigned i = 0; i < m->flows->count; i++)
		m->packets_before[i] = flow_packets(&m->flows->flow[i]);
}

/* ---- Results ---- */

/* Bytes on the wire of a packet of an endless flow. */
static uint64_t
packet_bytes(const struct flow *flow)
{
	uint32_t message = flow->conf.message, mtu = flow->conf.mtu;

	return message < mtu ? FLOW_PACKET_BYTES(message) + sizeof(struct reth)
			     : FLOW_PACKET_BYTES(mtu);
}

/* The part of a link's time that the flow's packets took. */
static double
flow_part(struct measure *m, unsigned i)
{
	struct flow *flow = &m->flows->flow[i];
	double packets = (double)(flow_packets(flow) - m->packets_before[i]);

	return packets * (double)packet_bytes(flow) *
	       (double)m->fabric->conf.link_ps_per_byte / (double)(clock_ps - m->begun);
}

static double
least_of(const double *values, unsigned n)
{
	double least = INFINITY;

	for (unsigned i = 0; i < n; i++)
		least = fmin(least, values[i]);
	return least;
}

static void
rates_end(struct measure *m, struct result *r)
{
	double *value = r->value;
	unsigned n = m->flows->sharing;
	double *part = array(n, sizeof(*part)), sum = 0, other = NAN;
	double controlled = 0;

	for (unsigned i = 0; i < n; i++)
		sum += part[i] = flow_part(m, i);
	if (n < m->flows->count)
		other = flow_part(m, n);
	r->least = fmin(least_of(part, n), other);
	for (unsigned i = m->row->greedy; m->row->greedy != 0 && i < n; i++)
		controlled += part[i];
	if (m->row->greedy != 0) {
		value[METRIC_share] = 100 * controlled / (sum * (n - m->row->greedy) / n);
	} else if (m->row->load == LOAD_CHAIN) {
		value[METRIC_share] = 100 * other / 0.5;
		sum += n * other;
	} else {
		value[METRIC_share] = 100 * other;
	}
	if (m->row->load == LOAD_CHAIN || m->row->load == LOAD_PAIRS)
		sum /= n;
	else if (m->row->load == LOAD_ALL)
		sum /= m->row->n;
	value[METRIC_goodput] = 100 * sum;
	value[METRIC_jain] = jain_index(part, n);
	if (m->row->load == LOAD_STAIRS) {
		value[METRIC_jain] = m->jain_sum / m->jain_slices;
		value[METRIC_settle] =
			(double)(m->unsettled ? m->flows->step : m->settled) / PS_PER_US;
	}
	free(part);
}

/* A message that is not complete counts with the time until now. */
static double
slowdown(const struct measure *m, const struct flow *flow, uint64_t packets)
{
	const struct fabric_conf *c = &m->fabric->conf;
	unsigned links = c->shape == SHAPE_STAR ? 4 : 8;
	uint64_t bytes =
		(packets + 1) * FLOW_PACKET_BYTES(flow->conf.mtu) + 2 * ACK_BYTES;

	return (double)((flow->finished != 0 ? flow->finished : clock_ps) -
			flow->conf.start) /
	       (double)(links * c->delay + bytes * c->link_ps_per_byte);
}

static uint64_t
message_packets(const struct flow *flow)
{
	return (flow->conf.bytes + flow->conf.mtu - 1) / flow->conf.mtu;
}

static void
messages_plot(const struct measure *m)
{
	for (unsigned i = 0; i < m->flows->count; i++) {
		const struct flow *flow = &m->flows->flow[i];

		plot_message(m->plot, flow->conf.bytes,
			slowdown(m, flow, message_packets(flow)));
	}
}

static void
messages_end(struct measure *m, double *value)
{
	unsigned n = m->flows->count, done = 0, small = 0, big = 0;
	double *time = array(n, sizeof(double)), *smalls = array(n, sizeof(double));
	double *bigs = array(n, sizeof(double));

	for (unsigned i = 0; i < n; i++) {
		const struct flow *flow = &m->flows->flow[i];
		uint64_t packets = message_packets(flow);

		if (flow->finished == 0)
			continue;
		time[done++] = (double)(flow->finished - flow->conf.start) / PS_PER_US;
		if (packets <= SMALL_PACKETS)
			smalls[small++] = slowdown(m, flow, packets);
		else if (packets > BIG_PACKETS)
			bigs[big++] = slowdown(m, flow, packets);
	}
	value[METRIC_fct_p50] = percentile(time, done, 0.5);
	value[METRIC_fct_p99] = percentile(time, done, 0.99);
	value[METRIC_fct_max] = percentile(time, done, 1);
	value[METRIC_undone] = n - done;
	if (m->row->load == LOAD_MIX) {
		value[METRIC_small_p50] = percentile(smalls, small, 0.5);
		value[METRIC_small_p99] = percentile(smalls, small, 0.99);
		value[METRIC_big_p50] = percentile(bigs, big, 0.5);
		value[METRIC_big_p99] = percentile(bigs, big, 0.99);
	}
	free(time);
	free(smalls);
	free(bigs);
}

static void
queue_end(struct measure *m, double *value)
{
	double *us = array(m->samples, sizeof(*us));

	for (size_t i = 0; i < m->samples; i++)
		us[i] = (double)(m->queue[i] * m->flows->bottleneck->conf.ps_per_byte) /
			PS_PER_US;
	value[METRIC_queue_p50] = percentile(us, m->samples, 0.5);
	value[METRIC_queue_p99] = percentile(us, m->samples, 0.99);
	free(us);
}

/* Responses of READs that are sent again are not counted by anyone: what was sent and not
 * accepted was, or will be. Short packets are accepted, and do not count as sent. */
static uint64_t
resent_count(struct measure *m, uint64_t sent)
{
	uint64_t resent = 0, accepted = 0;

	for (unsigned i = 0; i < m->flows->count; i++) {
		resent += m->flows->flow[i].sender.stats.retransmitted;
		accepted += flow_packets(&m->flows->flow[i]);
	}
	if (!m->row->read && m->row->load != LOAD_DUPLEX)
		return resent;
	return sent > accepted ? sent - accepted : 0;
}

static void
counts_end(struct measure *m, struct result *r)
{
	struct fabric_count count = fabric_count(m->fabric);
	uint64_t timeouts = 0, probes = 0, cnps = 0;

	r->packets = 0;
	for (unsigned i = 0; i < m->fabric->conf.hosts; i++) {
		struct port_stats stats;

		dev_stats(m->fabric->hosts[i].dev, &stats);
		timeouts += stats.ack_timeouts;
		probes += stats.tlp_sent;
		cnps += stats.cnp_received;
		r->packets += m->fabric->hosts[i].nic.payloads;
	}
	r->value[METRIC_loss] = 100.0 * (double)count.lost / (double)count.offered;
	r->value[METRIC_resends] =
		100.0 * (double)resent_count(m, r->packets) / (double)r->packets;
	r->value[METRIC_timeouts] = (double)timeouts;
	r->value[METRIC_probes] = (double)probes;
	if (m->row->ecn) {
		r->value[METRIC_marks] =
			100.0 * (double)count.marked / (double)count.offered;
		r->value[METRIC_cnps] = (double)cnps;
	}
}

void
measure_end(struct measure *m, struct result *r)
{
	for (unsigned i = 0; i < METRIC_COUNT; i++)
		r->value[i] = NAN;
	r->least = NAN;
	if (m->row->load == LOAD_MIX || m->row->load == LOAD_BURST)
		messages_end(m, r->value);
	else
		rates_end(m, r);
	if (m->row->load == LOAD_MIX && m->plot != NULL)
		messages_plot(m);
	queue_end(m, r->value);
	counts_end(m, r);
	free(m->packets_before);
	free(m->slice_packets);
	free(m->queue);
}
