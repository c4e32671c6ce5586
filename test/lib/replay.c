/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "base/base_alloc.h"

#include "replay.h"

/* ---- runs.tsv ---- */

static const char *
runs_text(void)
{
	static char *text;
	static char empty[1];
	FILE *file;
	long len;

	if (text != NULL)
		return text;
	file = fopen(CAPTURES "/runs.tsv", "r");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	len = ftell(file);
	rewind(file);
	text = malloc((size_t)len + 1);
	if (text == NULL)
		return empty;
	assert_int_equal(fread(text, 1, (size_t)len, file), len);
	text[len] = '\0';
	fclose(file);
	return text;
}

/* Finds the next line of this kind and capture from *at on, and splits it at its tabs. */
static bool
runs_line_next(const char **at, const char *kind, const char *name, char line[1024],
	char *columns[10])
{
	while (**at != '\0') {
		const char *end = strchr(*at, '\n');
		char *rest = line;

		assert_non_null(end);
		assert_true(end - *at < 1024);
		memcpy(line, *at, (size_t)(end - *at));
		line[end - *at] = '\0';
		*at = end + 1;
		for (unsigned i = 0; i < 10; i++)
			columns[i] = rest != NULL ? strsep(&rest, "\t") : NULL;
		if (strcmp(columns[0], kind) == 0 && strcmp(columns[1], name) == 0)
			return true;
	}
	return false;
}

static uint32_t
hex_parse(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 16);
}

static void
option_parse(struct replay_run *run, char option, const char *value)
{
	unsigned n = (unsigned)strtoul(value, NULL, 0);

	switch (option) {
	case 'q':
		run->type = strcmp(value, "uc") == 0   ? IBV_QPT_UC
			    : strcmp(value, "ud") == 0 ? IBV_QPT_UD
						       : IBV_QPT_RC;
		break;
	case 'm':
		run->mtu = (enum ibv_mtu)(__builtin_ctz(n) - 7);
		break;
	case 'A':
		run->access = n;
		break;
	case 't':
		run->timeout = (uint8_t)n;
		break;
	case 'r':
		run->retry = (uint8_t)n;
		break;
	case 'R':
		run->rnr_retry = (uint8_t)n;
		break;
	case 'T':
		run->rnr_timer = (uint8_t)n;
		break;
	case 'x':
		run->rd_atomic = (uint8_t)n;
		break;
	case 'C':
		run->tclass = (uint8_t)n;
		break;
	case 'F':
		run->flow_label = n;
		break;
	default:
		break; /* addresses and PSNs: taken from the frames */
	}
}

static void
options_parse(struct replay_run *run, char *text)
{
	char *word;

	while (text != NULL && *text == '-') {
		word = strsep(&text, " ");
		if (word[1] == 'S') /* the only option without a value */
			run->srq = true;
		else
			option_parse(run, word[1], strsep(&text, " "));
	}
	snprintf(run->commands, sizeof(run->commands), "%s", text != NULL ? text : "");
}

static void
wc_parse(struct replay_run *run, char *columns[10])
{
	struct replay_wc *wc = &run->wcs[run->wc_count++];

	assert_true(run->wc_count <= RTE_DIM(run->wcs));
	wc->wr_id = hex_parse(columns[4]);
	wc->status = (enum ibv_wc_status)hex_parse(columns[5]);
	snprintf(wc->opcode, sizeof(wc->opcode), "%s", columns[6]);
	wc->byte_len = hex_parse(columns[7]);
	wc->has_imm = columns[8][0] != '-';
	wc->imm = hex_parse(columns[8]);
	wc->has_crc = columns[9][0] != '-';
	wc->crc = hex_parse(columns[9]);
}

