/* SPDX-License-Identifier: BSD-3-Clause */
/* MADs of the connection manager: fields of the kernel's MADs as tshark reads them, and
 * the MADs rebuilt byte for byte. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "mads.h"
#include "cm/mad.h"
#include "port/net.h"

TEST(captured_mads_are_valid)
{
	bool seen[MAD_ATTR_LAST + 1] = {false};

	assert_int_equal(mad_count, CAPTURED_MADS);
	for (unsigned i = 0; i < mad_count; i++) {
		assert_int_equal(
			mad_check((const uint8_t *)&mads[i].mad, MAD_LEN), CM_DROP_none);
		seen[mad_attr_of(&mads[i].mad)] = true;
	}
	for (unsigned attr = MAD_REQ; attr <= MAD_SIDR_REP; attr++)
		assert_true(seen[attr]);
}

/* ---- Layout ---- */

/* No bit belongs to two fields, and no field covers private data. */
TEST(fields_do_not_overlap)
{
	for (unsigned attr = MAD_ATTR_FIRST; attr <= MAD_ATTR_LAST; attr++) {
		bool taken[8 * MAD_LEN] = {false};
		struct mad mad;
		size_t len;

		mad_init(&mad, attr, 0);
		for (unsigned f = 0; f < MAD_FIELD_COUNT; f++) {
			const struct mad_field_row *row = &mad_field_rows[f];
			unsigned end = row->bit + row->width;

			if (row->attr != attr)
				continue;
			assert_true(end <= 8 * (mad_private(&mad, &len) - mad.data));
			for (unsigned bit = row->bit; bit < end; bit++) {
				assert_false(taken[bit]);
				taken[bit] = true;
			}
		}
	}
}

TEST(value_fits_its_field)
{
	for (unsigned f = 0; f < MAD_FIELD_COUNT; f++) {
		const struct mad_field_row *row = &mad_field_rows[f];
		unsigned ones = 0;
		struct mad mad;

		if (row->width > 64)
			continue;
		mad_init(&mad, row->attr, 0);
		mad_put(&mad, f, UINT64_MAX);
		assert_true(mad_get(&mad, f) == UINT64_MAX >> (64 - row->width));
		for (size_t i = 0; i < sizeof(mad.data); i++)
			ones += (unsigned)__builtin_popcount(mad.data[i]);
		assert_int_equal(ones, row->width);
		/* Most significant bit first. */
		mad_put(&mad, f, 1);
		assert_int_equal(mad_get(&mad, f), 1);
		assert_int_equal(mad.data[(row->bit + row->width - 1) / 8],
			0x80 >> (row->bit + row->width - 1) % 8);
		mad_put(&mad, f, 0);
		assert_int_equal(mad_get(&mad, f), 0);
	}
}

/* ---- Against the captures ---- */

static enum mad_field
field_of(const char *attr, const char *name)
{
	for (unsigned f = 0; f < MAD_FIELD_COUNT; f++)
		if (strcmp(mad_attr_name(mad_field_rows[f].attr), attr) == 0 &&
			strcmp(mad_field_rows[f].name, name) == 0)
			return f;
	return MAD_FIELD_COUNT;
}

static void
value_check(const char *where, const uint8_t *at, size_t len, const char *want)
{
	char text[40], *start = text;

	for (size_t i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", at[i]);
	while (*start == '0' && start[1] != '\0')
		start++;
	if (strcmp(start, want) != 0)
		fail_msg("%s: %s, expected %s", where, start, want);
}

static void
row_check(const char *capture, unsigned number, const char *attr, const char *name,
	const char *want)
{
	const struct mad *mad = mad_of(capture, number);
	enum mad_field f = field_of(attr, name);
	char where[128];
	uint8_t be[8];
	struct cma_hdr hdr;

	snprintf(where, sizeof(where), "%s frame %u %s %s", capture, number, attr, name);
	assert_string_equal(attr, mad_attr_name(mad_attr_of(mad)));
	if (f == MAD_FIELD_COUNT) {
		assert_int_equal(cma_get(mad, &hdr), 0);
		if (strcmp(name, "sport") == 0)
			assert_int_equal(hdr.sport, strtoul(want, NULL, 16));
		else if (strcmp(name, "src") == 0)
			value_check(where, hdr.src, 16, want);
		else
			value_check(where, hdr.dst, 16, want);
		return;
	}
	if (mad_field_rows[f].width == 128) {
		value_check(where, mad_bytes(mad, f), 16, want);
		return;
	}
	for (unsigned i = 0; i < 8; i++)
		be[i] = (uint8_t)(mad_get(mad, f) >> (56 - 8 * i));
	value_check(where, be, 8, want);
}

TEST(fields_as_tshark)
{
	FILE *stream = fopen(CAPTURES "/mads.tsv", "r");
	char line[256], capture[64], attr[16], name[32], want[40];
	unsigned number, rows = 0;

	assert_non_null(stream);
	while (fgets(line, sizeof(line), stream) != NULL) {
		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%63s %u %15s %31s %39s", capture, &number,
					 attr, name, want),
			5);
		row_check(capture, number, attr, name, want);
		rows++;
	}
	fclose(stream);
	assert_int_equal(rows, 1012);
}

