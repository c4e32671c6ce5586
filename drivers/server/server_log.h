/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon's log. */
#ifndef ROCADE_SERVER_LOG_H
#define ROCADE_SERVER_LOG_H

#include "base/common.h"

/* Returns how many lines were lost because the reader of standard error did not read. */
uint64_t server_log_lost(void);

#endif
