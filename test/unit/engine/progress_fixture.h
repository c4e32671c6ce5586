/* SPDX-License-Identifier: BSD-3-Clause */
/* A progress thread that only counts how often it is woken. */
#ifndef PROGRESS_FIXTURE_H
#define PROGRESS_FIXTURE_H

#include "engine/manual_progress.h"

static uint32_t asleep;
static unsigned wakes;

static void
count_wake(void *arg)
{
	(void)arg;
	wakes++;
}

static const struct engine_progress_thread progress_thread = {
	.wake = count_wake, .asleep = &asleep};

#endif
