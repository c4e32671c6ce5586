/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters, the state of QPs and peers, and the engine functions of rocade.h. */
#include <string.h>

#include <rocade/latencies.h>

#include "verbs/objects.h"
#include "verbs/forward.h"
#include "base/latencies.h"
#include "engine/clock.h"
#include "qp/flight.h"
#include "qp/send_age.h"
#include "wire/psn.h"

EXPORT unsigned
rocade_port_stats_sized(struct rocade_port *port, int engine, struct rocade_stat *rows,
	unsigned n, size_t row_size)
{
	struct port_stats stats = {0};
	uint64_t values[PORT_STAT_COUNT];

	if (arg_missing("port", port))
		return 0;
	n = rows_of(rows, n);
	if (engine < 0)
		dev_stats(port->dev, &stats);
	else if ((unsigned)engine < port->engine_count)
		port_stats_add(&stats, engine_stats(port->engines[engine].engine));
	memcpy(values, &stats, sizeof(values));
	for (unsigned i = 0; i < n && i < PORT_STAT_COUNT; i++)
		stat_give(rows, i, row_size,
			&(struct rocade_stat){.name = port_stat_rows[i].name,
				.text = port_stat_rows[i].text,
				.value = values[i]});
	return PORT_STAT_COUNT;
}

EXPORT unsigned
rocade_qp_stats_sized(
	struct ibv_qp *qp, struct rocade_stat *rows, unsigned n, size_t row_size)
{
	const uint32_t *values;

	if (arg_missing("qp", qp) || !context_is_ours(qp->context))
		return 0;
	n = rows_of(rows, n);
	values = (const uint32_t *)&to_qp(qp)->qp->stats;
	for (unsigned i = 0; i < n && i < QP_STAT_COUNT; i++)
		stat_give(rows, i, row_size,
			&(struct rocade_stat){.name = qp_stat_rows[i].name,
				.text = qp_stat_rows[i].text,
				.value = __atomic_load_n(&values[i], __ATOMIC_RELAXED)});
	return QP_STAT_COUNT;
}

/* Returns how many requests whose slots are not free yet were posted signaled. */
static uint32_t
signaled_count(struct sq *sq, uint32_t *outstanding)
{
	uint32_t n = 0;

	sq_lock(sq);
	for (uint32_t i = __atomic_load_n(&sq->freed, __ATOMIC_ACQUIRE); i != sq->prod;
		i++)
		n += (sq_slot(sq, i)->flags & IBV_SEND_SIGNALED) != 0;
	*outstanding = sq->prod - __atomic_load_n(&sq->freed, __ATOMIC_ACQUIRE);
	sq_unlock(sq);
	return n;
}

EXPORT int
rocade_qp_info_sized(struct ibv_qp *ibv, struct rocade_qp_info *info, size_t size)
{
	struct rocade_qp_info got = {0};
	struct send_ages ages;
	struct engine *e;
	struct qp *qp;

	if (arg_missing("qp", ibv) || arg_missing("info", info))
		return EINVAL;
	if (!context_is_ours(ibv->context))
		return rocade_fail(EINVAL, "the QP is not of a Rocade device");
	qp = to_qp(ibv)->qp;
	e = dev_qp_lock(qp);
	got.engine = engine_index(e);
	got.dest_qpn = qp->dest_qpn;
	got.sq_max_wr = qp->sq.max_wr;
	got.sq_full_unsignaled =
		__atomic_load_n(&qp->sq.full_unsignaled, __ATOMIC_RELAXED);
	got.sq_unacked = (qp->req.next_psn - qp->req.una_psn) & PSN_MASK;
	got.rq_max_wr = qp->rq != NULL ? qp->rq->max_wr : 0;
	got.rq_outstanding = qp->rq != NULL ? recv_ring_outstanding(qp->rq) : 0;
	got.sq_psn = qp->req.next_psn;
	got.rq_psn = qp->resp.epsn;
	got.msn = qp->resp.msn;
	send_ages(qp, clock_now(), &ages);
	engine_unlock(e);
	got.sq_unacked_ns = ages.unacked_ns;
	got.sq_unsignaled_ns = ages.unsignaled_ns;
	/* Not with the engine lock: between ibv_wr_start() and ibv_wr_complete() a thread has
	 * the SQ's lock, and may make a control call. */
	got.sq_signaled = signaled_count(&qp->sq, &got.sq_outstanding);
	out_give(info, size, &got, sizeof(got));
	return 0;
}

EXPORT int
rocade_qp_events(struct ibv_qp *ibv, void (*line)(const char *text, void *arg), void *arg)
{
	struct flight_copy copy;

	if (arg_missing("qp", ibv) || arg_missing("line", line))
		return EINVAL;
	if (!context_is_ours(ibv->context))
		return rocade_fail(EINVAL, "the QP is not of a Rocade device");
	if (!dev_qp_events(to_qp(ibv)->qp, &copy))
		return rocade_fail(ENOTSUP,
			"the port was opened without flight_recorder, which records "
			"events");
	flight_print(&copy, line, arg);
	return 0;
}

