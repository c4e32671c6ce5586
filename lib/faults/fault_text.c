/* SPDX-License-Identifier: BSD-3-Clause */
/* A script in sentences. */
#include <inttypes.h>

#include "faults/faults.h"

static const char *
ordinal_ending(uint64_t n)
{
	static const char *const endings[] = {"th", "st", "nd", "rd"};

	return n % 100 / 10 == 1 || n % 10 > 3 ? endings[0] : endings[n % 10];
}

static void
rule_explain(const struct fault_rule *r, FILE *to)
{
	enum fault_call call = (enum fault_call)r->call;
	const char *unit = fault_counts_requests(call) ? "work request" : "call";

	fprintf(to, "line %" PRIu32 ": in each process", r->line);
	if (r->program != NULL)
		fprintf(to, " of a program named \"%s\"", r->program);
	fprintf(to, ", ");
	if (r->when == FAULT_NTH)
		fprintf(to, "%s %" PRIu64, unit, r->number);
	else if (r->when == FAULT_EACH_NTH)
		fprintf(to, "each %" PRIu64 "%s %s", r->number, ordinal_ending(r->number),
			unit);
	else
		fprintf(to, "%g %% of the %ss, which the seed draws,",
			(double)r->number * 100 / FAULT_MILLION, unit);
	fprintf(to, " of %s %s refused with %s; %s allows the failure.\n",
		fault_call_functions(call), r->when == FAULT_SHARE ? "are" : "is",
		fault_error_name(r->err), fault_permission(call, r->err));
}

void
fault_script_explain(const struct fault_script *s, FILE *to)
{
	for (unsigned i = 0; i < s->count; i++)
		rule_explain(&s->rules[i], to);
	fprintf(to, "%u rule%s in all.\n", s->count, s->count == 1 ? "" : "s");
}
