// See jpeg.hpp.
#include <algorithm>

#include "runtime/cuda/plugin/border.hpp"
#include "runtime/cuda/plugin/jpeg.hpp"

namespace dlrun::cuda {
namespace {

constexpr int kBits = 22, kColors = 3;
constexpr unsigned kThreads = 256;
constexpr std::size_t kPixels = std::size_t{256} << 20;  // bytes of decoded images at once, but of one

// Of an image, for the kernels; the taps lie behind all of these.
struct Facts {
  const std::uint8_t* pixels;  // decoded, from the box's first pixel on
  std::int64_t pitch;
  const DlrunCudaTap *columns, *rows;
  const std::int32_t *column_coefficients, *row_coefficients;
  int width, height;           // of the result
  int first_line, line_count;  // of the box, that the result needs
  std::uint8_t* narrow;
  std::uint8_t* out;
  int mirrored;
};

std::size_t pixel_bytes(const DlrunCudaJpeg& image) {
  return static_cast<std::size_t>(image.width * image.height) * kColors;
}
std::size_t row_bytes(const DlrunCudaJpeg& image, int channels) {
  return image.columns.pixel_count * image.rows.pixel_count * static_cast<std::size_t>(channels);
}
int lines_of(const DlrunCudaJpeg& image) {
  const DlrunCudaTap& last = image.rows.pixels[image.rows.pixel_count - 1];
  return last.first + last.count - image.rows.pixels[0].first;
}

// Every line of the box that is needed, to the columns of the result.
__global__ void narrow_lines(const Facts* all) {
  const Facts& of = all[blockIdx.y];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= of.line_count * of.width) return;
  const int line = i / of.width, x = i % of.width;
  const DlrunCudaTap tap = of.columns[x];
  const std::uint8_t* from = of.pixels + (of.first_line + line) * of.pitch + tap.first * kColors;
  int sums[kColors] = {1 << (kBits - 1), 1 << (kBits - 1), 1 << (kBits - 1)};
  for (int k = 0; k < tap.count; ++k, from += kColors) {
    const int share = of.column_coefficients[tap.begin + k];
    for (int color = 0; color < kColors; ++color) sums[color] += share * from[color];
  }
  for (int color = 0; color < kColors; ++color)
    of.narrow[i * kColors + color] = static_cast<std::uint8_t>(sums[color] >> kBits);
}

// The luma as Pillow rounds it.
__device__ std::uint8_t grey_of(const std::uint8_t (&pixel)[kColors]) {
  return static_cast<std::uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

__global__ void mix_lines(const Facts* all, int channels) {
  const Facts& of = all[blockIdx.y];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), area = of.width * of.height;
  if (i >= area) return;
  const int y = i / of.width, x = i % of.width;
  const DlrunCudaTap tap = of.rows[y];
  const std::uint8_t* from = of.narrow + ((tap.first - of.first_line) * of.width + x) * kColors;
  int sums[kColors] = {1 << (kBits - 1), 1 << (kBits - 1), 1 << (kBits - 1)};
  for (int k = 0; k < tap.count; ++k, from += of.width * kColors) {
    const int share = of.row_coefficients[tap.begin + k];
    for (int color = 0; color < kColors; ++color) sums[color] += share * from[color];
  }
  std::uint8_t pixel[kColors];
  for (int color = 0; color < kColors; ++color)
    pixel[color] = static_cast<std::uint8_t>(sums[color] >> kBits);
  const int at = y * of.width + (of.mirrored != 0 ? of.width - 1 - x : x);
  if (channels == 1)
    of.out[at] = grey_of(pixel);
  else
    for (int color = 0; color < kColors; ++color) of.out[color * area + at] = pixel[color];
}

// Places of the taps of all images behind their facts, as they are on the host and on the device.
class Layout {
 public:
  explicit Layout(std::size_t images) : bytes_(images * sizeof(Facts)) {}
  std::size_t take(std::size_t bytes) {
    const std::size_t at = bytes_;
    bytes_ += (bytes + 7) / 8 * 8;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
};

}  // namespace

JpegDecoder::JpegDecoder(const DlrunNvjpegCalls& calls, int device, std::int64_t channels)
    : calls_(calls), device_(device), channels_(static_cast<int>(channels)) {
  check(cudaSetDevice(device), "choosing the GPU");
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, least), "a stream");
  const auto checked = [this](int status, const char* what) {
    if (status == 0) return;
    release();
    throw Failure(status == DLRUN_NVJPEG_ARCH_MISMATCH
                      ? std::string("this GPU has no engines for JPEG")
                      : std::string(what) + " failed: nvJPEG's status " + std::to_string(status));
  };
  checked(calls_.create(DLRUN_NVJPEG_BACKEND_HARDWARE, nullptr, nullptr, 0, &handle_), "starting nvJPEG");
  checked(calls_.create_state(handle_, &state_), "a state of nvJPEG");
  checked(calls_.create_stream(handle_, &header_), "a header of nvJPEG");
}

