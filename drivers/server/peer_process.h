/* SPDX-License-Identifier: BSD-3-Clause */
/* The process at the other end of a connection. Only server_conn.c and server.c call this. */
#ifndef ROCADE_SERVER_PEER_PROCESS_H
#define ROCADE_SERVER_PEER_PROCESS_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Returns the process, and its user, that has connected the socket (SO_PEERCRED). The number of the
 * process is 0 if it is in another PID namespace. No right may rest on it. */
struct ucred peer_process_read(int socket);

#define PEER_UID_NONE UINT32_MAX /* no user has it */

/* Returns the uid that the kernel shows for every user who has no number in the user namespace of this process, or
 * PEER_UID_NONE: each has a number. uid_map, overflow_uid: the paths of the
 * kernel's files with these names. */
uint32_t peer_shared_uid(const char *uid_map, const char *overflow_uid);

/*
 * Returns a pidfd of the process that has connected the socket; its number is pid
 * (SO_PEERCRED). Linux 6.5 and later know the process. With an older kernel it is the
 * process that has the number now: another one, if the process has ended and the number
 * was given away since. -1: the process has ended; or it is in another PID namespace, and
 * the kernel older.
 */
int peer_process_open(int socket, pid_t pid);

/* Writes "process N", or "unknown process" for 0. Returns text. */
const char *peer_process_text(pid_t pid, char *text, size_t size);
#define PEER_PROCESS_TEXT 24

/* Reads the name of the process, which may contain anything, as printable text without quotes.
 * Leaves name as it is if it cannot be read; its last byte is never written. */
void peer_process_name(pid_t pid, char *name, size_t size);

#endif
