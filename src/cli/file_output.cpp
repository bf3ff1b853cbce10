#include "src/cli/file_output.hpp"

#include <cerrno>
#include <optional>

#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"

namespace dlrun::cli {
namespace {

constexpr Seconds kMoment{0.1};

std::optional<struct stat> facts_of(int fd) {
  struct stat facts;
  return ::fstat(fd, &facts) == 0 ? std::optional(facts) : std::nullopt;
}

}  // namespace

bool FileOutput::takes(int fd) {
  const auto facts = facts_of(fd);
  return facts && S_ISREG(facts->st_mode);
}

bool FileOutput::are_one_file(int one, int other) {
  const auto a = facts_of(one), b = facts_of(other);
  return a && b && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

Result<void> FileOutput::write_to_file(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(ErrorKind::io, "{}", system_reason(errno));
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

void FileOutput::put(int fd, std::string_view text, const Waiting& waiting) {
  constexpr std::size_t task = 256;  // what a short line takes in memory besides its bytes
  writer_.collect();
  while (queued_ >= kMaxQueued && waiting()) writer_.drain(kMoment);
  const std::size_t size = text.size() + task;
  queued_ += size;
  writer_.run([this, fd, kept = std::string(text)] { return sink_(fd, kept); },
              [this, size](const Result<void>& written) {
                queued_ -= size;
                if (!written && lost_.empty()) lost_ = written.error().what;
              });
}

void FileOutput::finish() {
  while (!writer_.drain(kMoment)) continue;
}

}  // namespace dlrun::cli
