/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_watch.h"

enum run_verdict
run_watch_next(struct run_watch *w, uint64_t state, uint64_t output)
{
	w->same = w->looks != 0 && state == w->state ? w->same + 1 : 0;
	w->state = state;
	w->looks++;
	w->left += w->ended;
	if (w->output_max != 0 && output > w->output_max)
		return RUN_HANGS;
	/* The first one behind the end of the command is not compared with one before it. */
	if (w->left > 1 && w->same != 0)
		return RUN_IS_QUIET;
	if (!w->ended && w->same >= HANG_LOOKS)
		return RUN_HANGS;
	if (w->left >= REPEAT_LOOKS || (w->limited && w->looks >= REPEAT_LOOKS))
		return RUN_HANGS;
	return RUN_GOES_ON;
}
