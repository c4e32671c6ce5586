/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <rte_cycles.h>

#include "result.h"

static void
json_put(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *
result_latency_json(const struct hist *hist)
{
	json_t *object = json_object();

	json_put(object, "min", hist->min_ns);
	json_put(object, "p10", hist_quantile(hist, 100));
	json_put(object, "p25", hist_quantile(hist, 250));
	json_put(object, "p50", hist_quantile(hist, 500));
	json_put(object, "p75", hist_quantile(hist, 750));
	json_put(object, "p90", hist_quantile(hist, 900));
	json_put(object, "p99", hist_quantile(hist, 990));
	json_put(object, "p999", hist_quantile(hist, 999));
	json_put(object, "max", hist->max_ns);
	return object;
}

static json_t *
result_json(const struct plan *plan, const struct result *result)
{
	double rate = (double)result->tally.messages / result->tally.seconds;
	json_t *object = json_object();

	json_object_set_new(object, "mode", json_string(perf_mode_name(plan->mode)));
	json_put(object, "size", plan->size);
	json_put(object, "qps", plan->qps);
	json_put(object, "burst", plan->burst);
	json_put(object, "signal_every", plan->signal_every);
	json_put(object, "sq_depth", plan->sq_depth);
	json_put(object, "inline", plan->inline_max);
	json_object_set_new(object, "srq", json_boolean(!plan->rq));
	json_object_set_new(object, "ud", json_boolean(plan->ud));
	json_object_set_new(object, "events", json_boolean(plan->events));
	json_put(object, "engines", plan->engines);
	json_put(object, "depth", plan->depth);
	json_put(object, "mtu", plan->mtu);
	json_put(object, "reads", plan->reads);
	json_put(object, "loss_ppm", plan->loss_ppm);
	json_put(object, "messages", result->tally.messages);
	json_object_set_new(object, "seconds", json_real(result->tally.seconds));
	json_object_set_new(object, "messages_per_s", json_real(rate));
	json_object_set_new(object, "bytes_per_s", json_real(rate * (double)plan->size));
	json_object_set_new(object, "latency_ns",
		mode_has_latency(plan->mode) ? result_latency_json(&result->hist)
					     : json_null());
	json_put(object, "retransmitted",
		result->client.retransmitted + result->server.retransmitted);
	json_put(object, "rnr_naks", result->client.rnr_naks + result->server.rnr_naks);
	json_put(object, "memory_bytes", result->server.memory);
	json_put(object, "srq_bytes", result->server.srq_memory);
	json_put(object, "qp_bytes", result->server.qp_memory / plan->qps);
	json_put(object, "dropped", result->client.dropped + result->server.dropped);
	json_put(object, "tsc_hz", rte_get_tsc_hz());
	return object;
}

static void
result_line_print(const struct plan *plan, const struct result *result)
{
	double rate = (double)result->tally.messages / result->tally.seconds;
	const struct hist *hist = &result->hist;

	printf("%s, %" PRIu64 " bytes, %" PRIu64 " QPs: ", perf_mode_name(plan->mode),
		plan->size, plan->qps);
	if (mode_has_latency(plan->mode))
		printf("min %" PRIu64 ", p50 %" PRIu64 ", p99 %" PRIu64 ", p99.9 %" PRIu64
		       " ns\n",
			hist->min_ns, hist_quantile(hist, 500), hist_quantile(hist, 990),
			hist_quantile(hist, 999));
	else
		printf("%.3f Mmsg/s, %.3f Gb/s\n", rate / 1e6,
			rate * (double)plan->size * 8 / 1e9);
}

int
result_print(const struct conf *conf, const struct result *result, char err[ERR_MAX])
{
	bool to_stdout = conf->json != NULL && strcmp(conf->json, "-") == 0;
	json_t *object;
	int rc;

	if (result->tally.messages == 0)
		return error_set(err,
			"no message completed in the --seconds %" PRIu64
			" of the measurement",
			conf->plan.seconds);
	if (!to_stdout)
		result_line_print(&conf->plan, result);
	if (conf->json == NULL)
		return 0;
	object = result_json(&conf->plan, result);
	if (to_stdout)
		rc = json_dumpf(object, stdout, JSON_INDENT(2)) != 0 || puts("") < 0 ? -1
										     : 0;
	else
		rc = json_dump_file(object, conf->json, JSON_INDENT(2));
	json_decref(object);
	if (rc != 0)
		snprintf(err, ERR_MAX, "cannot write --json file '%s'", conf->json);
	return rc;
}
