"""Writes HDF5 files with numpy arrays by the C library, so that the tests need no Python package for it."""
import ctypes

try:
    LIBRARY = ctypes.CDLL("libhdf5_serial.so.103")
except OSError:
    LIBRARY = ctypes.CDLL("libhdf5_serial.so.310")  # of later systems
ID = ctypes.c_int64
LIBRARY.H5open()


def call(name, *arguments):
    function = getattr(LIBRARY, name)
    function.restype = ID
    result = function(*arguments)
    if result < 0:
        raise OSError(f"{name} failed")
    return ID(result)


def write(path, **arrays):
    """Float32 arrays and whole numbers of 32 bits by their names, packed in chunks of one row."""
    file = call("H5Fcreate", str(path).encode(), ctypes.c_uint(2), ID(0), ID(0))
    for name, array in arrays.items():
        kind = {"f": "H5T_NATIVE_FLOAT_g", "i": "H5T_NATIVE_INT_g"}[array.dtype.kind]
        kind = ID.in_dll(LIBRARY, kind)
        extents = ctypes.c_ulonglong * array.ndim
        space = call("H5Screate_simple", ctypes.c_int(array.ndim), extents(*array.shape), None)
        how = call("H5Pcreate", ID.in_dll(LIBRARY, "H5P_CLS_DATASET_CREATE_ID_g"))
        call("H5Pset_chunk", how, ctypes.c_int(array.ndim), extents(1, *array.shape[1:]))
        call("H5Pset_deflate", how, ctypes.c_uint(4))
        data = call("H5Dcreate2", file, name.encode(), kind, space, ID(0), how, ID(0))
        call("H5Dwrite", data, kind, ID(0), ID(0), ID(0), array.ctypes.data_as(ctypes.c_void_p))
        call("H5Dclose", data)
        call("H5Pclose", how)
        call("H5Sclose", space)
    call("H5Fclose", file)