/* Rebuilt from the field values alone: a bit that no row covers would be missing. */
TEST(mads_are_rebuilt_from_fields)
{
	for (unsigned i = 0; i < mad_count; i++) {
		const struct mad *mad = &mads[i].mad;
		enum mad_attr attr = mad_attr_of(mad);
		struct mad copy;
		size_t len;
		const uint8_t *private = mad_private(mad, &len);

		mad_init(&copy, attr, mad->tid);
		for (unsigned f = 0; f < MAD_FIELD_COUNT; f++) {
			if (mad_field_rows[f].attr != attr)
				continue;
			if (mad_field_rows[f].width <= 64)
				mad_put(&copy, f, mad_get(mad, f));
			else
				mad_put_bytes(&copy, f, mad_bytes(mad, f));
		}
		assert_int_equal(len, mad_private_max(attr));
		mad_put_private(&copy, 0, private, len);
		assert_memory_equal(&copy, mad, MAD_LEN);
	}
}

/* The RDMA IP CM header names the packet's addresses, and is rebuilt. */
TEST(cma_header_is_rebuilt)
{
	unsigned found = 0;

	for (unsigned i = 0; i < mad_count; i++) {
		const struct mad *mad = &mads[i].mad;
		struct mad copy = *mad;
		struct cma_hdr hdr;

		if (mad_attr_of(mad) != MAD_REQ && mad_attr_of(mad) != MAD_SIDR_REQ)
			continue;
		assert_int_equal(cma_get(mad, &hdr), 0);
		assert_memory_equal(hdr.src, mads[i].src, 16);
		assert_memory_equal(hdr.dst, mads[i].dst, 16);
		mad_put_private(&copy, 0, (uint8_t[CMA_HDR_LEN]){0}, CMA_HDR_LEN);
		cma_put(&copy, &hdr);
		assert_memory_equal(&copy, mad, MAD_LEN);
		found++;
	}
	assert_true(found >= 18);
}

TEST(cma_header_of_ipv6)
{
	static const uint8_t want[CMA_HDR_LEN] = {0, 0x60, 0x12, 0x34, 0x20, 1, 0xd,
		0xb8, [19] = 1, [20] = 0xfe, 0x80, [35] = 2};
	struct cma_hdr hdr = {.sport = 0x1234}, back;
	struct mad mad;
	size_t len;

	assert_int_equal(gid_parse("2001:db8::1", hdr.src, NULL), 0);
	assert_int_equal(gid_parse("fe80::2", hdr.dst, NULL), 0);
	mad_init(&mad, MAD_SIDR_REQ, 1);
	cma_put(&mad, &hdr);
	assert_memory_equal(mad_private(&mad, &len), want, sizeof(want));
	assert_int_equal(cma_get(&mad, &back), 0);
	assert_memory_equal(&back, &hdr, sizeof(hdr));
}

TEST(invalid_cma_header_is_refused)
{
	static const uint8_t bad[][2] = {
		{1, 0x40}, {0, 0}, {0, 0x50}, {0x10, 0x60}, {0xff, 0xff}};
	struct cma_hdr hdr;
	struct mad mad;

	for (unsigned i = 0; i < RTE_DIM(bad); i++) {
		mad_init(&mad, MAD_REQ, 1);
		mad_put_private(&mad, 0, bad[i], 2);
		assert_int_equal(cma_get(&mad, &hdr), -EINVAL);
	}
	/* The low bits of the IP version's byte are reserved. */
	mad_put_private(&mad, 0, (uint8_t[]){0, 0x4f}, 2);
	assert_int_equal(cma_get(&mad, &hdr), 0);
}

