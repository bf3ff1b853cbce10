// The diagnostic log: what head and agents do, for whoever has to find out why a run went as it did. It is
// off unless DLRUN_LOG=debug asks for it, and costs nothing then. It is no output for users: what concerns
// them is a message, an event or the record. Lines are written by a thread of the log's own, so that a slow
// file system holds up nothing; where it is too slow, the oldest lines are dropped.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <string_view>

#include "src/base/result.hpp"

namespace dlrun::log {

inline constexpr const char* kVariable = "DLRUN_LOG";

namespace detail {
inline std::atomic<bool> on{false};
void write(const std::string& text);
}  // namespace detail

/// Whether lines are written: for callers whose lines are costly to make.
inline bool is_on() {
  return detail::on.load(std::memory_order_relaxed);
}

/// Refuses a value of DLRUN_LOG that is neither "debug" nor empty.
Result<void> check_level(std::string_view level);
/// Begins to write to `file` if `level` (the value of DLRUN_LOG) is "debug"; has no effect if it is empty.
Result<void> open(std::string_view level, const std::filesystem::path& file);
/// Writes pending lines and closes the log.
void close();

/// One line.
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (is_on()) detail::write(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace dlrun::log
