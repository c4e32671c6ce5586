/* SPDX-License-Identifier: BSD-3-Clause */
/* rocaded: lets the programs of this machine talk RDMA to each other. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rocade/daemon.h>
#include <rocade/rocade.h>

#define PROGRAM "rocaded"
#define EXIT_USAGE 2
#define ADDRESS_DEFAULT "192.0.2.1/24"

enum option_id {
	OPT_LOCAL = 256,
	OPT_SOCKET,
	OPT_SOCKET_MODE,
	OPT_NAME,
	OPT_ADDRESS,
	OPT_MTU,
	OPT_CLIENTS,
	OPT_QPS,
	OPT_RING,
	OPT_RATE,
	OPT_CHECK,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option options[] = {
	{"local", no_argument, NULL, OPT_LOCAL},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"socket-mode", required_argument, NULL, OPT_SOCKET_MODE},
	{"name", required_argument, NULL, OPT_NAME},
	{"address", required_argument, NULL, OPT_ADDRESS},
	{"mtu", required_argument, NULL, OPT_MTU},
	{"max-clients", required_argument, NULL, OPT_CLIENTS},
	{"client-qps", required_argument, NULL, OPT_QPS},
	{"client-ring", required_argument, NULL, OPT_RING},
	{"client-rate", required_argument, NULL, OPT_RATE},
	{"check-config", no_argument, NULL, OPT_CHECK},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: " PROGRAM " --local [OPTION]...\n"
	"Serves RDMA to the programs of this machine that rocade-run(1) starts.\n\n"
	"  --local               a switch between the programs of this machine: no "
	"port,\n"
	"                        no root, no hugepages\n"
	"  --socket PATH         where clients find it (default: $ROCADE_SOCKET, else\n"
	"                        /run/rocade.sock for root, "
	"$XDG_RUNTIME_DIR/rocade.sock\n"
	"                        for others)\n"
	"  --socket-mode MODE    its permissions, in octal: who may attach (default: "
	"600)\n"
	"  --name NAME           of the verbs device (default: rocade0)\n"
	"  --address LIST        its addresses, separated by commas "
	"(default: " ADDRESS_DEFAULT ")\n"
	"  --mtu BYTES           IP MTU (default: 4180, for a path MTU of 4096)\n"
	"  --max-clients N       processes at a time (default: 256)\n"
	"  --client-qps N        QPs of each of them (default: 16384)\n"
	"  --client-ring N       packets in each of its rings (default: 1024)\n"
	"  --client-rate N       packets a second that it may send (default: no limit)\n"
	"  --check-config        only say whether all this is right\n"
	"  --help, --version\n";

static struct rocade_daemon *serving;

static void
on_signal(int number)
{
	(void)number;
	rocade_daemon_stop(serving);
}

static int
wrong(const char *option, const char *value, const char *valid)
{
	fprintf(stderr, PROGRAM ": --%s: \"%s\" is not %s\n", option, value, valid);
	return EXIT_USAGE;
}

static int
number_read(const char *option, const char *text, int base, uint32_t max, uint32_t *out)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, base);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value == 0 ||
		value > max) {
		char valid[64];

		snprintf(valid, sizeof(valid),
			base == 8 ? "a mode in 1..%o" : "a number in 1..%u", max);
		return wrong(option, text, valid);
	}
	*out = (uint32_t)value;
	return 0;
}

struct settings {
	struct rocade_daemon_conf conf;
	bool local;
	bool check;
	bool done; /* --help or --version */
};

static int
option_read(struct settings *s, int option, const char *name)
{
	struct rocade_daemon_conf *conf = &s->conf;

	switch (option) {
	case OPT_LOCAL:
		s->local = true;
		return 0;
	case OPT_SOCKET:
		conf->socket = optarg;
		return 0;
	case OPT_SOCKET_MODE:
		return number_read(name, optarg, 8, 0777, &conf->socket_mode);
	case OPT_NAME:
		conf->name = optarg;
		return 0;
	case OPT_ADDRESS:
		conf->addresses = optarg;
		return 0;
	case OPT_MTU:
		return number_read(name, optarg, 10, 9000, &conf->mtu);
	case OPT_CLIENTS:
		return number_read(name, optarg, 10, 65536, &conf->max_clients);
	case OPT_QPS:
		return number_read(name, optarg, 10, 65536, &conf->client_qps);
	case OPT_RING:
		return number_read(name, optarg, 10, 65536, &conf->client_ring);
	case OPT_RATE:
		return number_read(
			name, optarg, 10, 1000000000, &conf->client_packets_per_s);
	case OPT_CHECK:
		s->check = true;
		return 0;
	case OPT_HELP:
		fputs(help, stdout);
		s->done = true;
		return 0;
	case OPT_VERSION:
		printf(PROGRAM " %s\n", rocade_version());
		s->done = true;
		return 0;
	default:
		fprintf(stderr, PROGRAM ": --help lists the options\n");
		return EXIT_USAGE;
	}
}

static int
options_read(struct settings *s, int argc, char **argv)
{
	int option, index = 0, rc = 0;

	s->conf.size = sizeof(s->conf);
	s->conf.addresses = ADDRESS_DEFAULT;
	while (rc == 0 && !s->done &&
		(option = getopt_long(argc, argv, "", options, &index)) != -1)
		rc = option_read(
			s, option, option >= OPT_LOCAL ? options[index].name : "");
	if (rc != 0 || s->done)
		return rc;
	if (optind < argc) {
		fprintf(stderr, PROGRAM ": \"%s\" is no option; --help lists them\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	if (!s->local) {
		fprintf(stderr,
			PROGRAM ": what to serve? --local is a switch between the "
				"programs of this machine\n");
		return EXIT_USAGE;
	}
	return 0;
}

static void
signals_set(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Four descriptors a client are more than a shell's usual limit has for all of them. */
static void
descriptors_allow(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int
main(int argc, char **argv)
{
	struct settings settings = {.local = false};
	int rc = options_read(&settings, argc, argv);

	if (rc != 0 || settings.done)
		return rc;
	descriptors_allow();
	if (rocade_daemon_create(&settings.conf, &serving) != 0) {
		fprintf(stderr, PROGRAM ": %s\n", rocade_error());
		return EXIT_FAILURE;
	}
	if (!settings.check) {
		signals_set();
		fprintf(stderr, PROGRAM ": listening at %s\n",
			rocade_daemon_socket(serving));
		rc = rocade_daemon_run(serving);
	}
	rocade_daemon_destroy(serving);
	return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
