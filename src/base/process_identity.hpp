// ProcessIdentity: which process of which machine, in a form that can be written to a file and asked about
// later, from there or from elsewhere. A number alone does not do: numbers are given again, and another host
// has the same ones. No clock is read: those of two hosts differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun {

struct ProcessIdentity {
  std::string host;
  std::string boot;        // of the kernel: another one after a restart; empty: it does not tell
  std::string namespace_;  // of process numbers: a container has its own
  std::int64_t pid = 0;
  std::uint64_t started = 0;  // in the kernel's ticks since its boot
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity this_process();

enum class Life { alive, ended, unknown };  // unknown: it runs, if at all, where this process cannot look
Life life_of(const ProcessIdentity& process);
// Also what a file system of this kernel alone tells: who wrote there before a restart has ended.
Life life_of(const ProcessIdentity& process, const std::filesystem::path& wrote_in);

Json to_json(const ProcessIdentity& process);
Result<ProcessIdentity> process_identity_from_json(const Json& json, std::string_view where);

}  // namespace dlrun
