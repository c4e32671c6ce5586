/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "drop_parts.h"

/* Clears up to size parts that are kept, from a part on. Returns the part behind them. */
static unsigned
parts_clear(bool *kept, unsigned from, unsigned count, unsigned size)
{
	for (; from < count && size != 0; from++) {
		size -= kept[from];
		kept[from] = false;
	}
	return from;
}

static unsigned
parts_kept(const bool *kept, unsigned count)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += kept[i];
	return sum;
}

/* Tries to leave out each piece of this many parts. Returns whether any was. */
static bool
pieces_try(bool *kept, bool *spare, unsigned count, unsigned size,
	bool (*fails)(const bool *kept, void *arg), void *arg)
{
	bool dropped = false;
	unsigned at = 0;

	while (at < count) {
		memcpy(spare, kept, count * sizeof(*kept));
		at = parts_clear(kept, at, count, size);
		if (memcmp(spare, kept, count * sizeof(*kept)) == 0)
			continue;
		if (parts_kept(kept, count) != 0 && fails(kept, arg))
			dropped = true;
		else
			memcpy(kept, spare, count * sizeof(*kept));
	}
	return dropped;
}

unsigned
parts_drop(bool *kept, bool *spare, unsigned count,
	bool (*fails)(const bool *kept, void *arg), void *arg)
{
	unsigned size = (count + 1) / 2;

	while (size != 0) {
		/* A part may have been needed only as long as one behind it was there. */
		if (pieces_try(kept, spare, count, size, fails, arg) && size == 1)
			continue;
		size /= 2;
	}
	return parts_kept(kept, count);
}
