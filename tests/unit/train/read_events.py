"""An independent reader of TensorBoard event files: own CRC-32C, own protobuf fields. One JSON line an event."""
import json
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def check(data, stored):
    crc = crc32c(data)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert masked == struct.unpack("<I", stored)[0], "checksum"


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        dtype = key & 7
        if dtype == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(dtype)
            if size is None:
                assert dtype == 2, dtype
                size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        yield key >> 3, value


def event(data):
    out = {"scalars": {}}
    for number, value in fields(data):
        if number == 1:
            out["wall_time"] = struct.unpack("<d", value)[0]
        elif number == 2:
            out["step"] = value
        elif number == 3:
            out["version"] = value.decode()
        elif number == 7:
            out["session"] = dict(fields(value))[1]
        elif number == 5:
            for tag_number, summary in fields(value):
                assert tag_number == 1
                entry = dict(fields(summary))
                out["scalars"][entry[1].decode()] = struct.unpack("<f", entry[2])[0]
    return out


with open(sys.argv[1], "rb") as file:
    content = file.read()
at = 0
while at < len(content):
    (length,) = struct.unpack("<Q", content[at : at + 8])
    check(content[at : at + 8], content[at + 8 : at + 12])
    data = content[at + 12 : at + 12 + length]
    assert len(data) == length
    check(data, content[at + 12 + length : at + 16 + length])
    print(json.dumps(event(data), sort_keys=True))
    at += 16 + length
