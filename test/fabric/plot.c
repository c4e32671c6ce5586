/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "clock.h"
#include "numbers.h"
#include "plot.h"

#define WIDTH 900
#define LEFT 70
#define CURVE_WIDTH (WIDTH - LEFT - 20)
#define CHART 150 /* height */
#define GAP 50
#define CURVES 128 /* flows drawn, at most */
#define POINTS 100 /* of a curve in the picture, at most: means of what is in the table */
#define COLOUR "hsl(%u,70%%,45%%)"

/* Slowdown by length. Both axes are logarithmic and fixed, so that pictures compare. */
#define TALL 300 /* height */
#define BINS 20  /* of equally many messages each */
#define MIN_BYTES 100.0
#define LENGTH_DECADES 5
#define SLOWDOWN_DECADES 3 /* at least */
#define COLOUR_P50 235u
#define COLOUR_P99 0u

struct message {
	uint64_t bytes;
	double slowdown;
};

/* Messages of about the same length. */
struct bin {
	uint64_t from, to; /* bytes: the shortest, the longest */
	double middle;     /* and the mean of their logarithms, as a length */
	size_t count;
	double p50, p99; /* slowdown */
};

struct plot {
	FILE *table;
	FILE *picture;
	char name[64];
	uint64_t ps_per_byte;
	unsigned curves; /* values of a slice: queue, Jain's index, rates */
	size_t slices, room;
	double *values;
	double *times; /* microseconds */
	struct message *messages;
	size_t message_count, message_room;
};

static FILE *
file_open(const char *directory, const char *name, const char *ending)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%s", directory, name, ending);
	file = fopen(path, "w");
	CHECK(file != NULL, "%s cannot be written", path);
	return file;
}

struct plot *
plot_open(const char *directory, const char *name, uint64_t ps_per_byte)
{
	struct plot *p = calloc(1, sizeof(*p));

	CHECK(p != NULL, "no memory");
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->ps_per_byte = ps_per_byte;
	p->table = file_open(directory, name, "tsv");
	p->picture = file_open(directory, name, "svg");
	return p;
}

void
plot_run(struct plot *p)
{
	p->slices = 0;
}

void
plot_message(struct plot *p, uint64_t bytes, double slowdown)
{
	if (p->message_count == p->message_room) {
		p->message_room = p->message_room != 0 ? 2 * p->message_room : 256;
		p->messages =
			realloc(p->messages, p->message_room * sizeof(*p->messages));
		CHECK(p->messages != NULL, "no memory");
	}
	p->messages[p->message_count++] = (struct message){bytes, slowdown};
}

void
plot_slice(struct plot *p, uint64_t now, uint64_t queue_bytes, const double *rates,
	unsigned n, double jain)
{
	double *value;

	n = RTE_MIN(n, (unsigned)CURVES);
	p->curves = n + 2;
	if (p->slices == p->room) {
		p->room = p->room != 0 ? 2 * p->room : 256;
		p->values = realloc(p->values, p->room * p->curves * sizeof(double));
		p->times = realloc(p->times, p->room * sizeof(double));
		CHECK(p->values != NULL && p->times != NULL, "no memory");
	}
	value = &p->values[p->slices * p->curves];
	p->times[p->slices++] = (double)now / PS_PER_US;
	value[0] = (double)(queue_bytes * p->ps_per_byte) / PS_PER_US;
	value[1] = jain;
	memcpy(value + 2, rates, n * sizeof(*rates));
}

static void
table_write(const struct plot *p)
{
	fprintf(p->table, "us\tqueue_us\tjain");
	for (unsigned c = 2; c < p->curves; c++)
		fprintf(p->table, "\tflow%u_gbit_per_s", c - 2);
	fputc('\n', p->table);
	for (size_t s = 0; s < p->slices; s++) {
		fprintf(p->table, "%.0f", p->times[s]);
		for (unsigned c = 0; c < p->curves; c++)
			fprintf(p->table, "\t%.3f", p->values[s * p->curves + c]);
		fputc('\n', p->table);
	}
}

