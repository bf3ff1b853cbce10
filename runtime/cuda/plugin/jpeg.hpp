// JpegDecoder: JPEGs to planes of bytes of one size, a batch at a time, by nvJPEG on the card's JPEG engines
// and two kernels that scale as Pillow does: columns first, in whole numbers of 22 bits, rounded to a byte
// after each. It has its own stream; what its engines do not take is left to the host.
#pragma once

#include "runtime/cuda/jpeg_table.h"
#include "runtime/cuda/plugin/scratch.hpp"

namespace dlrun::cuda {

class JpegDecoder {
 public:
  JpegDecoder(const DlrunNvjpegCalls& calls, int device, std::int64_t channels);
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder();

  void decode(DlrunCudaJpeg* images, std::size_t count);

 private:
  using Images = std::vector<DlrunCudaJpeg*>;
  void release();
  bool takes(const DlrunCudaJpeg& image) const;
  void decode_together(const Images& images);
  bool decode_pixels(const Images& images);
  void scale(const Images& images);
  // What the kernels are told, in the host's memory and at once in the device's.
  struct Work;
  Work plan(const Images& images);
  void tell(const Images& images, const Work& work);

  const DlrunNvjpegCalls& calls_;
  int device_;
  int channels_;
  void *handle_ = nullptr, *state_ = nullptr, *header_ = nullptr;
  int batch_ = 0;  // that the state is prepared for
  cudaStream_t stream_ = nullptr;
  Scratch pixels_, narrow_, facts_, rows_;
  Scratch host_facts_{Scratch::On::host}, host_rows_{Scratch::On::host};
};

}  // namespace dlrun::cuda
