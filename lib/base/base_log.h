/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of the control path; nothing on the data path logs. Messages go to a sink that the
 * embedder sets (rte_log in a DPDK process). Without a sink, warnings and errors go to stderr, and
 * with ROCADE_LOG=info in the environment LOG_LEVEL_INFO, too. */
#ifndef ROCADE_BASE_LOG_H
#define ROCADE_BASE_LOG_H

enum log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

typedef void (*log_sink_fn)(enum log_level level, const char *line, void *arg);

/* Not thread-safe against log calls: set it before the first port opens. NULL: stderr. */
void log_set_sink(log_sink_fn sink, void *arg);

/* One line, without the newline. */
void log_write(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define log_err(...) log_write(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)

#endif
