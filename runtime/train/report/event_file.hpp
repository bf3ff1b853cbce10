// EventFile: TensorBoard's event file, a new one per run, with scalars. Each starts with the mark of a
// session (SessionLog.START) at the first step that it may write, and TensorBoard then drops the points of
// the files before that have this step or more, so that every step is there once. Only the few protobuf
// fields that scalars need are encoded here.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

struct Scalar {
  std::string tag;
  float value = 0;
};

class EventFile {
 public:
  /// `wall_time`: seconds since 1970. `resumed_at`: the step a resumed run starts from, 0 for a new one.
  static Result<EventFile> create(const std::filesystem::path& folder, double wall_time,
                                  std::uint64_t resumed_at);
  Result<void> write(std::uint64_t step, double wall_time, std::span<const Scalar> scalars);
  const std::filesystem::path& path() const { return path_; }

 private:
  Result<void> append(std::string_view event);
  UniqueFd fd_;
  std::filesystem::path path_;
};

}  // namespace dlrun::runtime