bool
replay_run(const char *name, char side, char queue, struct replay_run *run)
{
	char line[1024], *columns[10];
	const char *at = runs_text();
	bool found = false;

	memset(run, 0, sizeof(*run));
	*run = (struct replay_run){.type = IBV_QPT_RC,
		.mtu = IBV_MTU_1024,
		.access = ACCESS_REMOTE,
		.timeout = 17,
		.retry = 7,
		.rnr_retry = 7,
		.rnr_timer = 12,
		.rd_atomic = 4};
	while (runs_line_next(&at, "run", name, line, columns)) {
		if (columns[2][0] == side) {
			options_parse(run, columns[3]);
			found = true;
		}
	}
	at = runs_text();
	while (runs_line_next(&at, "key", name, line, columns)) {
		if (columns[2][0] == side) {
			run->qpn = hex_parse(columns[3]);
			run->rkey = hex_parse(columns[4]);
			run->rkey_ro = hex_parse(columns[5]);
		}
	}
	at = runs_text();
	while (runs_line_next(&at, "mw", name, line, columns)) {
		if (columns[2][0] == side)
			run->mw[run->mw_count++] = hex_parse(columns[3]);
	}
	at = runs_text();
	while (runs_line_next(&at, "wc", name, line, columns)) {
		if (columns[2][0] == side && columns[3][0] == queue)
			wc_parse(run, columns);
	}
	return found;
}

void
replay_topic_check(const char *topic)
{
	static char text[65536];
	char line[256];

	if (text[0] == '\0') {
		FILE *file = fopen(CAPTURES "/../rules.tsv", "r");

		assert_non_null(file);
		text[0] = '\n';
		assert_true(fread(text + 1, 1, sizeof(text) - 2, file) > 0);
		assert_int_not_equal(feof(file), 0);
		fclose(file);
	}
	snprintf(line, sizeof(line), "\n19\t%s\t", topic);
	if (strstr(text, line) == NULL)
		fail_msg("no difference \"%s\" in rules.tsv", topic);
}

/* ---- Frames ---- */

static uint8_t
impairment_letter(const char *name)
{
	if (strcmp(name, "dup") == 0)
		return '2';
	return strcmp(name, "delay") == 0 ? 'l' : (uint8_t)name[0];
}

void
replay_load(struct replay *r, const char *name)
{
	char path[PATH_MAX], line[1024], *columns[10];
	const char *at = runs_text();
	const uint8_t *first;

	snprintf(path, sizeof(path), "%s/%s.pcap", CAPTURES, name);
	memset(r->wire, 0, sizeof(r->wire));
	r->name = name;
	if (pcap_file_load(&r->file, path) != 0)
		fail_msg("%s: cannot be read", path);
	assert_true(r->file.count < sizeof(r->wire));
	first = r->file.count != 0 ? r->file.frames[0].data : NULL;
	r->vlan = first != NULL && first[12] == 0x81
			  ? (uint16_t)(first[14] << 8 | first[15]) & 0xFFF
			  : 0;
	while (runs_line_next(&at, "wire", name, line, columns))
		r->wire[atoi(columns[2]) - 1] = impairment_letter(columns[3]);
}

void
replay_unload(struct replay *r)
{
	pcap_file_unload(&r->file);
}

bool
replay_view(const struct replay *r, unsigned frame, struct pkt_view *v)
{
	struct pkt pkt = {.data = (uint8_t *)(uintptr_t)r->file.frames[frame].data,
		.len = (uint16_t)r->file.frames[frame].len};

	return pkt_parse(&pkt, r->vlan, v) == DROP_none;
}

enum ibv_qp_type
replay_type(const struct pkt_view *v)
{
	return v->op->service == SERVICE_UC   ? IBV_QPT_UC
	       : v->op->service == SERVICE_UD ? IBV_QPT_UD
					      : IBV_QPT_RC;
}

static void
gid_set(uint8_t gid[16], const struct pkt_view *v, bool src)
{
	static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};

	memcpy(gid, mapped, 12);
	if (v->ip_version == 4)
		memcpy(gid + 12, v->ip + (src ? 12 : 16), 4);
	else
		memcpy(gid, v->ip + (src ? 8 : 24), 16);
}

