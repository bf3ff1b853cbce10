// Support for checkpoint tests: a file system whose n-th effect fails, and a checkpoint to write.
#pragma once

#include <atomic>

#include "runtime/checkpoint/writer.hpp"
#include "tests/unit/data/support.hpp"
#include "tests/unit/train/fake_engine.hpp"

namespace dlrun::test {

// Passes through to the real file system, except that effect number `fail_at` (from 1) fails as a full disk
// would. Reading is not an effect.
class FailingFileSystem final : public runtime::FileSystem {
 public:
  int fail_at = 0;
  int effects = 0;
  bool stay_failed = false;  // a disk that is full stays full for writing

  Result<void> make_directories(const Path& path) override {
    TRY(effect("create the folder", path));
    return real_->make_directories(path);
  }
  Result<std::unique_ptr<runtime::OutputFile>> create(const Path& path) override {
    TRY(effect("create", path));
    return std::unique_ptr<runtime::OutputFile>(new File(*this, TRY(real_->create(path)), path));
  }
  Result<void> sync_directory(const Path& path) override {
    TRY(effect("sync", path));
    return real_->sync_directory(path);
  }
  Result<void> rename(const Path& from, const Path& to) override {
    TRY(effect("rename", to));
    return real_->rename(from, to);
  }
  // Removing works on a full disk.
  Result<void> remove_all(const Path& path) override { return real_->remove_all(path); }
  Result<std::vector<std::string>> list(const Path& path) override { return real_->list(path); }
  bool exists(const Path& path) override { return real_->exists(path); }
  Result<runtime::HugeBuffer> read(const Path& path, std::uint64_t most) override {
    return real_->read(path, most);
  }
  Result<std::uint64_t> size(const Path& path) override { return real_->size(path); }

 private:
  class File final : public runtime::OutputFile {
   public:
    File(FailingFileSystem& owner, std::unique_ptr<runtime::OutputFile> real, Path path)
        : owner_(owner), real_(std::move(real)), path_(std::move(path)) {}
    Result<void> write(std::span<const std::byte> content) override {
      const auto allowed = owner_.effect("write", path_);
      // A disk fills in the middle of a file: half of it is there.
      TRY(real_->write(allowed ? content : content.first(content.size() / 2)));
      return allowed;
    }
    Result<void> sync() override {
      TRY(owner_.effect("sync", path_));
      return real_->sync();
    }
    Result<void> close() override {
      TRY(owner_.effect("close", path_));
      return real_->close();
    }

   private:
    FailingFileSystem& owner_;
    std::unique_ptr<runtime::OutputFile> real_;
    Path path_;
  };

  Result<void> effect(std::string_view verb, const Path& path) {
    ++effects;
    if (effects != fail_at && !(stay_failed && fail_at > 0 && effects > fail_at)) return {};
    return fail(ErrorKind::io, "cannot {} {}: No space left on device", verb, path.string());
  }

  std::unique_ptr<runtime::FileSystem> real_ = runtime::real_file_system();
};

inline const runtime::InputShape small_shape{.channels = 1, .height = 4, .width = 4, .classes = 10};

inline runtime::Manifest manifest_at(std::uint64_t step, const runtime::Engine& engine) {
  return {.position = {.step = step, .epoch = 0, .seen = step * 8},
          .identity = {.model = "fake",
                       .shape = small_shape,
                       .seed = 1,
                       .samples = 10'000'000'000,
                       .data = 7,
                       .tensors = runtime::tensors_checksum(engine)},
          .world = 1,
          .batch = 8,
          .precision = "f32",
          .plan_hash = 42,
          .program = "test",
          .written = "2026-11-28T00:00:00Z",
          .files = {}};
}

}  // namespace dlrun::test