/* tshark does not dissect SIDR: compared with what the captured programs reported. */
TEST(sidr_and_mra_fields)
{
	const struct mad *req = mad_of("91-cm-sidr-udaddy", 1);
	const struct mad *rep = mad_of("91-cm-sidr-udaddy", 2);
	const struct mad *no = mad_of("92-cm-sidr-reject", 2);
	const struct mad *mra = mad_of("89-cm-mra", 3);

	assert_true(mad_get(req, MAD_SIDR_REQ_service_id) ==
		    cma_service_id(CMA_PS_UDP, 7174));
	assert_int_equal(mad_get(req, MAD_SIDR_REQ_pkey), 0xFFFF);
	assert_true(mad_get(rep, MAD_SIDR_REP_request_id) ==
		    mad_get(req, MAD_SIDR_REQ_request_id));
	assert_int_equal(mad_get(rep, MAD_SIDR_REP_status), 0);
	assert_int_equal(mad_get(rep, MAD_SIDR_REP_qkey), 0x01234567);
	/* The QP that the datagrams go to. */
	assert_int_equal(mad_get(rep, MAD_SIDR_REP_qpn), 0x69);
	assert_int_equal(mad_get(no, MAD_SIDR_REP_status), 1);
	assert_int_equal(mad_attr_of(mra), MAD_MRA);
	assert_int_equal(mad_get(mra, MAD_MRA_message), 0);
	assert_int_equal(mad_get(mra, MAD_MRA_service_timeout), 24);
	assert_int_equal(mad_remote_id(mra), mad_local_id(mad_of("89-cm-mra", 1)));
}

/* ---- Refused ---- */

/* The places where Linux has the options, too: in front of the service ID of a REQ,
 * behind three numbers of a REP, and in the MAD header. */
TEST(options_of_ece)
{
	static const uint8_t options[] = {0x10, 0x20, 0x30, 0x41};
	static const struct {
		enum mad_attr attr;
		uint8_t at[3]; /* of the MAD */
	} rows[] = {{MAD_REQ, {29, 30, 31}}, {MAD_REP, {39, 43, 47}}};
	const struct cm_ece ece = {.vendor_id = 0x02524f, .options = 0x10203041};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		uint8_t want[MAD_LEN];
		struct cm_ece got;
		struct mad mad;

		mad_init(&mad, rows[i].attr, 0);
		memset(mad.data, 0xee, sizeof(mad.data));
		memcpy(want, &mad, MAD_LEN);
		want[rows[i].at[0]] = 0x02;
		want[rows[i].at[1]] = 0x52;
		want[rows[i].at[2]] = 0x4f;
		memcpy(want + 20, options, sizeof(options));
		mad_put_ece(&mad, &ece);
		assert_memory_equal(&mad, want, MAD_LEN);
		got = mad_get_ece(&mad);
		assert_int_equal(got.vendor_id, ece.vendor_id);
		assert_int_equal(got.options, ece.options);
	}
}

TEST(invalid_mads_are_refused)
{
	static const struct {
		unsigned at;
		uint8_t value;
		enum cm_drop why;
	} rows[] = {
		{0, 0, CM_DROP_version},
		{0, 2, CM_DROP_version},
		{1, 0x03, CM_DROP_class},
		{1, 0x81, CM_DROP_class},
		{2, 1, CM_DROP_version},
		{3, 0x01, CM_DROP_method},
		{3, 0x83, CM_DROP_method},
		{16, 1, CM_DROP_attribute},
		{17, 0, CM_DROP_attribute},
		{17, 0x0f, CM_DROP_attribute},
		{17, 0x1b, CM_DROP_attribute},
		{17, 0xff, CM_DROP_attribute},
	};
	uint8_t bytes[MAD_LEN + 1] = {0};

	for (unsigned i = 0; i < RTE_DIM(rows); i++) {
		memcpy(bytes, &mads[0].mad, MAD_LEN);
		bytes[rows[i].at] = rows[i].value;
		assert_int_equal(mad_check(bytes, MAD_LEN), rows[i].why);
	}
	memcpy(bytes, &mads[0].mad, MAD_LEN);
	for (size_t len = 0; len <= MAD_LEN + 1; len++) {
		uint8_t *exact = malloc(len + (len == 0));

		memcpy(exact, bytes, len);
		assert_int_equal(mad_check(exact, len),
			len == MAD_LEN ? CM_DROP_none : CM_DROP_length);
		free(exact);
	}
	for (unsigned attr = 0; attr < 0x10000; attr++)
		assert_true((mad_attr_name(attr) != NULL) ==
			    (attr >= MAD_ATTR_FIRST && attr <= MAD_ATTR_LAST));
}

TEST_GROUP(mads_load, mads_unload)