static void
curve_draw(const struct plot *p, unsigned curve, double top, unsigned y)
{
	double end = p->times[p->slices - 1];
	size_t step = (p->slices + POINTS - 1) / POINTS;

	fprintf(p->picture,
		"<polyline fill=\"none\" stroke=\"" COLOUR
		"\" stroke-width=\"1\" points=\"",
		curve * 47 % 360);
	for (size_t s = 0; s + step <= p->slices; s += step) {
		double mean = 0;

		for (size_t i = s; i < s + step; i++)
			mean += p->values[i * p->curves + curve] / (double)step;
		fprintf(p->picture, "%.0f,%.0f ", LEFT + p->times[s] / end * CURVE_WIDTH,
			y + CHART - mean / top * CHART);
	}
	fprintf(p->picture, "\"/>\n");
}

/* Draws the curves [first, end) below their title, from 0 to the greatest value. */
static void
chart_draw(
	const struct plot *p, const char *title, unsigned first, unsigned end, unsigned y)
{
	double top = 1;

	for (size_t s = 0; s < p->slices; s++) {
		for (unsigned c = first; c < end; c++)
			top = RTE_MAX(top, p->values[s * p->curves + c]);
	}
	fprintf(p->picture,
		"<text x=\"%d\" y=\"%u\">%s</text>\n"
		"<text x=\"%d\" y=\"%u\" text-anchor=\"end\">%.3g</text>\n"
		"<text x=\"%d\" y=\"%u\" text-anchor=\"end\">0</text>\n"
		"<rect x=\"%d\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n",
		LEFT, y - 6, title, LEFT - 6, y + 10, top, LEFT - 6, y + CHART, LEFT, y,
		CURVE_WIDTH, CHART);
	for (unsigned c = first; c < end; c++)
		curve_draw(p, c, top, y);
}

/* Writes what comes before the title. */
static void
picture_begin(const struct plot *p, unsigned height)
{
	fprintf(p->picture,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"%d\" height=\"%u\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"18\" font-size=\"15\">%s, ",
		WIDTH, height, WIDTH, height, LEFT, p->name);
}

static void
picture_write(const struct plot *p)
{
	picture_begin(p, 3 * (CHART + GAP) + GAP);
	fprintf(p->picture, "over %.0f us</text>\n", p->times[p->slices - 1]);
	chart_draw(p, "queue of the bottleneck (us)", 0, 1, GAP);
	chart_draw(p, "rate of each flow (Gb/s)", 2, p->curves, GAP + CHART + GAP);
	chart_draw(p, "fairness (Jain's index)", 1, 2, GAP + 2 * (CHART + GAP));
	fprintf(p->picture, "</svg>\n");
}

/* ---- Slowdown by length ---- */

static int
message_compare(const void *a, const void *b)
{
	const struct message *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return (x->slowdown > y->slowdown) - (x->slowdown < y->slowdown);
}

/* n: messages, sorted by length. */
static struct bin
bin_make(const struct message *message, size_t n)
{
	double *slowdown = calloc(n, sizeof(*slowdown)), logs = 0;
	struct bin bin = {message[0].bytes, message[n - 1].bytes, 0, n, 0, 0};

	CHECK(slowdown != NULL, "no memory");
	for (size_t i = 0; i < n; i++) {
		slowdown[i] = message[i].slowdown;
		logs += log((double)message[i].bytes);
	}
	bin.middle = exp(logs / (double)n);
	bin.p50 = percentile(slowdown, n, 0.5);
	bin.p99 = percentile(slowdown, n, 0.99);
	free(slowdown);
	return bin;
}

/* Returns how many there are: fewer than BINS if there are fewer messages. */
static unsigned
bins_make(struct plot *p, struct bin *bins)
{
	size_t count = p->message_count, n = RTE_MIN(count, (size_t)BINS);

	qsort(p->messages, count, sizeof(*p->messages), message_compare);
	for (size_t b = 0; b < n; b++) {
		size_t first = b * count / n, end = (b + 1) * count / n;

		bins[b] = bin_make(&p->messages[first], end - first);
	}
	return (unsigned)n;
}