static_assert(ROCADE_LATENCY_BUCKETS == LATENCY_BUCKETS && LATENCY_FIRST_NS == 512,
	"as the header says");

EXPORT unsigned
rocade_port_latencies_sized(struct rocade_port *port, struct rocade_latency *rows,
	unsigned n, size_t row_size)
{
	struct latencies sums;

	if (arg_missing("port", port))
		return 0;
	n = rows_of(rows, n);
	dev_latencies(port->dev, &sums);
	for (unsigned i = 0; i < n && i < LATENCY_TYPES * LATENCY_OPS; i++) {
		const struct latency_hist *hist =
			&sums.of[i / LATENCY_OPS][i % LATENCY_OPS];
		struct rocade_latency row = {.type = latency_type_names[i / LATENCY_OPS],
			.operation = latency_op_names[i % LATENCY_OPS],
			.sum_ns = hist->sum_ns};

		memcpy(row.buckets, hist->count, sizeof(row.buckets));
		out_give((char *)rows + i * row_size, row_size, &row, sizeof(row));
	}
	return LATENCY_TYPES * LATENCY_OPS;
}

static struct rocade_slow_request
slow_row(unsigned type, unsigned op, const struct slow_request *r, uint64_t wall_ns)
{
	return (struct rocade_slow_request){.type = latency_type_names[type],
		.operation = latency_op_names[op],
#define SLOW(name) .name##_ns = r->spent_ns[SLOW_##name],
#include "base/slowest.def"
		.took_ns = slow_total_ns(r),
		.engine_before_ns = r->before_ns,
		.age_ns = wall_ns > r->ended_ns ? wall_ns - r->ended_ns : 0,
		.qpn = r->qpn,
		.bytes = r->bytes,
		.resent = r->resent,
		.timers = r->timers,
		.naks = r->naks,
		.rnr_naks = r->rnr_naks};
}

EXPORT unsigned
rocade_port_slowest_sized(struct rocade_port *port, struct rocade_slow_request *rows,
	unsigned n, size_t row_size)
{
	const unsigned sets = LATENCY_TYPES * LATENCY_OPS;
	unsigned found = 0;
	uint64_t wall_ns;

	if (arg_missing("port", port))
		return 0;
	wall_ns = dev_slowest_begin(port->dev);
	n = rows_of(rows, n);
	for (unsigned i = 0; i < port->dev->engine_count * sets; i++) {
		unsigned type = i % sets / LATENCY_OPS, op = i % LATENCY_OPS;
		struct slow_request copy[SLOWEST_KEPT];
		unsigned count = dev_slowest(port->dev, i / sets, (enum latency_type)type,
			(enum latency_op)op, wall_ns, copy);

		for (unsigned k = 0; k < count; k++, found++) {
			struct rocade_slow_request row =
				slow_row(type, op, &copy[k], wall_ns);

			if (found < n)
				out_give((char *)rows + found * row_size, row_size, &row,
					sizeof(row));
		}
	}
	return found;
}

static struct rocade_peer_window
window_row(const struct peer_window_info *w)
{
	return (struct rocade_peer_window){.qps_blocked = w->qps_blocked,
		.inflight = w->inflight,
		.window = w->window,
		.cc_paced = peer_info_is_paced(w),
		.cc_window = (double)w->cc_window / CC_ONE,
		.cc_delay_ns = w->cc_delay_ns,
		.cc_target_ns = w->cc_target_ns};
}

struct peer_rows {
	char *next;
	size_t size; /* of a row of the program */
};

/* Fills the next row. */
static void
peer_row(const struct peer_info *peer, void *arg)
{
	struct peer_rows *to = arg;
	struct rocade_peer row = {.engine = peer->engine,
		.qps = peer->qps,
		.cap = peer->cap,
		.srtt_ns = peer->srtt_ns,
		.cc = peer_info_cc_is_on(peer),
		.send = window_row(&peer->send),
		.read = window_row(&peer->read)};
	memcpy(row.gid.raw, peer->gid, sizeof(row.gid.raw));
	out_give(to->next, to->size, &row, sizeof(row));
	to->next += to->size;
}

EXPORT unsigned
rocade_port_peers_sized(
	struct rocade_port *port, struct rocade_peer *rows, unsigned n, size_t row_size)
{
	struct peer_rows to = {.next = (char *)rows, .size = row_size};

	if (arg_missing("port", port))
		return 0;
	return dev_peers_each(port->dev, rows_of(rows, n), peer_row, &to);
}

EXPORT unsigned
rocade_port_engine_count(struct rocade_port *port)
{
	return arg_missing("port", port) ? 0 : port->engine_count;
}

EXPORT struct rocade_engine *
rocade_port_engine(struct rocade_port *port, unsigned index)
{
	if (arg_missing("port", port))
		return NULL;
	return index < port->engine_count ? &port->engines[index] : NULL;
}

EXPORT unsigned
rocade_engine_poll(struct rocade_engine *engine)
{
	return engine_poll(engine->engine);
}
