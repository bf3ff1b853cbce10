// The part of the plug-in that decodes JPEGs, in a C table of its own: batches are decoded by nvJPEG on the
// card's JPEG engines, cut and scaled by kernels of ours, and come back to the host as planes.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/cuda/nvjpeg_calls.h"

#define DLRUN_CUDA_JPEG_TABLE_VERSION 1u
#define DLRUN_CUDA_JPEG_TABLE_SYMBOL "dlrun_cuda_jpeg_table"

// Which pixels, from `first` on, a pixel of the result is made of; how much of each, in 22 bits, from `begin`
// on.
struct DlrunCudaTap {
  int32_t first, begin, count;
};
struct DlrunCudaTaps {
  const struct DlrunCudaTap* pixels;
  size_t pixel_count;
  const int32_t* coefficients;
  size_t coefficient_count;
};

struct DlrunCudaJpeg {
  const uint8_t* file;
  size_t length;
  int64_t width, height;  // as its header has them
  int64_t left, top;      // where the taps begin to count
  struct DlrunCudaTaps columns, rows;
  int mirrored;  // 1: from left to right
  uint8_t* row;  // channels x rows x columns: where it is to come
  int done;      // 1: it is there; 0: the engines do not take it
};

// Functions that return int answer 0, else the reason is in error_text().
struct DlrunCudaJpegTable {
  unsigned version;
  // `channels`: 3, or 1 for grey. The calls must stay.
  int (*open)(const struct DlrunNvjpegCalls* calls, int device, int64_t channels, void** decoder);
  void (*close)(void* decoder);
  // Images whose taps give rows of one size. One call at a time.
  int (*decode)(void* decoder, struct DlrunCudaJpeg* images, size_t count);
  void (*error_text)(char* text, size_t capacity);  // of the calling thread's last failed call
};
