/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on demand: a script has rules, and each rule says which calls are refused, and with which error, or with which
 * requests of a queue something happens (rocade-faults(1)). fault_read.c and fault_journal.c read and write files,
 * fault_text.c prints. Nothing here reads a clock. */
#ifndef ROCADE_FAULTS_FAULTS_H
#define ROCADE_FAULTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rocade/faults.h>

#define FAULT_RULES_MAX ROCADE_FAULTS_RULES
#define FAULT_TEXT_MAX (16 * 1024 * 1024) /* bytes of a script */
#define FAULT_NAME_MAX 255                /* bytes of a program's name */
#define FAULT_WHY_MAX ROCADE_FAULTS_WHY   /* bytes of the sentence about an error */
#define FAULT_NUMBER_MAX UINT64_C(1000000000000000000)
#define FAULT_MILLION 1000000 /* a share of 100 % */
/* Begins the comment of a journal for a process that has made a call that counts. Its two names are behind it. */
#define FAULT_JOURNAL_PROCESS "# rocade-faults process "
/* Begins the comment of such a process at its end: its name, and what it has counted (fault_census.c). */
#define FAULT_JOURNAL_COUNTED "# rocade-faults counted "

enum fault_call {
#define CALL(name, functions, unit) FAULT_##name,
#include "faults/calls.def"
	FAULT_CALLS
};

/* A rule counts an enum fault_call, or one of these, each of one queue. */
#define FAULT_REQUESTS FAULT_CALLS       /* work requests of a send queue */
#define FAULT_RECEIVES (FAULT_CALLS + 1) /* of a receive queue or an SRQ */
#define FAULT_PACKETS (FAULT_CALLS + 2)  /* request packets of a QP */
#define FAULT_COUNTED (FAULT_CALLS + 3)
/* A rule of times counts nothing. */
#define FAULT_TIMES FAULT_COUNTED
#define FAULT_SUBJECTS (FAULT_COUNTED + 1)

/* Kinds of work requests, a bit each: which can complete so, or be accompanied by such an event. */
#define FAULT_ON_SEND 0x1u
#define FAULT_ON_SEND_INV 0x2u
#define FAULT_ON_WRITE 0x4u
#define FAULT_ON_WRITE_IMM 0x8u
#define FAULT_ON_READ 0x10u
#define FAULT_ON_ATOMIC 0x20u
#define FAULT_ON_ATOMIC_WRITE 0x40u
#define FAULT_ON_FLUSH 0x80u
#define FAULT_ON_LOCAL_INV 0x100u
#define FAULT_ON_BIND 0x200u
#define FAULT_ON_RECEIVE 0x400u
#define FAULT_ON_BYTES 0x800u /* only if it has bytes of payload, or room for some */
#define FAULT_ON_MEMORY                                                                  \
	0x10000u /* only if these are not inline: a region's, with an lkey */
/* Of a QP of this type. XRC is RC. SRQ: it is of no QP. */
#define FAULT_OF_RC 0x1000u
#define FAULT_OF_UC 0x2000u
#define FAULT_OF_UD 0x4000u
#define FAULT_OF_SRQ 0x8000u
#define FAULT_OF_ANY (FAULT_OF_RC | FAULT_OF_UC | FAULT_OF_UD | FAULT_OF_SRQ)

enum fault_object_type { FAULT_NO_OBJECT, FAULT_QP, FAULT_SRQ };

/* A queue: the QPs of a process have numbers from 1, in the order in which it creates them, and so have its SRQs. */
struct fault_queue {
	enum fault_object_type type;
	uint64_t number;
};

enum fault_action {
	FAULT_REFUSE, /* the call, with an errno */
	FAULT_FAIL,   /* the request completes with an enum ibv_wc_status */
	FAULT_EVENT,  /* an enum ibv_event_type, with what is behind it */
	FAULT_PACKET, /* an enum fault_effect on a packet that is sent */
	FAULT_REJECT, /* a connection request gets a REJ with this reason (IBA 12.6.7.2) */
	FAULT_LOSE,   /* a message of the connection manager: an enum fault_cm */
	FAULT_LINK    /* the link of the process's devices: an enum fault_link */
};

/* A rule does this to a connection. Of FAULT_EVENT no enum ibv_event_type has such a number. */
enum fault_cm {
	FAULT_CM_ADDR_ERROR = 256,
	FAULT_CM_ROUTE_ERROR,
	FAULT_CM_UNREACHABLE,
	FAULT_CM_DISCONNECTED,
	FAULT_CM_REQ,
	FAULT_CM_REP,
	FAULT_CM_RTU,
	FAULT_CM_DREQ
};

enum fault_effect { FAULT_DROP = 1, FAULT_DUPLICATE, FAULT_DELAY };
enum fault_link { FAULT_LINK_DOWN = 1, FAULT_LINK_UP };

/* Of a rule of the link, in milliseconds. from and to: of a rule of times, from the opening of the first device on. to 0: it
 * has no end. down: for how long the link is down, 0 without an end. each: of a rule of times, from the begin of an
 * outage to that of the next one; 0: there is one. */
