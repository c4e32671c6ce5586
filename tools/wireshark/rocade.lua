-- SPDX-License-Identifier: BSD-3-Clause
-- Wireshark dissector of the extensions of RoCEv2 that two Rocade hosts agree on: the SACK packet
-- and the query on QP 1 (docs/protocol.md 20). docs/troubleshooting.md has how to load it.
--
-- Wireshark's own dissector decodes the BTH, and of a query the header of the MAD. Wireshark 4.0 has
-- no table of dissectors for unknown opcodes or for management classes of vendors. So this is a
-- post-dissector. It adds a tree to frames with one of the two messages, sets their Info column, and
-- changes no other frame.

local SACK_OPCODE = 0xe0
local UD_SEND_ONLY = 0x64
local QP1 = 1
local UDP_HEADER, BTH, DETH, SETH, MAD, ICRC = 8, 12, 8, 20, 256, 4
local PSN_MODULUS = 0x1000000
local MAP_BITS = 128
local QUERY_CLASS = 0x32
local QUERY_ATTRIBUTE = 0x0001
local QUERY_METHODS = {[0x01] = "query", [0x81] = "answer"}
local OUI = 0x02524f
local SACK_VERSION = 1
local OPTIONS_VERSION = 1

-- Fields of Wireshark's dissectors.
local udp_length = Field.new("udp.length")
local ib_bth = Field.new("infiniband.bth")

local rocade = Proto("rocade", "Rocade extensions of RoCEv2")
local f = {
	sack_version = ProtoField.uint8("rocade.sack.version", "Version", base.DEC, nil, 0xf0),
	sack_reserved = ProtoField.uint8("rocade.sack.reserved", "Reserved", base.HEX, nil, 0x0f),
	sack_epsn = ProtoField.uint24("rocade.sack.epsn", "ePSN, first missing PSN", base.DEC),
	sack_echo = ProtoField.uint24("rocade.sack.echo", "Echo, PSN that caused the SACK", base.DEC),
	sack_map = ProtoField.bytes("rocade.sack.map", "Map of the PSNs behind the ePSN"),
	sack_held = ProtoField.string("rocade.sack.held", "Held PSNs"),
	sack_held_count = ProtoField.uint8("rocade.sack.held_count", "Number of held PSNs", base.DEC),
	query_oui = ProtoField.uint24("rocade.query.oui", "OUI", base.HEX, {[OUI] = "Rocade"}),
	query_options = ProtoField.uint32("rocade.query.options", "Options", base.HEX),
	options_version = ProtoField.uint32("rocade.query.options.version", "Version", base.DEC, nil,
		0xf0000000),
	options_sack = ProtoField.bool("rocade.query.options.sack", "Selective acknowledgements", 32,
		nil, 0x00000001),
	options_unknown = ProtoField.uint32("rocade.query.options.unknown", "Unknown extensions",
		base.HEX),
}
rocade.fields = f

local e = {
	length = ProtoExpert.new("rocade.length.expert", "Wrong length", expert.group.MALFORMED,
		expert.severity.ERROR),
	version = ProtoExpert.new("rocade.version.expert", "Unknown version", expert.group.UNDECODED,
		expert.severity.WARN),
	value = ProtoExpert.new("rocade.value.expert", "Unexpected value", expert.group.PROTOCOL,
		expert.severity.WARN),
	cut = ProtoExpert.new("rocade.cut.expert", "Not captured", expert.group.UNDECODED,
		expert.severity.NOTE),
}
rocade.experts = e

-- Returns the PSNs that a map holds as text, such as "101-105, 107", and their number. Bit i, least
-- significant first in each byte, is the PSN epsn + 1 + i. Arithmetic only: Lua 5.2 and 5.4, which
-- Wireshark 4.0 and 4.4 have, share no operators on bits.
local function held_psns(map, epsn)
	local ranges, count, first = {}, 0, nil
	for i = 0, MAP_BITS do
		local set = false
		if i < MAP_BITS then
			local byte = map:get_index(math.floor(i / 8))
			set = math.floor(byte / 2 ^ (i % 8)) % 2 == 1
		end
		if set then
			count = count + 1
			first = first or i
		elseif first then
			local from = (epsn + 1 + first) % PSN_MODULUS
			local to = (epsn + i) % PSN_MODULUS
			table.insert(ranges, first == i - 1 and string.format("%d", from)
				or string.format("%d-%d", from, to))
			first = nil
		end
	end
	return count > 0 and table.concat(ranges, ", ") or "none", count
end

-- Of these functions buffer is the captured part of the UDP payload without ICRC, and length its
-- length in the packet.

