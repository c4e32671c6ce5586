/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts calls, and says which of them are refused, and to which requests something happens. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/splitmix64.h"
#include "faults/faults.h"

char
fault_name_byte(char c)
{
	return c == '"' || (unsigned char)c < ' ' ? '?' : c;
}

static bool
name_is(const char *name, const char *of_rule)
{
	size_t i = 0;

	while (name[i] != '\0' && of_rule[i] != '\0' &&
		fault_name_byte(name[i]) == fault_name_byte(of_rule[i]))
		i++;
	return name[i] == '\0' && of_rule[i] == '\0';
}

static bool
rule_concerns(const struct fault_rule *r, const char *const *names, unsigned name_count)
{
	for (unsigned i = 0; i < name_count && r->program != NULL; i++) {
		if (name_is(names[i], r->program))
			return true;
	}
	return r->program == NULL;
}

int
fault_plan_init(struct fault_plan *p, const struct fault_script *s, uint64_t seed,
	const char *const *names, unsigned name_count)
{
	uint32_t n = 0;

	*p = (struct fault_plan){.script = s, .seed = seed};
	p->order = calloc(s->count + 1, sizeof(*p->order));
	p->applied = calloc(s->count + 1, sizeof(*p->applied));
	if (p->order == NULL || p->applied == NULL) {
		fault_plan_free(p);
		return ENOMEM;
	}
	for (unsigned call = 0; call < FAULT_SUBJECTS; call++) {
		p->start[call] = n;
		for (uint32_t i = 0; i < s->count; i++) {
			if (s->rules[i].call == call &&
				rule_concerns(&s->rules[i], names, name_count))
				p->order[n++] = i;
		}
	}
	p->start[FAULT_SUBJECTS] = n;
	return 0;
}

void
fault_plan_free(struct fault_plan *p)
{
	free(p->order);
	free(p->applied);
	*p = (struct fault_plan){.script = NULL};
}

void
fault_plan_restart(struct fault_plan *p)
{
	memset(p->count, 0, sizeof(p->count));
	if (p->script != NULL)
		memset(p->applied, 0, p->script->count * sizeof(*p->applied));
}

/* Returns a number below FAULT_MILLION that is a function of the arguments. part: packet and copy,
 * or 0 for a request or a call. */
static uint64_t
drawn(uint64_t seed, uint32_t index, uint64_t queue, uint64_t number, uint64_t part)
{
	uint64_t state = seed;

	state = splitmix64(&state) ^ index;
	if (queue != 0)
		state = splitmix64(&state) ^ queue;
	if (part != 0)
		state = splitmix64(&state) ^ part;
	state = splitmix64(&state) ^ number;
	return splitmix64(&state) % FAULT_MILLION;
}

bool
fault_rule_matches(const struct fault_rule *r, uint32_t index, uint64_t seed,
	uint64_t queue, uint64_t number)
{
	switch (r->when) {
	case FAULT_NTH:
		return number == r->number;
	case FAULT_EACH_NTH: /* most rules are far from their first match: no division */
		return number >= r->number && number % r->number == 0;
	default:
		return drawn(seed, index, queue, number, 0) < r->number;
	}
}

bool
fault_plan_concerns(const struct fault_plan *p, unsigned counted)
{
	return p->start[counted] != p->start[counted + 1];
}

struct fault_hit
fault_plan_next(struct fault_plan *p, enum fault_call call)
{
	uint64_t number = 1 + __atomic_fetch_add(&p->count[call], 1, __ATOMIC_RELAXED);

	for (uint32_t i = p->start[call]; i < p->start[call + 1]; i++) {
		uint32_t index = p->order[i];
		const struct fault_rule *r = &p->script->rules[index];

		if (fault_rule_matches(r, index, p->seed, 0, number))
			return (struct fault_hit){.rule = r, .number = number};
	}
	return (struct fault_hit){.rule = NULL, .number = number};
}

static bool
is_of_queue(const struct fault_rule *r, const struct fault_queue *queue)
{
	return r->queue.type == FAULT_NO_OBJECT ||
	       (r->queue.type == queue->type && r->queue.number == queue->number);
}

/* A QP and an SRQ of one number draw different requests. */
static uint64_t
queue_key(const struct fault_queue *queue)
{
	return queue->type == FAULT_SRQ ? queue->number | UINT64_C(1) << 63
					: queue->number;
}

struct fault_hit
fault_plan_request(struct fault_plan *p, unsigned counted, struct fault_queue queue,
	uint64_t number, unsigned kind)
{
	struct fault_hit hit = {.number = number, .queue = queue};

	__atomic_fetch_add(&p->count[counted], 1, __ATOMIC_RELAXED);
	for (uint32_t i = p->start[counted]; i < p->start[counted + 1]; i++) {
		uint32_t index = p->order[i];
		const struct fault_rule *r = &p->script->rules[index];

		if (is_of_queue(r, &queue) &&
			fault_rule_matches(
				r, index, p->seed, queue_key(&queue), number) &&
			fault_value_fits(r, kind)) {
			hit.rule = r;
			break;
		}
	}
	return hit;
}

/* Whether the rule with this index matches a packet. Those that are sent again are drawn anew, and have no order. */
static bool
packet_matches(const struct fault_rule *r, uint32_t index, uint64_t seed, uint64_t queue,
	const struct fault_packet *packet)
{
	switch (r->when) {
	case FAULT_NTH:
		return packet->request == r->number && packet->packet == r->packet &&
		       packet->copy == r->copy;
	case FAULT_EACH_NTH:
		return packet->copy == 1 &&
		       fault_rule_matches(r, index, seed, queue, packet->order);
	default:
		return drawn(seed, index, queue, packet->request,
			       packet->copy << 32 | packet->packet) < r->number;
	}
}

struct fault_hit
fault_plan_packet(
	struct fault_plan *p, struct fault_queue queue, const struct fault_packet *packet)
{
	struct fault_hit hit = {.number = packet->request,
		.queue = queue,
		.packet = packet->packet,
		.copy = packet->copy};

	__atomic_fetch_add(&p->count[FAULT_PACKETS], 1, __ATOMIC_RELAXED);
	for (uint32_t i = p->start[FAULT_PACKETS]; i < p->start[FAULT_PACKETS + 1]; i++) {
		uint32_t index = p->order[i];
		const struct fault_rule *r = &p->script->rules[index];

		if (is_of_queue(r, &queue) &&
			packet_matches(r, index, p->seed, queue.number, packet)) {
			hit.rule = r;
			break;
		}
	}
	return hit;
}

void
fault_plan_applied(struct fault_plan *p, const struct fault_hit *hit)
{
	__atomic_fetch_add(
		&p->applied[hit->rule - p->script->rules], 1, __ATOMIC_RELAXED);
}
