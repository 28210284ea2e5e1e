"""Check queries and answers of management packets against bytes that were written by hand."""

import struct

from routing.collect.mads import PathRecord, path_query, path_records, port_counters
from routing.collect.umad import directed, packet

SA_HEADER, RECORD = 56, 64


def record(source, destination, sl):
    """Return a path record of 64 bytes: the LIDs are at 40 and 42, QoS class and SL in the 16 bits at 52."""
    return struct.pack(">40xHH8xH10x", destination, source, 7 << 4 | sl)


def answer(flags, records, payload):
    """Return an answer of the SA: RMPP flags at 26, payload length at 32, and the bytes of a record / 8 at 44."""
    head = bytearray(SA_HEADER)
    head[26] = flags
    struct.pack_into(">I", head, 32, payload)
    struct.pack_into(">H", head, 44, RECORD // 8)
    return bytes(head) + b"".join(records)


def test_a_table_of_many_packets_has_all_its_records():
    found = [PathRecord(3, lid, lid % 16) for lid in range(4, 40)]
    mad = answer(0b011, [record(*one) for one in found], 220)
    assert path_records(mad) == found


def test_the_one_packet_of_a_short_table_says_how_much_of_it_counts():
    found = [PathRecord(3, 9, 2), PathRecord(3, 11, 15)]
    mad = answer(0b111, [*(record(*one) for one in found), record(0, 0, 0)], 20 + 2 * RECORD).ljust(256, b"\0")
    assert path_records(mad) == found


def test_a_table_whose_other_packets_are_missing_is_not_a_table():
    mad = answer(0b011, [record(3, lid, 0) for lid in (4, 5, 6)], 20 + 12 * RECORD).ljust(256, b"\0")
    assert path_records(mad) is None


def test_a_table_without_records():
    assert path_records(bytes(256)) == []


def test_a_query_for_all_paths_of_a_source_states_its_lid_alone():
    mad = packet(path_query(5, 0x1234, None), 1)
    assert mad[3] == 0x12  # this is the method GetTable
    assert struct.unpack_from(">Q", mad, 48)[0] == 1 << 5
    assert struct.unpack_from(">H", mad, SA_HEADER + 42)[0] == 0x1234


def test_a_directed_query_states_its_ports_from_byte_129_on():
    mad = packet(directed(bytes([1, 7, 30]), 0x15, 9), 2)
    assert len(mad) == 256
    assert mad[1] == 0x81
    assert mad[7] == 3
    assert struct.unpack_from(">I", mad, 20)[0] == 9
    assert mad[32:36] == b"\xff" * 4
    assert mad[128:133] == bytes([0, 1, 7, 30, 0])


def test_counters_of_64_bits_replace_those_of_32_bits_unless_the_port_has_none():
    basic, wide = bytearray(256), bytearray(256)
    struct.pack_into(">II", basic, 64 + 24, 11, 12)
    struct.pack_into(">QQ", wide, 64 + 8, 1 << 40, (1 << 64) - 1)
    found = port_counters(bytes(basic), bytes(wide), None)
    assert (found["PortXmitData"], found["PortRcvData"]) == (1 << 40, 12)
    assert "PortSwHOQLifetimeLimitDiscards" not in found
    assert port_counters(None, None, None) == {}