local function dissect_sack(buffer, length, pinfo, root)
	local qp, epsn = buffer(5, 3):uint(), buffer(9, 3):uint()
	local info = string.format("RC SACK QP=0x%06x ePSN=%d", qp, epsn)
	local tree = root:add(rocade, buffer(), "Rocade selective acknowledgement (SACK)")
	tree:add(f.sack_epsn, buffer(9, 3))
	if length ~= BTH + SETH then
		tree:add_proto_expert_info(e.length, string.format(
			"%d bytes between BTH and ICRC, expected %d", length - BTH, SETH))
		pinfo.cols.info = info .. " [wrong length]"
		return
	end
	if buffer:len() < length then
		tree:add_proto_expert_info(e.cut, "The end of the packet was not captured")
		pinfo.cols.info = info .. " [cut off]"
		return
	end
	local version = buffer(12, 1):bitfield(0, 4)
	local item = tree:add(f.sack_version, buffer(12, 1))
	if version ~= SACK_VERSION then
		item:add_proto_expert_info(e.version, string.format("Version %d, expected %d", version,
			SACK_VERSION))
		pinfo.cols.info = string.format("%s [version %d]", info, version)
		return
	end
	item = tree:add(f.sack_reserved, buffer(12, 1))
	if buffer(12, 1):bitfield(4, 4) ~= 0 then
		item:add_proto_expert_info(e.value, "Reserved bits are set")
	end
	tree:add(f.sack_echo, buffer(13, 3))
	tree:add(f.sack_map, buffer(16, 16))
	local held, count = held_psns(buffer(16, 16):bytes(), epsn)
	tree:add(f.sack_held, buffer(16, 16), held)
	tree:add(f.sack_held_count, buffer(16, 16), count)
	pinfo.cols.info = string.format("%s held %d", info, count)
end

-- Adds the options, and returns a summary of them.
local function dissect_options(range, tree)
	local options = tree:add(f.query_options, range)
	local version = range:bitfield(0, 4)
	local item = options:add(f.options_version, range)
	if version ~= OPTIONS_VERSION then
		item:add_proto_expert_info(e.version, string.format("Version %d, expected %d", version,
			OPTIONS_VERSION))
		return string.format(" version %d", version)
	end
	options:add(f.options_sack, range)
	local sack = range:bitfield(31, 1)
	local unknown = range:bitfield(4, 28) - sack
	if unknown ~= 0 then
		options:add(f.options_unknown, range, unknown)
	end
	return (sack == 1 and " SACK" or "") .. (unknown ~= 0 and " unknown" or "")
		.. (sack + unknown == 0 and " no extension" or "")
end

local function dissect_query(buffer, length, pinfo, root)
	local mad = buffer(BTH + DETH)
	local method, status, attribute = mad(3, 1):uint(), mad(4, 2):uint(), mad(16, 2):uint()
	local name = QUERY_METHODS[method]
	local tree = root:add(rocade, mad, "Rocade " .. (name or "query of an unknown method"))
	if not name then
		tree:add_proto_expert_info(e.value, string.format(
			"Method 0x%02x, expected 0x01 (Get) or 0x81 (GetResp)", method))
	end
	tree:add(f.query_oui, mad(37, 3))
	if length ~= BTH + DETH + MAD then
		tree:add_proto_expert_info(e.length, string.format("The MAD has %d bytes, expected %d",
			length - BTH - DETH, MAD))
	elseif attribute ~= QUERY_ATTRIBUTE then
		tree:add_proto_expert_info(e.value, string.format("Attribute 0x%04x, expected 0x%04x",
			attribute, QUERY_ATTRIBUTE))
	elseif mad:len() < 44 then
		tree:add_proto_expert_info(e.cut, "The end of the packet was not captured")
	elseif name then
		local info = "Rocade " .. name .. ":" .. dissect_options(mad(40, 4), tree)
		pinfo.cols.info = status == 0 and info or string.format("%s [status 0x%04x]", info, status)
	end
end

local function is_query(buffer)
	local at = BTH + DETH
	return buffer:len() >= at + 40 and buffer(0, 1):uint() == UD_SEND_ONLY
		and buffer(5, 3):uint() == QP1 and buffer(at, 2):uint() == 0x0100 + QUERY_CLASS
		and buffer(at + 37, 3):uint() == OUI
end

-- The UDP datagram whose payload begins with this BTH: its captured part without ICRC, and that
-- length in the packet. nil if there is none, as in InfiniBand and RoCEv1.
local function udp_payload(bth)
	for _, field in ipairs({udp_length()}) do
		if field.offset + 4 == bth.offset then
			local length = field.value - UDP_HEADER - ICRC
			local captured = math.min(length, bth.source:len() - bth.offset)
			if captured >= BTH then
				return bth.source:range(bth.offset, captured), length
			end
		end
	end
	return nil
end

function rocade.dissector(_, pinfo, root)
	for _, bth in ipairs({ib_bth()}) do
		local buffer, length = udp_payload(bth)
		if buffer and buffer(0, 1):uint() == SACK_OPCODE then
			dissect_sack(buffer, length, pinfo, root)
		elseif buffer and is_query(buffer) then
			dissect_query(buffer, length, pinfo, root)
		end
	end
end

register_postdissector(rocade)