static void
bins_table_write(const struct plot *p, const struct bin *bins, unsigned n)
{
	fprintf(p->table, "bytes_from\tbytes_to\tmessages\tslowdown_p50\tslowdown_p99\n");
	for (const struct bin *b = bins; b < bins + n; b++)
		fprintf(p->table, "%llu\t%llu\t%zu\t%.3f\t%.3f\n",
			(unsigned long long)b->from, (unsigned long long)b->to, b->count,
			b->p50, b->p99);
}

static double
length_x(double bytes)
{
	return LEFT + log10(bytes / MIN_BYTES) / LENGTH_DECADES * CURVE_WIDTH;
}

static double
slowdown_y(double slowdown, unsigned decades)
{
	return GAP + TALL - log10(slowdown) / decades * TALL;
}

static void
grid_draw(const struct plot *p, unsigned decades)
{
	static const char *const lengths[] = {
		"100 B", "1 KB", "10 KB", "100 KB", "1 MB", "10 MB"};

	for (unsigned d = 0; d <= LENGTH_DECADES; d++) {
		double x = length_x(MIN_BYTES * pow(10, d));

		fprintf(p->picture,
			"<line x1=\"%.0f\" y1=\"%d\" x2=\"%.0f\" y2=\"%d\" stroke=\"#ddd\"/>\n"
			"<text x=\"%.0f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
			x, GAP, x, GAP + TALL, x, GAP + TALL + 16, lengths[d]);
	}
	for (unsigned d = 0; d <= decades; d++) {
		double y = slowdown_y(pow(10, d), decades);

		fprintf(p->picture,
			"<line x1=\"%d\" y1=\"%.0f\" x2=\"%d\" y2=\"%.0f\" stroke=\"#ddd\"/>\n"
			"<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%.0f</text>\n",
			LEFT, y, LEFT + CURVE_WIDTH, y, LEFT - 6, y + 4, pow(10, d));
	}
	fprintf(p->picture,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#888\"/>\n",
		LEFT, GAP, CURVE_WIDTH, TALL);
}

static void
bins_draw(const struct plot *p, const struct bin *bins, unsigned n, bool p99,
	unsigned decades)
{
	unsigned colour = p99 ? COLOUR_P99 : COLOUR_P50;

	fprintf(p->picture,
		"<text x=\"%d\" y=\"%d\" fill=\"" COLOUR "\">%s</text>\n"
		"<polyline fill=\"none\" stroke=\"" COLOUR
		"\" stroke-width=\"2\" points=\"",
		LEFT + 10, GAP + (p99 ? 18 : 34), colour,
		p99 ? "99th percentile" : "median", colour);
	for (const struct bin *b = bins; b < bins + n; b++)
		fprintf(p->picture, "%.0f,%.0f ", length_x(b->middle),
			slowdown_y(p99 ? b->p99 : b->p50, decades));
	fprintf(p->picture, "\"/>\n");
}

static void
slowdown_write(struct plot *p)
{
	struct bin bins[BINS];
	unsigned n = bins_make(p, bins), decades = SLOWDOWN_DECADES;

	for (const struct bin *b = bins; b < bins + n; b++)
		decades = RTE_MAX(decades, (unsigned)ceil(log10(b->p99)));
	bins_table_write(p, bins, n);
	picture_begin(p, TALL + 2 * GAP);
	fprintf(p->picture,
		"%zu messages</text>\n"
		"<text x=\"%d\" y=\"%d\">slowdown (time over that in an idle network)</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">length of the message</text>\n",
		p->message_count, LEFT, GAP - 6, LEFT + CURVE_WIDTH / 2, GAP + TALL + 36);
	grid_draw(p, decades);
	bins_draw(p, bins, n, false, decades);
	bins_draw(p, bins, n, true, decades);
	fprintf(p->picture, "</svg>\n");
}

void
plot_close(struct plot *p)
{
	if (p->message_count != 0) {
		slowdown_write(p);
	} else if (p->slices != 0) {
		table_write(p);
		picture_write(p);
	}
	fclose(p->table);
	fclose(p->picture);
	free(p->values);
	free(p->times);
	free(p->messages);
	free(p);
}
