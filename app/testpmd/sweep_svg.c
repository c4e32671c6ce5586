/* SPDX-License-Identifier: BSD-3-Clause */
/* A picture of latency, on a logarithmic scale, over load. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sweep.h"

#define WIDTH 760
#define HEIGHT 420
#define LEFT 80
#define RIGHT 100
#define TOP 40
#define BOTTOM 50
#define TICKS_X 5
#define TITLE_MAX 90 /* characters of the options that fit */

struct scale {
	double max_x;      /* messages a second */
	int low_y, high_y; /* powers of ten, in microseconds */
};

struct curve {
	const char *name, *color;
	size_t offset; /* in struct sweep_row */
};

static const struct curve curves[] = {
	{"p50", "#1b7837", offsetof(struct sweep_row, p50)},
	{"p99", "#2166ac", offsetof(struct sweep_row, p99)},
	{"p99.9", "#b35806", offsetof(struct sweep_row, p999)},
	{"p99.99", "#b2182b", offsetof(struct sweep_row, p9999)},
};
#define CURVES (sizeof(curves) / sizeof(curves[0]))

static double
value_of(const struct sweep_row *row, const struct curve *curve)
{
	return *(const double *)(const void *)((const char *)row + curve->offset);
}

static struct scale
scale_of(const struct sweep_row *rows, unsigned n)
{
	struct scale scale = {.max_x = 1};
	double low = INFINITY, high = 0;

	for (unsigned i = 0; i < n; i++) {
		scale.max_x = fmax(scale.max_x, rows[i].asked);
		low = fmin(low, rows[i].p50);
		high = fmax(high, rows[i].p9999);
	}
	scale.low_y = (int)floor(log10(fmax(low, 0.001)));
	scale.high_y = (int)ceil(log10(fmax(high, 0.001)));
	if (scale.high_y == scale.low_y)
		scale.high_y++;
	return scale;
}

static double
x_of(const struct scale *scale, double load)
{
	return LEFT + load / scale->max_x * (WIDTH - LEFT - RIGHT);
}

static double
y_of(const struct scale *scale, double us)
{
	double part =
		(log10(fmax(us, 0.001)) - scale->low_y) / (scale->high_y - scale->low_y);

	return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

static void
axes_write(FILE *file, const struct scale *scale)
{
	for (int y = scale->low_y; y <= scale->high_y; y++) {
		double us = pow(10, y), at = y_of(scale, us);

		fprintf(file,
			"<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ccc\"/>\n"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g us</text>\n",
			LEFT, at, WIDTH - RIGHT, at, LEFT - 8, at + 4, us);
	}
	for (int i = 0; i <= TICKS_X; i++) {
		double load = scale->max_x * i / TICKS_X;

		fprintf(file,
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n",
			x_of(scale, load), HEIGHT - BOTTOM + 18, load);
	}
	fprintf(file,
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">messages a second, asked"
		"</text>\n",
		(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12);
}

/* A step whose messages were due and not posted is a hollow circle: the load was too high. */
static void
curve_write(FILE *file, const struct scale *scale, const struct sweep_row *rows,
	unsigned n, const struct curve *curve)
{
	fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" points=\"", curve->color);
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "%s%.1f,%.1f", i != 0 ? " " : "",
			x_of(scale, rows[i].asked),
			y_of(scale, value_of(&rows[i], curve)));
	fprintf(file, "\"/>\n");
	for (unsigned i = 0; i < n; i++)
		fprintf(file,
			"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" stroke=\"%s\" fill=\"%s\"/>\n",
			x_of(scale, rows[i].asked),
			y_of(scale, value_of(&rows[i], curve)), curve->color,
			rows[i].behind > 1 ? "white" : curve->color);
	fprintf(file, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">%s</text>\n",
		WIDTH - RIGHT + 12, TOP + 16.0 * (double)(curve - curves) + 12,
		curve->color, curve->name);
}

int
sweep_svg_write(
	const char *path, const struct sweep_row *rows, unsigned n, const char *title)
{
	struct scale scale = scale_of(rows, n);
	FILE *file = fopen(path, "w");

	if (file == NULL)
		return -1;
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"20\">Latency over load: %.*s%s</text>\n",
		WIDTH, HEIGHT, LEFT, TITLE_MAX, title,
		strlen(title) > TITLE_MAX ? "..." : "");
	axes_write(file, &scale);
	for (unsigned i = 0; i < CURVES; i++)
		curve_write(file, &scale, rows, n, &curves[i]);
	fprintf(file, "</svg>\n");
	return fclose(file);
}
