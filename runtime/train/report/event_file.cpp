// See event_file.hpp. Field numbers are those of tensorflow/core/util/event.proto and
// framework/summary.proto.
#include "runtime/train/report/event_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/tfrecord.hpp"
#include "src/base/file.hpp"
#include "src/base/host_name.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

enum class WireType : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// A protobuf message under construction.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    key(field, WireType::varint);
    varint(value);
    return *this;
  }
  Message& real(std::uint32_t field, double value) {
    key(field, WireType::fixed64);
    little(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  Message& real(std::uint32_t field, float value) {
    key(field, WireType::fixed32);
    little(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  Message& text(std::uint32_t field, std::string_view value) {
    key(field, WireType::bytes);
    varint(value.size());
    out_ += value;
    return *this;
  }
  Message& message(std::uint32_t field, const Message& inner) { return text(field, inner.out_); }
  const std::string& bytes() const { return out_; }

 private:
  void key(std::uint32_t field, WireType type) { varint(field << 3 | static_cast<std::uint32_t>(type)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  void little(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) out_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  std::string out_;
};

std::string host_in_name() {
  const std::string host = host_name();
  return host.empty() ? "unknown" : host;
}

constexpr std::string_view kPrefix = "events.out.tfevents.";

// The second in the name of the new file. TensorBoard reads files in the order of their names: one that is
// started within the second of the last one (or before it, by a clock that was set back) comes after it.
std::uint64_t second_of_name(const std::filesystem::path& folder, double wall_time) {
  auto out = static_cast<std::uint64_t>(wall_time);
  std::error_code problem;
  for (std::filesystem::directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const auto second = parse_integer(name.substr(kPrefix.size(), 10), 0, 9'999'999'998);
    if (second) out = std::max(out, static_cast<std::uint64_t>(*second) + 1);
  }
  return out;
}

}  // namespace

Result<EventFile> EventFile::create(const std::filesystem::path& folder, double wall_time,
                                    std::uint64_t resumed_at) {
  EventFile out;
  out.path_ = folder / fmt::format("{}{:010}.{}.{}", kPrefix, second_of_name(folder, wall_time),
                                   host_in_name(), ::getpid());
  out.fd_.reset(::open(out.path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!out.fd_) return fail(ErrorKind::io, "cannot create {}: {}", out.path_.string(), system_reason(errno));
  TRY(out.append(Message().real(1, wall_time).text(3, "brain.Event:2").bytes()));
  // The first START that TensorBoard sees only marks a session: a later one drops what has its step or more.
  constexpr std::uint64_t start = 1;  // SessionLog.START
  const std::uint64_t first = resumed_at > 0 ? resumed_at + 1 : 0;
  TRY(out.append(
      Message().real(1, wall_time).number(2, first).message(7, Message().number(1, start)).bytes()));
  return out;
}

Result<void> EventFile::write(std::uint64_t step, double wall_time, std::span<const Scalar> scalars) {
  Message summary;
  for (const Scalar& scalar : scalars)
    summary.message(1, Message().text(1, scalar.tag).real(2, scalar.value));
  return append(Message().real(1, wall_time).number(2, step).message(5, summary).bytes());
}

Result<void> EventFile::append(std::string_view event) {
  return write_all(fd_.get(), frame_record(event), path_);
}

}  // namespace dlrun::runtime
