"""Join the IPoIB broadcast group from the port to which this program is connected.  Arguments: port GUID, LID of the
SM.
"""

import ctypes
import struct
import sys

SA_CLASS, SET, MC_MEMBER_RECORD, GSI_QKEY = 0x03, 0x02, 0x38, 0x80010000
MGID, PORT_GID, JOIN_STATE = 1 << 0, 1 << 1, 1 << 16
BROADCAST = bytes.fromhex("ff12401bffff000000000000ffffffff")


def request(port_guid):
    record = BROADCAST + struct.pack(">QQ", 0xFE80 << 48, port_guid) + bytes(16) + bytes([0x01]) + bytes(3)
    head = struct.pack(">BBBBHHQHHI", 1, SA_CLASS, 2, SET, 0, 0, 0x1B0E, MC_MEMBER_RECORD, 0, 0)
    sa = bytes(12) + bytes(8) + bytes(4) + struct.pack(">Q", MGID | PORT_GID | JOIN_STATE)
    return (head + sa + record).ljust(256, b"\0")


def main(port_guid, sm_lid):
    umad = ctypes.CDLL("libibumad.so.3")
    umad.umad_get_mad.restype = ctypes.c_void_p
    assert umad.umad_init() == 0
    port = umad.umad_open_port(None, 0)
    assert port >= 0
    agent = umad.umad_register(port, SA_CLASS, 2, 0, None)
    assert agent >= 0
    buffer = ctypes.create_string_buffer(umad.umad_size() + 256)
    ctypes.memmove(umad.umad_get_mad(buffer), request(port_guid), 256)
    umad.umad_set_addr(buffer, sm_lid, 1, 0, GSI_QKEY)
    assert umad.umad_send(port, agent, buffer, 256, 2000, 3) == 0
    length = ctypes.c_int(256)
    assert umad.umad_recv(port, buffer, ctypes.byref(length), 8000) >= 0
    answer = ctypes.string_at(umad.umad_get_mad(buffer), 256)
    status = umad.umad_status(buffer) or struct.unpack_from(">H", answer, 4)[0]
    return f"join failed with status {status:#x}" if status else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1], 0), int(sys.argv[2])))
