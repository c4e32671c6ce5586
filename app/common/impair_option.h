/* SPDX-License-Identifier: BSD-3-Clause */
/* The option --impair: loss and other faults on purpose. */
#ifndef COMMON_IMPAIR_OPTION_H
#define COMMON_IMPAIR_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include <rocade/rocade.h>

#define IMPAIR_VALID                                                                           \
	"off, or some of loss, dup, reorder and corrupt, each once with a share in % or ppm: " \
	"loss=1%,dup=500ppm"
#define IMPAIR_TEXT_MAX 160

/* Parses "1%", "0.25%" or "100ppm" to parts per million, at most 100%. */
bool parse_ppm(const char *text, uint32_t *ppm);

/* Parses "loss=1%,dup=1%" or "off". Shares not named become 0; the seed stays.
 * Returns NULL, or what is wrong with the text: "names loss twice". *impair is unchanged then. */
const char *impair_parse(const char *text, struct rocade_impair *impair);
/* For the rest of a command: also takes "loss 1% dup 1%". */
const char *impair_words_parse(const char *text, struct rocade_impair *impair);
/* For the errors of options: "it names loss twice", of the text that was refused last, unless this was
 * called since; else "". */
const char *impair_why(void);

bool impair_wanted(const struct rocade_impair *impair);
/* Writes "loss=1%,dup=0.05%, seed 1" and returns text. */
const char *impair_format(const struct rocade_impair *impair, char text[IMPAIR_TEXT_MAX]);

#endif
