// See jpeg_decoders.hpp.
#include "runtime/cuda/jpeg_decoders.hpp"

#include "runtime/cuda/nvjpeg_calls.h"

namespace dlrun::runtime {
namespace {

constexpr int kOldest = 12, kNewest = 13;  // of the versions that nvjpeg_calls.h is of
const char* const kHint = "install nvJPEG, which comes with CUDA, or leave train.data.decode out";

Result<SharedLibrary> open_nvjpeg() {
  std::string said;
  for (int version = kNewest; version >= kOldest; --version) {
    auto opened = SharedLibrary::open(fmt::format("libnvjpeg.so.{}", version));
    if (opened) return opened;
    said += (said.empty() ? "" : "; ") + opened.error().what;
  }
  return fail(Error{.kind = ErrorKind::unavailable,
                    .what = "nvJPEG cannot be loaded: " + said,
                    .where = "train.data.decode",
                    .hint = kHint});
}

Result<DlrunNvjpegCalls> calls_of(const SharedLibrary& library) {
  DlrunNvjpegCalls out{};
  const auto take = [&](auto*& call, const char* name) -> Result<void> {
    call = TRY(library.symbol<std::remove_reference_t<decltype(*call)>>(name));
    return {};
  };
  TRY(take(out.get_property, "nvjpegGetProperty"));
  TRY(take(out.create, "nvjpegCreateEx"));
  TRY(take(out.destroy, "nvjpegDestroy"));
  TRY(take(out.create_state, "nvjpegJpegStateCreate"));
  TRY(take(out.destroy_state, "nvjpegJpegStateDestroy"));
  TRY(take(out.create_stream, "nvjpegJpegStreamCreate"));
  TRY(take(out.destroy_stream, "nvjpegJpegStreamDestroy"));
  TRY(take(out.parse_header, "nvjpegJpegStreamParseHeader"));
  TRY(take(out.is_supported, "nvjpegDecodeBatchedSupported"));
  TRY(take(out.begin_batch, "nvjpegDecodeBatchedInitialize"));
  TRY(take(out.decode_batch, "nvjpegDecodeBatched"));
  return out;
}

// A library may be of another version than its name.
Result<void> check_version(const DlrunNvjpegCalls& calls) {
  int major = 0;
  if (calls.get_property(DLRUN_NVJPEG_MAJOR_VERSION, &major) == 0 && major >= kOldest && major <= kNewest)
    return {};
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("nvJPEG is of version {}; {} to {} are known", major, kOldest, kNewest),
            .where = "train.data.decode",
            .hint = kHint});
}

}  // namespace

Result<std::unique_ptr<JpegDecoders>> JpegDecoders::open(const CudaLibrary& library, int device,
                                                         std::int64_t channels) {
  SharedLibrary nvjpeg = TRY(open_nvjpeg());
  const DlrunNvjpegCalls calls = TRY(calls_of(nvjpeg));
  TRY(check_version(calls));
  std::unique_ptr<JpegDecoders> out(new JpegDecoders(std::move(nvjpeg), calls, library, device, channels));
  auto* const table_of = TRY(library.symbol<const DlrunCudaJpegTable*()>(DLRUN_CUDA_JPEG_TABLE_SYMBOL));
  out->table_ = table_of();
  if (out->table_->version != DLRUN_CUDA_JPEG_TABLE_VERSION)
    return fail(ErrorKind::unavailable, "the plug-in of the GPUs is of another build than this program");
  out->give_back(TRY(out->take()));  // a GPU that cannot is told now
  return out;
}

JpegDecoders::~JpegDecoders() {
  for (void* decoder : free_) table_->close(decoder);
}

Error JpegDecoders::error(std::string what) const {
  char text[1024] = {};
  table_->error_text(text, sizeof text);
  return Error{.kind = ErrorKind::unavailable,
               .what = fmt::format("{}: {}", what, text),
               .where = "train.data.decode",
               .hint = "leave it out: images are then decoded by the processors"};
}

Result<void*> JpegDecoders::take() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [this] { return !free_.empty() || made_ < kMost; });
  if (!free_.empty()) {
    void* const out = free_.back();
    free_.pop_back();
    return out;
  }
  void* made = nullptr;
  if (table_->open(&calls_, device_, channels_, &made) != 0)
    return fail(error("JPEGs cannot be decoded on this GPU"));
  ++made_;
  return made;
}

void JpegDecoders::give_back(void* decoder) {
  const std::lock_guard lock(mutex_);
  free_.push_back(decoder);
  freed_.notify_one();
}

Result<void> JpegDecoders::decode(std::span<DlrunCudaJpeg> images) {
  void* const decoder = TRY(take());
  const int status = table_->decode(decoder, images.data(), images.size());
  auto out = status == 0 ? Result<void>{} : fail(error("decoding JPEGs on the GPU failed"));
  give_back(decoder);
  return out;
}

}  // namespace dlrun::runtime