struct fault_span {
	uint32_t from, to, down, each;
};

/* A time without a link, in milliseconds. to FAULT_NO_END: it has no end. */
#define FAULT_NO_END UINT64_MAX
struct fault_outage {
	uint64_t from, to;
};

/* A request packet as it is sent: of which request, which of its packets, and for which time. All from 1. */
struct fault_packet {
	uint64_t request, packet, copy;
	uint64_t order; /* of its QP's packets, without those that are sent again */
};

enum fault_when {
	FAULT_NTH,      /* call `number` */
	FAULT_EACH_NTH, /* each call whose number is a multiple of `number` */
	FAULT_SHARE     /* `number` of a million calls, as the seed draws them */
};

struct fault_rule {
	uint8_t call; /* enum fault_call, FAULT_REQUESTS, FAULT_RECEIVES, FAULT_PACKETS or FAULT_TIMES */
	uint8_t when;   /* enum fault_when */
	uint8_t action; /* enum fault_action */
	int err; /* errno, status, event, effect, reason, message or state of the link: by the action */
	uint32_t vendor;
	uint32_t line; /* of the script, from 1 */
	uint64_t number;
	uint64_t packet,
		copy; /* of FAULT_NTH of packets, whose number is the request's */
	struct fault_span span;   /* of FAULT_LINK */
	struct fault_queue queue; /* that it counts. FAULT_NO_OBJECT: each for itself */
	char *program;            /* whose processes it concerns. NULL: of all */
};

struct fault_script {
	struct fault_rule *rules;
	unsigned count;
};

/* Reads rules from a text. Returns 0, or a positive errno: EINVAL, or E2BIG for more than FAULT_RULES_MAX rules, or
 * ENOMEM. why gets line, column and what is valid then, and the script is empty. */
int fault_script_parse(
	struct fault_script *s, const char *text, size_t len, char why[FAULT_WHY_MAX]);
void fault_script_free(struct fault_script *s);

/* The same from a file, whose path begins the sentence in why. */
int fault_script_read(struct fault_script *s, const char *path, char why[FAULT_WHY_MAX]);

/* Returns the whole text of a file, with a NUL behind it, or NULL with errno. */
char *fault_text_read(const char *path, size_t *len);

/* The rules of a process, by what they count, and its counts. */
struct fault_plan {
	const struct fault_script *script;
	uint64_t seed;
	uint32_t *
		order; /* indices of rules, those of call c from start[c] to start[c + 1] */
	uint32_t start[FAULT_SUBJECTS + 1];
	uint64_t count[FAULT_COUNTED]; /* of what was counted so far, over all queues */
	uint64_t *applied;             /* for each rule of the script: how often */
};

/* A call to refuse, or a request to which something happens. rule NULL: none. */
struct fault_hit {
	const struct fault_rule *rule;
	uint64_t number;            /* of the call or request */
	struct fault_queue queue;   /* of a request */
	uint64_t packet, copy;      /* of a packet */
	struct fault_outage outage; /* of a rule of times */
};

/* A byte of a program's name as names are compared and written: one that a script cannot have is a question mark. */
char fault_name_byte(char c);

/* Takes the rules of the script for all programs, and for one with any of these names. The script has to last.
 * Returns 0 or ENOMEM. */
int fault_plan_init(struct fault_plan *p, const struct fault_script *s, uint64_t seed,
	const char *const *names, unsigned name_count);
void fault_plan_free(struct fault_plan *p);
/* For a forked child, which has made no calls. */
void fault_plan_restart(struct fault_plan *p);

/* Whether any rule of the process counts this. */
bool fault_plan_concerns(const struct fault_plan *p, unsigned counted);
/* Counts a call, and returns which rule refuses it: the first of the script that does. Any thread. */
struct fault_hit fault_plan_next(struct fault_plan *p, enum fault_call call);
/* The same for a request, whose queue the caller counts. number: of the request there. kind: FAULT_ON_* and FAULT_OF_* of
 * it. */
struct fault_hit fault_plan_request(struct fault_plan *p, unsigned counted,
	struct fault_queue queue, uint64_t number, unsigned kind);
struct fault_hit fault_plan_packet(struct fault_plan *p, struct fault_queue queue,
	const struct fault_packet *packet);
/* The rule of a hit was applied. Any thread. */
void fault_plan_applied(struct fault_plan *p, const struct fault_hit *hit);

/* Whether the rule with this index in its script matches the call with this number. queue: of the queue of a
 * request; 0: it is a call. The same arguments give the same answer. */
bool fault_rule_matches(const struct fault_rule *r, uint32_t index, uint64_t seed,
	uint64_t queue, uint64_t number);

/* fault_outage.c: the outage number n, from 0, of a rule of times. Returns false if it has no more. */
bool fault_outage_of(const struct fault_rule *r, uint64_t n, struct fault_outage *out);

