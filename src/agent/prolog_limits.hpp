// What the prolog leaves beside variables: resource limits (ulimit) and the mask of new files (umask). The
// prolog is a process of its own, so that the agent takes these over for the start of the ranks and puts its
// own back.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <sys/resource.h>
#include <sys/stat.h>

#include "src/base/result.hpp"

namespace dlrun::agent {

struct ProcessLimits {
  std::map<int, rlim_t> soft;  // by RLIMIT_*
  std::optional<mode_t> umask;
};

// Shell words that write them beside `file`, which is a word of the shell too.
std::string write_limits_line(const std::string& file);
// What they wrote; limits that this system has no name for are left out.
Result<ProcessLimits> read_limits(const std::filesystem::path& file);
/// As JSON, for a further attempt.
std::string limits_text(const ProcessLimits& limits);
/// An Error where the text is not that.
Result<ProcessLimits> limits_from_text(std::string_view text);
// Soft limits in the text of /proc/PID/limits.
std::map<int, rlim_t> soft_limits(std::string_view text);

// This process has these while the value lives. Hard limits stay: they could not be put back.
class WithLimits {
 public:
  explicit WithLimits(const ProcessLimits& limits);
  ~WithLimits();
  WithLimits(const WithLimits&) = delete;
  WithLimits& operator=(const WithLimits&) = delete;

 private:
  ProcessLimits before_;
};

}  // namespace dlrun::agent
