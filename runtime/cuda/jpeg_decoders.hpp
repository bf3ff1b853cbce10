// JpegDecoders: nvJPEG, loaded at run time, and decoders on a GPU through the plug-in, as many as threads ask
// for one at the same time. It includes no CUDA. A GPU without engines for JPEG, or a node without the
// library, is an Error.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/cuda/cuda_engine.hpp"
#include "runtime/cuda/jpeg_table.h"

namespace dlrun::runtime {

class JpegDecoders {
 public:
  /// `channels`: of the rows, 3 or 1.
  static Result<std::unique_ptr<JpegDecoders>> open(const CudaLibrary& library, int device,
                                                    std::int64_t channels);
  ~JpegDecoders();
  JpegDecoders(const JpegDecoders&) = delete;
  JpegDecoders& operator=(const JpegDecoders&) = delete;

  /// Any thread may call it; it waits where all decoders are at work.
  Result<void> decode(std::span<DlrunCudaJpeg> images);

 private:
  static constexpr std::size_t kMost = 4;  // one nearly keeps the engines of a card busy

  JpegDecoders(SharedLibrary nvjpeg, const DlrunNvjpegCalls& calls, const CudaLibrary& library, int device,
               std::int64_t channels)
      : nvjpeg_(std::move(nvjpeg)), calls_(calls), library_(library), device_(device), channels_(channels) {}
  Result<void*> take();
  void give_back(void* decoder);
  Error error(std::string what) const;

  SharedLibrary nvjpeg_;
  DlrunNvjpegCalls calls_;
  CudaLibrary library_;
  const DlrunCudaJpegTable* table_ = nullptr;
  int device_;
  std::int64_t channels_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<void*> free_;
  std::size_t made_ = 0;
};

}  // namespace dlrun::runtime
