/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "clock.h"
#include "plot.h"

#define WIDTH 900
#define LEFT 70
#define CURVE_WIDTH (WIDTH - LEFT - 20)
#define CHART 150 /* height */
#define GAP 50
#define CURVES 128 /* flows drawn, at most */
#define POINTS 100 /* of a curve in the picture, at most: means of what is in the table */

struct plot {
	FILE *table;
	FILE *picture;
	char name[64];
	uint64_t ps_per_byte;
	unsigned curves; /* values of a slice: queue, Jain's index, rates */
	size_t slices, room;
	double *values;
	double *times; /* microseconds */
};

static FILE *
file_open(const char *directory, const char *name, const char *ending)
{
	char path[512];
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
		"<polyline fill=\"none\" stroke=\"hsl(%u,70%%,45%%)\" stroke-width=\"1\" points=\"",
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

static void
picture_write(const struct plot *p)
{
	unsigned height = 3 * (CHART + GAP) + GAP;

	fprintf(p->picture,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"%d\" height=\"%u\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"18\" font-size=\"15\">%s, over %.0f us</text>\n",
		WIDTH, height, WIDTH, height, LEFT, p->name, p->times[p->slices - 1]);
	chart_draw(p, "queue of the bottleneck (us)", 0, 1, GAP);
	chart_draw(p, "rate of each flow (Gb/s)", 2, p->curves, GAP + CHART + GAP);
	chart_draw(p, "fairness (Jain's index)", 1, 2, GAP + 2 * (CHART + GAP));
	fprintf(p->picture, "</svg>\n");
}

void
plot_close(struct plot *p)
{
	if (p->slices != 0) {
		table_write(p);
		picture_write(p);
	}
	fclose(p->table);
	fclose(p->picture);
	free(p->values);
	free(p->times);
	free(p);
}
