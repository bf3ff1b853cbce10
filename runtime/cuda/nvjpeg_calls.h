// The functions of nvJPEG that are used, as NVIDIA's documentation of it has them
// (docs.nvidia.com/cuda/nvjpeg: API reference of versions 12 and 13): its own header need not be there to
// build this. A handle, a state and a stream of a JPEG are pointers to what only the library knows;
// `cuda_stream` is a cudaStream_t. All give 0, or a nvjpegStatus_t that says why not.
#pragma once

#include <stddef.h>

#define DLRUN_NVJPEG_MAJOR_VERSION 0     // libraryPropertyType
#define DLRUN_NVJPEG_BACKEND_HARDWARE 3  // nvjpegBackend_t: the JPEG engines of the card
#define DLRUN_NVJPEG_OUTPUT_RGBI 5       // nvjpegOutputFormat_t: red, green and blue of each pixel together
#define DLRUN_NVJPEG_ARCH_MISMATCH 7     // nvjpegStatus_t: the card has no such engine

struct DlrunNvjpegImage {  // nvjpegImage_t
  unsigned char* channel[4];
  size_t pitch[4];
};

struct DlrunNvjpegCalls {
  int (*get_property)(int type, int* value);  // nvjpegGetProperty
  int (*create)(int backend, void* device_allocator, void* pinned_allocator, unsigned flags,
                void** handle);                       // nvjpegCreateEx
  int (*destroy)(void* handle);                       // nvjpegDestroy
  int (*create_state)(void* handle, void** state);    // nvjpegJpegStateCreate
  int (*destroy_state)(void* state);                  // nvjpegJpegStateDestroy
  int (*create_stream)(void* handle, void** stream);  // nvjpegJpegStreamCreate
  int (*destroy_stream)(void* stream);                // nvjpegJpegStreamDestroy
  int (*parse_header)(void* handle, const unsigned char* file, size_t length,
                      void* stream);  // nvjpegJpegStreamParseHeader
  // 0 in `refused`: its engines take it. nvjpegDecodeBatchedSupported
  int (*is_supported)(void* handle, void* stream, int* refused);
  int (*begin_batch)(void* handle, void* state, int images, int threads,
                     int format);  // nvjpegDecodeBatchedInitialize
  int (*decode_batch)(void* handle, void* state, const unsigned char* const* files, const size_t* lengths,
                      struct DlrunNvjpegImage* to, void* cuda_stream);  // nvjpegDecodeBatched
};
