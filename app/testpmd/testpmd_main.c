/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include <common/eal_end.h>
#include <common/eal_start.h>
#include <common/impair_option.h>

#include "commands.h"
#include "sweep.h"
#include "testpmd_options.h"
#include "testpmd_report.h"

static struct run run;

/* Returns -1 to go on, else the exit code. */
static int
testpmd_options_read(struct conf *conf, int argc, char **argv)
{
	char err[ERR_MAX];
	int code;

	options_defaults(conf);
	code = options_read(&testpmd_options, conf, argc, argv);
	if (code >= 0)
		return code;
	if (conf->nb_cores == 0)
		conf->nb_cores = conf->n_corelist;
	if (!conf->loop && conf->n_ports == 0)
		conf->ports[conf->n_ports++] = conf->common;
	if ((!conf->loop || options_complete_loop(conf, err) == 0) &&
		options_check(conf, err) == 0) {
		conf->current = &conf->ports[0];
		return -1;
	}
	fprintf(stderr, PROGRAM ": %s\n", err);
	return EXIT_USAGE;
}

/* --loop without EAL arguments runs without EAL: no root, no hugepages, no start-up
 * time. */
static int
testpmd_eal_start(const struct conf *conf, int separator, char **argv, bool *started)
{
	*started = false;
	if (conf->loop && separator == 1)
		return 0;
	if (eal_start(PROGRAM, separator, argv) != 0)
		return -1;
	*started = true;
	return 0;
}

static int
hosts_prepare(bool eal, char err[ERR_MAX])
{
	run.n_hosts = run.conf.n_ports;
	if (hosts_open(run.hosts, run.n_hosts, &run.conf, err) != 0)
		return -1;
	for (unsigned i = 0; i < run.n_hosts && impair_wanted(&run.conf.impair); i++) {
		if (host_impair(&run.hosts[i], err) != 0)
			return -1;
	}
	if (eal && run_launch_engines(&run, err) != 0)
		return -1;
	return run.conf.sleep ? run_sleep_open(&run, err) : 0;
}

/* Starts the run, or the commands, and returns when the run, a command or a signal ends
 * the program. */
static void
testpmd_run(void)
{
	const struct conf *conf = &run.conf;
	bool ends = conf->interactive;

	if (conf->n_sweep != 0) {
		sweep_run(&run);
		return;
	}
	if (conf->cmdline_file != NULL) {
		if (commands_run_file(conf->cmdline_file) != 0 && !conf->interactive) {
			run.failed = true;
			run_stop(&run);
			return;
		}
	}
	if (!run.quit && !run.active &&
		(conf->interactive ? conf->auto_start : !conf->cmdline_file))
		run_start(&run);
	if (conf->interactive)
		run.poll_commands = commands_poll;
	if (ends || run.active)
		run_loop(&run, UINT64_MAX);
}

/* Commands run several times: then the code is that of a failed run. */
static int
failure_code(void)
{
	bool commands = run.conf.interactive || run.conf.cmdline_file != NULL;

	return run.wrong && !commands ? EXIT_USAGE : EXIT_RUN;
}

int
main(int argc, char **argv)
{
	char err[ERR_MAX];
	bool eal;
	int separator = options_separator(argc, argv);
	int code = testpmd_options_read(&run.conf, argc - separator, argv + separator);

	if (code >= 0)
		return code;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (testpmd_eal_start(&run.conf, separator, argv, &eal) != 0)
		return EXIT_ENVIRONMENT;
	if (cores_choose(&run, eal, err) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", err);
		code = EXIT_USAGE;
	} else if (hosts_prepare(eal, err) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", err);
		code = EXIT_ENVIRONMENT;
	} else if (commands_open(&run) != 0) {
		code = EXIT_ENVIRONMENT;
	} else {
		run_catch_signals();
		testpmd_run();
		code = run.failed ? failure_code() : EXIT_OK;
	}
	commands_close();
	run_stop_engines(&run);
	for (unsigned i = 0; i < run.n_hosts; i++)
		port_close(&run.hosts[i]);
	if (eal)
		eal_end();
	return code;
}