JpegDecoder::~JpegDecoder() {
  cudaSetDevice(device_);
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  release();
}

void JpegDecoder::release() {
  if (header_ != nullptr) calls_.destroy_stream(header_);
  if (state_ != nullptr) calls_.destroy_state(state_);
  if (handle_ != nullptr) calls_.destroy(handle_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

bool JpegDecoder::takes(const DlrunCudaJpeg& image) const {
  int refused = 1;
  return calls_.parse_header(handle_, image.file, image.length, header_) == 0 &&
         calls_.is_supported(handle_, header_, &refused) == 0 && refused == 0;
}

void JpegDecoder::decode(DlrunCudaJpeg* images, std::size_t count) {
  check(cudaSetDevice(device_), "choosing the GPU");
  Images together;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    images[i].done = 0;
    if (!takes(images[i])) continue;
    if (!together.empty() && bytes + pixel_bytes(images[i]) > kPixels) {
      decode_together(together);
      together.clear(), bytes = 0;
    }
    together.push_back(&images[i]), bytes += pixel_bytes(images[i]);
  }
  if (!together.empty()) decode_together(together);
}

// Where a batch fails, each of its images is tried alone: what becomes of one does not depend on the others.
// nvJPEG may still read files when scaling fails.
void JpegDecoder::decode_together(const Images& images) {
  if (decode_pixels(images)) {
    try {
      return scale(images);
    } catch (...) {
      cudaStreamSynchronize(stream_);
      throw;
    }
  }
  if (images.size() == 1) return;
  for (DlrunCudaJpeg* image : images) decode_together({image});
}

bool JpegDecoder::decode_pixels(const Images& images) {
  std::size_t bytes = 0;
  for (const DlrunCudaJpeg* image : images) bytes += pixel_bytes(*image);
  auto* at = static_cast<std::uint8_t*>(pixels_.of(bytes, "images that are decoded"));
  check(cudaStreamSynchronize(nullptr), "clearing memory");
  std::vector<const unsigned char*> files;
  std::vector<std::size_t> lengths;
  std::vector<DlrunNvjpegImage> to;
  for (const DlrunCudaJpeg* image : images) {
    files.push_back(image->file), lengths.push_back(image->length);
    to.push_back({{at}, {static_cast<std::size_t>(image->width) * kColors}});
    at += pixel_bytes(*image);
  }
  const int count = static_cast<int>(images.size());
  if (count != batch_ && calls_.begin_batch(handle_, state_, count, 1, DLRUN_NVJPEG_OUTPUT_RGBI) != 0)
    return batch_ = 0, false;
  batch_ = count;
  const bool decoded =
      calls_.decode_batch(handle_, state_, files.data(), lengths.data(), to.data(), stream_) == 0;
  if (decoded) return true;
  batch_ = 0;
  check(cudaStreamSynchronize(stream_), "decoding images");  // nothing may read a file that is gone
  return false;
}

struct JpegDecoder::Work {
  std::vector<std::size_t> places;  // of each image, of its columns, their coefficients, its rows and theirs
  std::size_t fact_bytes = 0, narrow_bytes = 0, out_bytes = 0;
  unsigned most_narrow = 0, most_out = 0;  // pixels of an image
};

JpegDecoder::Work JpegDecoder::plan(const Images& images) {
  Work out;
  Layout layout(images.size());
  for (const DlrunCudaJpeg* image : images) {
    for (const DlrunCudaTaps* taps : {&image->columns, &image->rows}) {
      out.places.push_back(layout.take(taps->pixel_count * sizeof(DlrunCudaTap)));
      out.places.push_back(layout.take(taps->coefficient_count * sizeof(std::int32_t)));
    }
    const std::size_t columns = image->columns.pixel_count;
    const std::size_t narrow = static_cast<std::size_t>(lines_of(*image)) * columns;
    out.narrow_bytes += narrow * kColors, out.out_bytes += row_bytes(*image, channels_);
    out.most_narrow = std::max(out.most_narrow, static_cast<unsigned>(narrow));
    out.most_out = std::max(out.most_out, static_cast<unsigned>(columns * image->rows.pixel_count));
  }
  out.fact_bytes = layout.bytes();
  const char* const what = "images that are decoded";
  host_facts_.of(out.fact_bytes, what), facts_.of(out.fact_bytes, what);
  narrow_.of(out.narrow_bytes, what), rows_.of(out.out_bytes, what), host_rows_.of(out.out_bytes, what);
  check(cudaStreamSynchronize(nullptr), "clearing memory");
  return out;
}

void JpegDecoder::tell(const Images& images, const Work& work) {
  auto *const host = static_cast<char*>(host_facts_.at()), *const there = static_cast<char*>(facts_.at());
  auto *narrow = static_cast<std::uint8_t*>(narrow_.at()), *out = static_cast<std::uint8_t*>(rows_.at());
  const auto* pixels = static_cast<const std::uint8_t*>(pixels_.at());
  const auto put = [&](std::size_t place, const auto* from, std::size_t count) {
    std::memcpy(host + place, from, count * sizeof *from);
    return reinterpret_cast<decltype(from)>(there + place);
  };
  for (std::size_t i = 0; i < images.size(); ++i) {
    const DlrunCudaJpeg& image = *images[i];
    const DlrunCudaTaps &columns = image.columns, &rows = image.rows;
    const std::size_t* const place = &work.places[4 * i];
    Facts facts{};
    facts.columns = put(place[0], columns.pixels, columns.pixel_count);
    facts.column_coefficients = put(place[1], columns.coefficients, columns.coefficient_count);
    facts.rows = put(place[2], rows.pixels, rows.pixel_count);
    facts.row_coefficients = put(place[3], rows.coefficients, rows.coefficient_count);
    facts.pitch = image.width * kColors;
    facts.pixels = pixels + image.top * facts.pitch + image.left * kColors;
    facts.width = static_cast<int>(columns.pixel_count), facts.height = static_cast<int>(rows.pixel_count);
    facts.first_line = rows.pixels[0].first, facts.line_count = lines_of(image);
    facts.narrow = narrow, facts.out = out, facts.mirrored = image.mirrored;
    std::memcpy(host + i * sizeof facts, &facts, sizeof facts);
    narrow += static_cast<std::size_t>(facts.line_count) * columns.pixel_count * kColors;
    out += row_bytes(image, channels_), pixels += pixel_bytes(image);
  }
  check(cudaMemcpyAsync(there, host, work.fact_bytes, cudaMemcpyHostToDevice, stream_), "facts of images");
}

void JpegDecoder::scale(const Images& images) {
  const Work work = plan(images);
  tell(images, work);
  const auto* const facts = static_cast<const Facts*>(facts_.at());
  const auto grid = [&](unsigned most) {
    return dim3((most + kThreads - 1) / kThreads, static_cast<unsigned>(images.size()));
  };
  narrow_lines<<<grid(work.most_narrow), kThreads, 0, stream_>>>(facts);
  mix_lines<<<grid(work.most_out), kThreads, 0, stream_>>>(facts, channels_);
  check(cudaGetLastError(), "scaling images");
  check(cudaMemcpyAsync(host_rows_.at(), rows_.at(), work.out_bytes, cudaMemcpyDeviceToHost, stream_),
        "images that are decoded");
  check(cudaStreamSynchronize(stream_), "decoding images");
  const auto* from = static_cast<const std::uint8_t*>(host_rows_.at());
  for (DlrunCudaJpeg* image : images) {
    std::memcpy(image->row, from, row_bytes(*image, channels_));
    from += row_bytes(*image, channels_), image->done = 1;
  }
}

namespace {

int open(const DlrunNvjpegCalls* calls, int device, std::int64_t channels, void** decoder) {
  return guarded([&] { *decoder = new JpegDecoder(*calls, device, channels); });
}
void close(void* decoder) {
  delete static_cast<JpegDecoder*>(decoder);
}
int decode(void* decoder, DlrunCudaJpeg* images, std::size_t count) {
  return guarded([&] { static_cast<JpegDecoder*>(decoder)->decode(images, count); });
}

}  // namespace
}  // namespace dlrun::cuda

extern "C" __attribute__((visibility("default"))) const DlrunCudaJpegTable* dlrun_cuda_jpeg_table() {
  namespace c = dlrun::cuda;
  static const DlrunCudaJpegTable kTable{DLRUN_CUDA_JPEG_TABLE_VERSION, c::open, c::close, c::decode,
                                         c::error_text};
  return &kTable;
}