void
replay_host_connect(const struct replay *r, struct host *h, const struct replay_run *run,
	uint32_t qpn, uint32_t dest_qpn, const struct pkt_view *v, bool own)
{
	struct qp_attr attr = host_attr(h);
	struct path_addr addr = {
		.udp_sport = roce_udp_sport(run->flow_label, qpn, dest_qpn),
		.hop_limit = 64,
		.tclass = run->tclass,
		.vlan = r->vlan};

	h->qp.qpn = qpn;
	h->vlan = r->vlan;
	gid_set(attr.path.sgid, v, own);
	gid_set(attr.path.dgid, v, !own);
	attr.dest_qpn = dest_qpn;
	if (h->qp.type == IBV_QPT_UD) {
		/* Without an address vector, choose it as the kernel does. */
		addr.udp_sport = (uint16_t)(0xC000 + (qpn * 0x61C88647 >> 18));
		attr.qkey = rte_be_to_cpu_32(view_deth(v)->qkey);
	}
	if (run->udp_sport != 0)
		addr.udp_sport = run->udp_sport;
	host_modify_to_rts(h, &attr, &addr);
}

/* ---- Memory ---- */

void
replay_target_fill(struct replay *r)
{
	for (uint32_t i = 0; i < REPLAY_TARGET_BYTES; i++)
		r->target[i] = (uint8_t)(0x80 + (i ^ (i >> 8)));
}

/* Returns the entry of a key that the table has not assigned itself. */
static struct key_entry *
key_entry_of(struct host *h, uint32_t key)
{
	struct key_entry **chunk = &h->keys.chunks[key >> 8 >> KEY_CHUNK_BITS];
	struct key_entry *e;

	assert_in_range(key >> 8, 1, KEY_MAX - 1);
	if (*chunk == NULL)
		*chunk = alloc_get(&alloc_plain, "keys", KEY_CHUNK_BYTES);
	e = &(*chunk)[key >> 8 & (KEY_CHUNK - 1)];
	assert_true(e->key == 0 || e->key == key);
	return e;
}

void
replay_key_put(
	struct replay *r, struct host *h, uint32_t key, uint64_t va, unsigned access)
{
	*key_entry_of(h, key) = (struct key_entry){.va = va,
		.len = REPLAY_TARGET_BYTES,
		.host = r->target,
		.key = key,
		.rights = h->qp.pd << 8 | (access & 0x3F)};
}

void
replay_key_drop(struct host *h, uint32_t key)
{
	*key_entry_of(h, key) = (struct key_entry){0};
}

void
replay_payload(uint8_t *to, unsigned k, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		to[i] = (uint8_t)((i + 16 * k) ^ ((i + 16 * k) >> 8));
}

uint32_t
replay_crc(const uint8_t *at, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= at[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
	}
	return ~crc;
}

/* Sets the ICRC of an IPv4 packet, over the fields that it covers (docs/protocol.md 2). */
static void
icrc_write(uint8_t *ip, uint32_t len)
{
	static uint8_t covered[8 + 5000];
	uint32_t crc;

	memset(covered, 0xFF, 8);
	memcpy(covered + 8, ip, len);
	covered[8 + 1] = covered[8 + 8] = 0xFF;
	covered[8 + 10] = covered[8 + 11] = 0xFF;
	covered[8 + 20 + 6] = covered[8 + 20 + 7] = covered[8 + 28 + 4] = 0xFF;
	crc = replay_crc(covered, 8 + len);
	for (unsigned i = 0; i < 4; i++)
		ip[len + i] = (uint8_t)(crc >> 8 * i);
}

