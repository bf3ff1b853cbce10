#!/usr/bin/env python3
"""small_hdf5.py FILE: 256 samples of 12 numbers and two answers each, as a compressed HDF5 file, written by the C library of this system."""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
import hdf5_writer  # noqa: E402

samples = numpy.random.default_rng(1).random((256, 12)).astype("float32")
hdf5_writer.write(sys.argv[1], x=samples, y=samples[:, :2] - samples[:, 2:4])
