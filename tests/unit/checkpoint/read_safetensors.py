"""An independent reader of the safetensors layout: prints name, shape, first and last value of each tensor."""
import json
import struct
import sys

import numpy

with open(sys.argv[1], "rb") as file:
    content = file.read()
(length,) = struct.unpack("<Q", content[:8])
header = json.loads(content[8 : 8 + length])
data = content[8 + length :]
assert header.pop("__metadata__") == {"format": "pt"}
for name, tensor in header.items():
    begin, end = tensor["data_offsets"]
    assert tensor["dtype"] == "F32", tensor
    values = numpy.frombuffer(data[begin:end], "<f4").reshape(tensor["shape"])
    print(name, list(values.shape), "%.6g %.6g" % (values.flat[0], values.flat[-1]))