void
replay_rkey_replace(uint8_t *frame, uint32_t len, uint32_t from, uint32_t to)
{
	struct pkt pkt = {.data = frame, .len = (uint16_t)len};
	uint32_t be_from = rte_cpu_to_be_32(from), be_to = rte_cpu_to_be_32(to);
	struct pkt_view v;
	uint8_t *at;

	assert_int_equal(pkt_parse(&pkt, 0, &v), DROP_none);
	at = frame + (v.ext - frame);
	if (v.op->hdrs & HDR_RETH)
		at += v.op->main_off + offsetof(struct reth, rkey);
	else if (v.op->hdrs & HDR_IETH)
		at += v.op->ext_len - 4;
	else
		return;
	if (memcmp(at, &be_from, 4) != 0)
		return;
	memcpy(at, &be_to, 4);
	icrc_write(frame + (v.ip - frame),
		(uint32_t)(v.payload - v.ip) + v.payload_len + v.pad);
	assert_int_equal(pkt_parse(&pkt, 0, &v), DROP_none);
}

/* ---- Comparison ---- */

void
replay_frames_equal(const struct pkt_view *ours, const struct pkt_view *theirs)
{
	unsigned addrs = ours->ip_version == 4 ? 12 : 8;
	unsigned end = ours->ip_version == 4 ? 20 : 40;

	assert_int_equal(ours->ip_version, theirs->ip_version);
	assert_int_equal(ours->tclass, theirs->tclass);
	assert_memory_equal(ours->ip + addrs, theirs->ip + addrs, end - addrs);
	assert_memory_equal(ours->ip + end, theirs->ip + end, 6); /* UDP: ports, length */
	assert_int_equal(ours->opcode, theirs->opcode);
	assert_int_equal(ours->pkey, theirs->pkey);
	assert_int_equal(ours->dest_qpn, theirs->dest_qpn);
	assert_int_equal(ours->psn, theirs->psn);
	assert_int_equal(ours->ack_req, theirs->ack_req);
	assert_int_equal(ours->solicited, theirs->solicited);
	assert_int_equal(ours->pad, theirs->pad);
	assert_int_equal(ours->payload_len, theirs->payload_len);
	assert_memory_equal(ours->ext, theirs->ext, ours->op->ext_len);
	if (ours->payload_len != 0)
		assert_memory_equal(ours->payload, theirs->payload, ours->payload_len);
}

static enum ibv_wc_opcode
wc_opcode(const char *name)
{
	static const struct {
		const char *name;
		enum ibv_wc_opcode opcode;
	} rows[] = {
		{"SEND", IBV_WC_SEND},
		{"RDMA_WRITE", IBV_WC_RDMA_WRITE},
		{"RDMA_READ", IBV_WC_RDMA_READ},
		{"COMP_SWAP", IBV_WC_COMP_SWAP},
		{"FETCH_ADD", IBV_WC_FETCH_ADD},
		{"BIND_MW", IBV_WC_BIND_MW},
		{"RECV", IBV_WC_RECV},
		{"RECV_RDMA_WITH_IMM", IBV_WC_RECV_RDMA_WITH_IMM},
	};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		if (strcmp(rows[i].name, name) == 0)
			return rows[i].opcode;
	}
	fail_msg("no completion opcode %s", name);
	return IBV_WC_SEND;
}

void
replay_wc_equal(const struct cqe *ours, const struct replay_wc *theirs, const uint8_t *at)
{
	assert_int_equal(ours->wr_id, theirs->wr_id);
	assert_int_equal(ours->status, theirs->status);
	if (theirs->status != IBV_WC_SUCCESS)
		return;
	assert_int_equal(ours->opcode, wc_opcode(theirs->opcode));
	/* ibv_poll_cq(3): byte_len is valid for a receive, a READ or an atomic. */
	if (ours->opcode >= IBV_WC_RECV)
		assert_int_equal(ours->byte_len, theirs->byte_len);
	if (theirs->has_imm) {
		assert_true((ours->wc_flags & IBV_WC_WITH_IMM) != 0);
		assert_int_equal(rte_be_to_cpu_32(ours->imm), theirs->imm);
	}
	if (theirs->has_crc) {
		uint32_t skip = ours->wc_flags & IBV_WC_GRH ? 40 : 0;

		assert_int_equal(
			replay_crc(at + skip, theirs->byte_len - skip), theirs->crc);
	}
}
