/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <common/number.h>

bool
parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	/* Not base 0: it would read 010 as octal. */
	unsigned long long value =
		strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (errno != 0 || *end != '\0' || value < min || value > max)
		return false;
	*out = value;
	return true;
}

bool
parse_size(const char *text, uint64_t max, uint64_t *out)
{
	char digits[32];
	size_t len = strlen(text);
	unsigned shift = 0;
	uint64_t value;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, text, len + 1);
	switch (tolower((unsigned char)digits[len - 1])) {
	case 'k':
		shift = 10;
		break;
	case 'm':
		shift = 20;
		break;
	case 'g':
		shift = 30;
		break;
	}
	if (shift != 0)
		digits[len - 1] = '\0';
	if (!parse_number(digits, 0, max >> shift, &value))
		return false;
	*out = value << shift;
	return true;
}

bool
parse_word(const char *text, const char *const *words, uint64_t *out)
{
	for (unsigned i = 0; words[i] != NULL; i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = i;
			return true;
		}
	}
	return false;
}
