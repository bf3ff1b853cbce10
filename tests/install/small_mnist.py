#!/usr/bin/env python3
"""small_mnist.py FROM TO [TRAINING TEST]: the first images of an idx data set, so that an epoch of it takes seconds."""
import gzip
import os
import struct
import sys

RECORDS = {"images-idx3-ubyte": (16, 784), "labels-idx1-ubyte": (8, 1)}


def main(source, target, training="6000", test="1000"):
    os.makedirs(target)
    for part, count in (("train", int(training)), ("t10k", int(test))):
        for kind, (header, record) in RECORDS.items():
            name = f"{part}-{kind}.gz"
            with gzip.open(os.path.join(source, name)) as file:
                data = bytearray(file.read(header + count * record))
            data[4:8] = struct.pack(">I", count)
            with gzip.open(os.path.join(target, name), "wb", compresslevel=1) as file:
                file.write(data)


main(*sys.argv[1:])
