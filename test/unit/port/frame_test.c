/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_fixture.h"
#include "../rand.h"

TEST(station_macs_are_unicast)
{
	assert_true(mac_is_station((uint8_t[]){0x02, 0, 0, 0, 0, 0}));
	assert_true(mac_is_station((uint8_t[]){0, 0, 0, 0, 0, 1}));
	assert_false(mac_is_station((uint8_t[]){0, 0, 0, 0, 0, 0}));
	assert_false(mac_is_station((uint8_t[]){0x33, 0x33, 0, 0, 0, 1}));
	assert_false(mac_is_station((uint8_t[]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
}

/* RFC 1071, section 3. */
TEST(checksum_of_the_rfc)
{
	static const uint8_t data[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
	uint16_t sum = sum_fold(sum_add(0, data, sizeof(data)));

	assert_memory_equal(&sum, ((uint8_t[]){0x22, 0x0d}), 2);
}

/* In pieces of even length, of random total length; and all ones without overflow. */
TEST(checksum_in_pieces)
{
	static uint8_t ones[65535];
	uint64_t rand = 1;

	for (unsigned round = 0; round < 200; round++) {
		uint8_t data[301];
		uint32_t len = rand_below(&rand, sizeof(data) + 1), cut, want = 0;

		for (uint32_t i = 0; i < len; i++) {
			data[i] = (uint8_t)rand_next(&rand);
			want += i % 2 == 0 ? (uint32_t)data[i] << 8 : data[i];
		}
		while (want >> 16 != 0)
			want = (want & 0xffff) + (want >> 16);
		want = ~want & 0xffff;
		cut = rand_below(&rand, len / 2 + 1) * 2;
		uint16_t sum =
			sum_fold(sum_add(sum_add(0, data, cut), data + cut, len - cut));

		assert_int_equal(__builtin_bswap16(sum), want);
	}
	memset(ones, 0xff, sizeof(ones));
	assert_int_equal(sum_fold(sum_add(0xffffffff, ones, 65534)), 0);
}

TEST(frame_needs_room)
{
	static const uint8_t dst[6] = {2, 0, 0, 0, 0, 2};

	for (uint16_t vlan = 0; vlan <= 4094; vlan += 4094) {
		struct net_conf conf = conf_of(1, vlan);
		uint32_t off = vlan != 0 ? 18 : 14;

		for (uint32_t room = 0; room < 100; room++) {
			struct pkt pkt = frame_empty(room);
			uint8_t *at = frame_begin_l2(&conf, &pkt, dst, 0x0806, 46);

			if (room < off + 46) {
				assert_null(at);
				free(pkt.data);
				continue;
			}
			assert_ptr_equal(at, pkt.data + off);
			assert_int_equal(pkt.len, off + 46);
			assert_memory_equal(pkt.data, dst, 6);
			assert_memory_equal(pkt.data + 6, conf.mac, 6);
			if (vlan != 0)
				assert_memory_equal(pkt.data + 12,
					((uint8_t[]){0x81, 0x00, 0x0f, 0xfe}), 4);
			assert_memory_equal(at - 2, ((uint8_t[]){0x08, 0x06}), 2);
			free(pkt.data);
		}
	}
}

TEST(split_undoes_begin)
{
	static const uint8_t dst[6] = {2, 0, 0, 0, 0, 2};

	for (uint16_t vlan = 0; vlan <= 100; vlan += 100) {
		struct net_conf from = conf_of(1, vlan), to = conf_of(2, vlan);
		struct pkt pkt = frame_empty(100);
		struct rx_frame frame;

		assert_non_null(frame_begin_l2(&from, &pkt, dst, 0x86dd, 50));
		assert_true(frame_split(&to, &pkt, &frame));
		assert_int_equal(frame.type, 0x86dd);
		assert_int_equal(frame.l3_len, 50);
		assert_ptr_equal(frame.l3, pkt.data + pkt.len - 50);
		assert_memory_equal(frame.src_mac, from.mac, 6);
		assert_false(frame_split(&from, &pkt, &frame)); /* not their MAC */
		to.vlan ^= 1;
		assert_false(frame_split(&to, &pkt, &frame));
		free(pkt.data);
	}
}
