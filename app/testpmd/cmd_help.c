/* SPDX-License-Identifier: BSD-3-Clause */
/* help, and help by topic */
#include <stdio.h>
#include <string.h>

#include <cmdline_parse_string.h>

#include "commands.h"
#include "testpmd_options.h"

#define COLUMN 26
#define WIDTH 88

struct help_words {
	cmdline_fixed_string_t help, topic;
};

static cmdline_parse_token_string_t word_help =
	TOKEN_STRING_INITIALIZER(struct help_words, help, "help");
static cmdline_parse_token_string_t word_topic = TOKEN_STRING_INITIALIZER(
	struct help_words, topic, "control#display#config#ports#traffic");

static const char control_text[] =
	"start                     start a run\n"
	"stop                      stop it and print the result\n"
	"wait                      wait until the run ends\n"
	"wait S                    wait S seconds, while a run continues\n"
	"listen PORT               wait for RDMA-CM connections, one per QP\n"
	"connect IP PORT           connect all QPs by RDMA-CM; `start` then uses them\n"
	"quit                      stop, and end the program\n";

static const char display_text[] =
	"show WHAT [stats|info|all]\n"
	"                          WHAT: port, engine, qp, srq, cq, mr, neigh or peer;\n"
	"                          stats: counters that are not 0; all: all counters\n"
	"show qp N events          the last events of the Nth QP of each port, from 0; with\n"
	"                          --flight-recorder\n"
	"show port stats|info N    counters and state of port N\n"
	"clear                     reset the counters of `show`; also clear port stats all\n"
	"clear port stats N        reset the counters of port N\n"
	"help [TOPIC]              TOPIC: control, display, config, ports or traffic\n";

static const char config_text[] =
	"set srq N limit L         arm the limit of SRQ N; 0: disarm\n"
	"set srq N size S          resize SRQ N to S receives\n"
	"set impair rx loss 1% [dup 1%] [reorder 1%] [corrupt 0.1%], or: off\n"
	"set dump FILE, or: off    write the frames of the ports as pcapng\n"
	"set NAME VALUE            set an option of the program, or of the only port\n"
	"set port N NAME VALUE     set an option of port N\n";

/* Prints the names that `set` has. */
static void
names_print(void)
{
	int at = COLUMN + 5;

	printf("%*sNAME:", COLUMN, "");
	for (unsigned i = 0; i < testpmd_options.count; i++) {
		const struct option_row *row = &testpmd_options.rows[i];

		if ((row->use & OPT_EFFECT) == OPT_START)
			continue;
		if (at + 2 + (int)strlen(row->name) > WIDTH)
			at = printf("\n%*s", COLUMN, "") - 1;
		at += printf(" %s", row->name);
	}
	printf("\n");
}

/* Prints the options of a section of --help that `set` has, with their texts. */
static void
section_print(const char *heading)
{
	bool inside = false;

	for (unsigned i = 0; i < testpmd_options.count; i++) {
		const struct option_row *row = &testpmd_options.rows[i];

		if (row->kind == OPTION_HEADING)
			inside = strncmp(row->text, heading, strlen(heading)) == 0;
		else if (inside && (row->use & OPT_EFFECT) != OPT_START)
			printf("set %s %s\n    %s\n", row->name, row->arg, row->text);
	}
}

static void
do_help(void *parsed, struct cmdline *cl, void *data)
{
	const struct help_words *words = parsed;
	const char *topic = data != NULL ? words->topic : "";

	(void)cl;
	if (topic[0] == '\0' || strcmp(topic, "control") == 0)
		fputs(control_text, stdout);
	if (topic[0] == '\0' || strcmp(topic, "display") == 0)
		fputs(display_text, stdout);
	if (topic[0] == '\0' || strcmp(topic, "config") == 0) {
		fputs(config_text, stdout);
		names_print();
	}
	if (strcmp(topic, "ports") == 0)
		section_print("Ports");
	if (strcmp(topic, "traffic") == 0) {
		section_print("Traffic");
		section_print("Connection");
	}
	if (topic[0] == '\0')
		printf("# begins a comment. For the options see --help\n");
}

cmdline_parse_inst_t cmd_help = {.f = do_help,
	.help_str = "help: list the commands",
	.tokens = {(void *)&word_help, NULL}};

cmdline_parse_inst_t cmd_help_topic = {.f = do_help,
	.data = (void *)1,
	.help_str = "help control|display|config|ports|traffic: the commands of a topic",
	.tokens = {(void *)&word_help, (void *)&word_topic, NULL}};
