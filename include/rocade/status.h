/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a daemon and its clients are doing, for programs that show it: `rocade-status` prints what
 * this says.
 */
#ifndef ROCADE_STATUS_H
#define ROCADE_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Asks the daemon at this socket (NULL: where clients look for it), and lets it ask its clients,
 * who get 200 ms to answer. *json is a text, the caller's to free():
 *
 *   {"socket": PATH,
 *    "daemon": {"device": {...}, "clients": [{"id": 1, "pid": ..., ...}, ...], "gone": {...}},
 *    "reports": [{"id": 1, "answered": true, "engine": {...}, "srq_count": N, "srqs": [...],
 *                 "qps": [...]}, ...]}
 *
 * A report is what a client says of itself, of those that the caller may ask about: its own
 * user's; root and the daemon's user may ask about all. Up to 256 SRQs and 1024 QPs of a client are
 * listed.
 *
 * 0 or a positive errno value; rocade_error() has a sentence. ENOENT, ECONNREFUSED: no daemon
 * answers there. Any thread.
 */
int rocade_status(const char *socket, char **json);

#define ROCADE_NAME_MAX 64

/*
 * The name of the daemon's device; asks the daemon only. Returns as rocade_status() does; EPROTO: a
 * daemon of another version. Any thread.
 */
int rocade_device_name(const char *socket, char name[ROCADE_NAME_MAX]);

#ifdef __cplusplus
}
#endif

#endif