/* The link of a process. Times are in nanoseconds of one clock, which the caller reads. One call at a time. */
struct fault_links {
	const struct fault_plan *plan;
	uint64_t *next;      /* of each rule of times: which outage has not begun */
	uint64_t begin;      /* from which rules count their times */
	uint64_t down_until; /* FAULT_NO_END: it has no end */
	bool cut;            /* the link is down */
};

struct fault_link_step {
	struct fault_hit hit; /* is applied. rule NULL: an outage ends */
	bool changes;         /* the link goes down or up: as links->cut says now */
};

/* The most outages of a rule that begin late. If more are late, those before them are left out. */
#define FAULT_LATE_MAX 16

/* Returns 0 or ENOMEM. The plan has to last. */
int fault_links_begin(struct fault_links *l, const struct fault_plan *plan, uint64_t now);
void fault_links_free(struct fault_links *l);
/* Takes the next step that is due, in the order of time. Returns false if none is. */
bool fault_links_step(struct fault_links *l, uint64_t now, struct fault_link_step *out);
/* A request has hit a rule of the link. No step is due. Returns false if the rule changes nothing. */
bool fault_links_hit(struct fault_links *l, const struct fault_hit *hit, uint64_t now,
	struct fault_link_step *out);
/* No step is due. Returns when the next one is; FAULT_NO_END: never. */
uint64_t fault_links_due(struct fault_links *l, uint64_t now);

/* fault_names.c: names of scripts. FAULT_CALLS, and 0, if there is none of this name. */
enum fault_call fault_call_named(const char *name, size_t len);
int fault_error_named(enum fault_call call, const char *name, size_t len);
const char *fault_call_name(enum fault_call call);
const char *fault_call_functions(enum fault_call call);
bool fault_counts_requests(enum fault_call call);
const char *fault_error_name(int err);
/* The section of the man page that allows the call to fail. */
const char *fault_permission(enum fault_call call, int err);
/* Sets err of the rule by the name of a status or an event. Returns false if there is none for what it counts. */
bool fault_value_named(struct fault_rule *r, const char *name, size_t len);
/* Sets the action of a rule of calls by its word, such as "lose". Returns false if there is none for this call. */
bool fault_action_named(struct fault_rule *r, const char *word, size_t len);
const char *fault_action_name(const struct fault_rule *r);
const char *fault_value_name(const struct fault_rule *r);
const char *fault_value_permission(const struct fault_rule *r);
/* Whether it may happen to a request of this kind. */
bool fault_value_fits(const struct fault_rule *r, unsigned kind);
void fault_values_list(const struct fault_rule *r, char *out, size_t size);
/* Sets what a rule counts, its action and its err by the row with this index of docs/faults.def. Returns false behind the
 * last one. */
bool fault_row(unsigned index, struct fault_rule *r);
/* Writes the names that are valid, with commas between them; behind those of errors the actions of the call. counted: as
 * fault_rule.call. */
void fault_calls_list(char *out, size_t size);
void fault_errors_list(enum fault_call call, char *out, size_t size);
void fault_actions_list(unsigned counted, char *out, size_t size);

/* fault_text.c: prints a sentence for each rule. Writes a hit as a rule of its own, without the program. */
void fault_script_explain(const struct fault_script *s, FILE *to);
const char *fault_ordinal_ending(uint64_t n);
/* Writes milliseconds as a script has them. size: FAULT_TIME_TEXT at least. */
#define FAULT_TIME_TEXT 32
void fault_time_write(uint64_t ms, char *out, size_t size);
/* size: FAULT_HIT_TEXT at least. */
#define FAULT_HIT_TEXT 160
void fault_hit_write(const struct fault_hit *hit, char *out, size_t size);

/* fault_census.c: what the processes of a run have counted, from its journal. */
#define FAULT_PROGRAMS_MAX 64 /* more processes are left out */

struct fault_program {
	long pid;
	char name[FAULT_NAME_MAX + 1];
	bool counted; /* it has reached its end, so that the numbers are its own */
	uint64_t count[FAULT_COUNTED], qps, srqs;
};

struct fault_census {
	struct fault_program programs[FAULT_PROGRAMS_MAX];
	unsigned count;
};

void fault_census_read(struct fault_census *c, const char *journal);
/* Sorts the processes by their names, and makes one, with the larger counts, of those with one name: a rule is for all
 * processes of a name, and in which order they have ended is not fixed. */
void fault_census_join(struct fault_census *c);
/* Writes the line of a process. size: FAULT_COUNTS_TEXT at least. */
#define FAULT_COUNTS_TEXT 4096
void fault_counts_write(const struct fault_plan *p, const struct fault_program *of,
	char *out, size_t size);

/* fault_draw.c: writes a script that the seed draws, for what the census has. profile: an index of
 * rocade_faults_profiles. Returns false if the profile has no fault for it. */
bool fault_script_draw(
	const struct fault_census *c, unsigned profile, uint64_t seed, FILE *to);

#endif
