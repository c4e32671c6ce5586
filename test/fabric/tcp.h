/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP as a reference: hosts that send to one host without a pause, at the same switch as the
 * scenario's. Its window is that of CUBIC (cubic.h), and selective acknowledgements tell what is
 * missing. A segment is lost if three that were sent later have arrived, or one that was sent a
 * quarter of a round trip later (RFC 8985); tail-loss probe and retransmission timeout are as
 * there, with Linux's least timeout. The model is favourable to TCP: hosts take no time, each
 * segment is acknowledged, and a host keeps few frames in its own queue.
 */
#ifndef ROCADE_FABRIC_TCP_H
#define ROCADE_FABRIC_TCP_H

#include "fabric.h"

struct tcp_result {
	double goodput; /* part of the link's time that segments took which arrived first */
	double jain;
	double resends; /* part of the segments sent */
};

/* Runs it with the network of conf, which is SHAPE_STAR: all hosts send to host 0. Times in
 * picoseconds; what is measured begins after `warm`. */
void tcp_run(const struct fabric_conf *conf, uint64_t seed, uint64_t warm,
	uint64_t length, struct tcp_result *result);

#endif
