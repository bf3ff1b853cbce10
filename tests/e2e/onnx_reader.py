"""A reader of ONNX files that runs them with PyTorch, for the operators that dlrun-train writes. It shares nothing with the writer:
field numbers and meanings are those of onnx.proto and of ONNX's list of operators."""
import struct

import numpy
import torch
from torch.nn import functional


def fields(data):
    """(number, value) of each field: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
        elif kind == 5:
            at += 4
            yield tag >> 3, data[at - 4:at]
        else:
            assert kind == 2, kind
            length = varint()
            at += length
            assert at <= len(data)
            yield tag >> 3, data[at - length:at]


def all_of(message, number):
    return [value for field, value in fields(message) if field == number]


def one(message, number):
    return all_of(message, number)[0]


def attribute(message):
    kind = one(message, 20)
    value = {1: lambda: struct.unpack("<f", one(message, 2))[0], 2: lambda: one(message, 3), 3: lambda: one(message, 4).decode(),
             7: lambda: all_of(message, 8)}[kind]()
    return one(message, 1).decode(), value


def tensor(message):
    assert one(message, 2) == 1  # FLOAT
    shape = all_of(message, 1)
    return one(message, 8).decode(), torch.tensor(numpy.frombuffer(one(message, 9), "<f4").reshape(shape).copy())


def symmetric(pads):
    assert pads[:2] == pads[2:]
    return pads[:2]


def pool(function, x, of, **more):
    return function(x, of["kernel_shape"], of["strides"], symmetric(of["pads"]), ceil_mode=bool(of["ceil_mode"]), **more)


RUN = {
    "Conv": lambda of, x, w, b=None: functional.conv2d(x, w, b, of["strides"], symmetric(of["pads"]), groups=of["group"]),
    "BatchNormalization": lambda of, x, w, b, mean, var: functional.batch_norm(x, mean, var, w, b, eps=of["epsilon"]),
    "Gemm": lambda of, x, w, b: functional.linear(x, w, b),
    "Relu": lambda of, x: functional.relu(x),
    "LeakyRelu": lambda of, x: functional.leaky_relu(x, of["alpha"]),
    "Tanh": lambda of, x: torch.tanh(x),
    "Gelu": lambda of, x: functional.gelu(x, approximate=of["approximate"]),
    "Identity": lambda of, x: x,
    "Add": lambda of, x, y: x + y,
    "Concat": lambda of, *x: torch.cat(x, of["axis"]),
    "Flatten": lambda of, x: x.flatten(1),
    "GlobalAveragePool": lambda of, x: x.mean((2, 3), keepdim=True),
    "MaxPool": lambda of, x: pool(functional.max_pool2d, x, of),
    "AveragePool": lambda of, x: pool(functional.avg_pool2d, x, of, count_include_pad=bool(of["count_include_pad"])),
    "LRN": lambda of, x: functional.local_response_norm(x, of["size"], of["alpha"], of["beta"], of["bias"]),
}


def run(path, image):
    """The scores of a batch of images."""
    with open(path, "rb") as file:
        model = file.read()
    graph = one(model, 7)
    values = dict(tensor(each) for each in all_of(graph, 5))
    values[one(one(graph, 11), 1).decode()] = image
    for node in all_of(graph, 1):
        inputs = [values[name.decode()] for name in all_of(node, 1)]
        of = dict(attribute(each) for each in all_of(node, 5))
        values[one(node, 2).decode()] = RUN[one(node, 4).decode()](of, *inputs)
    return values[one(one(graph, 12), 1).decode()]
