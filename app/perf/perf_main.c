/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <common/eal_end.h>
#include <common/eal_start.h>

#include "perf_context.h"
#include "result.h"

#define RESOLVE_S 10

static struct conf conf;
static struct perf_context ctx;
static struct result result;

static enum exit_code
report_error(enum exit_code code, const char *message)
{
	fprintf(stderr, PROGRAM ": %s\n", message);
	return code;
}

/* Sends the client's plan to the server. */
static int
plan_exchange(int link)
{
	struct msg msg = {.kind = MSG_PLAN, .plan = conf.plan};

	if (!conf.server)
		return link_send(link, &msg);
	if (link_recv(link, MSG_PLAN, &msg) != 0 || msg.plan.mode >= MODE_COUNT)
		return -1;
	conf.plan = msg.plan;
	return 0;
}

/* Resolves the server's MAC address. The server itself resolves the client's when it
 * first responds. */
static int
peer_resolve(void)
{
	uint64_t end = rte_rdtsc() + RESOLVE_S * rte_get_tsc_hz();

	if (conf.server || ctx.port == NULL)
		return 0;
	while (rocade_port_resolve(ctx.port, &ctx.peer) != 0) {
		if (rte_rdtsc() > end)
			return perf_set_error(&ctx,
				"cannot resolve the MAC address of %s: no "
				"answer",
				conf.peer);
		for (int i = 0; i < 1000; i++)
			perf_poll_engines(&ctx);
	}
	return 0;
}

static enum exit_code
rdma_run(void)
{
	bool latency = mode_has_latency(conf.plan.mode);
	enum exit_code code = EXIT_OK;
	int rc = perf_open(&ctx);

	if (rc == 0) {
		conf.plan = ctx.plan;
		rc = peer_resolve();
		if (rc == 0)
			rc = events_set_priority(&ctx, true);
		if (rc == 0 && conf.server)
			rc = latency ? latency_server(&ctx) : rate_server(&ctx);
		else if (rc == 0)
			rc = latency ? latency_client(&ctx, &result)
				     : rate_client(&ctx, &result);
		(void)events_set_priority(&ctx, false);
	}
	if (rc == 0)
		perf_print_cycles(&ctx);
	else
		code = report_error(ctx.code, ctx.reason);
	/* The client closes its port first: see perf_send_tally(). */
	if (code == EXIT_OK && conf.server)
		link_drain(ctx.link);
	perf_close(&ctx);
	return code;
}

static int
perf_run(int link)
{
	char err[ERR_MAX];
	int code;

	if (plan_exchange(link) != 0)
		return report_error(
			EXIT_RUN, "the peer disconnected, or is not " PROGRAM);
	if (conf.plan.mode == MODE_RAW_PINGPONG) {
		code = raw_run(&conf, &conf.plan, link, &result);
	} else {
		ctx = (struct perf_context){
			.conf = &conf, .plan = conf.plan, .link = link};
		code = rdma_run();
	}
	if (code == EXIT_OK && !conf.server && result_print(&conf, &result, err) != 0)
		code = report_error(EXIT_RUN, err);
	return code;
}

int
main(int argc, char **argv)
{
	char err[ERR_MAX];
	int link = -1, separator = options_separator(argc, argv);
	int code = perf_options_read(&conf, argc - separator, argv + separator);

	if (code >= 0)
		return code;
	if (eal_start(PROGRAM, separator, argv) != 0)
		return EXIT_ENVIRONMENT;
	if (link_open(&conf, &link, err) != 0)
		code = report_error(EXIT_RUN, err);
	else
		code = perf_run(link);
	link_close(&conf, link);
	eal_end();
	return code;
}
