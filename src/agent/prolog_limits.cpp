#include "src/agent/prolog_limits.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::agent {
namespace {

// As the kernel calls them in /proc/PID/limits.
constexpr std::array<std::pair<std::string_view, int>, 16> kLimitNames{
    {{"Max cpu time", RLIMIT_CPU},
     {"Max file size", RLIMIT_FSIZE},
     {"Max data size", RLIMIT_DATA},
     {"Max stack size", RLIMIT_STACK},
     {"Max core file size", RLIMIT_CORE},
     {"Max resident set", RLIMIT_RSS},
     {"Max processes", RLIMIT_NPROC},
     {"Max open files", RLIMIT_NOFILE},
     {"Max locked memory", RLIMIT_MEMLOCK},
     {"Max address space", RLIMIT_AS},
     {"Max file locks", RLIMIT_LOCKS},
     {"Max pending signals", RLIMIT_SIGPENDING},
     {"Max msgqueue size", RLIMIT_MSGQUEUE},
     {"Max nice priority", RLIMIT_NICE},
     {"Max realtime priority", RLIMIT_RTPRIO},
     {"Max realtime timeout", RLIMIT_RTTIME}}};

std::optional<rlim_t> limit_value(std::string_view text) {
  if (text == "unlimited") return RLIM_INFINITY;
  rlim_t out = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return out;
}

void set_soft(int resource, rlim_t soft) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  limit.rlim_cur = std::min(soft, limit.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

}  // namespace

std::map<int, rlim_t> soft_limits(std::string_view text) {
  std::map<int, rlim_t> out;
  for (const std::string& line : split(text, '\n'))
    for (const auto& [name, resource] : kLimitNames) {
      if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
      const std::string_view rest = trim(std::string_view(line).substr(name.size()));
      if (const auto value = limit_value(rest.substr(0, rest.find(' ')))) out.emplace(resource, *value);
    }
  return out;
}

std::string write_limits_line(const std::string& file) {
  return fmt::format("cat /proc/self/limits > {0}.limits && umask > {0}.umask", file);
}

Result<ProcessLimits> read_limits(const std::filesystem::path& file) {
  ProcessLimits out;
  out.soft = soft_limits(TRY(read_file(file.string() + ".limits")));
  const std::string text(trim(TRY(read_file(file.string() + ".umask"))));
  unsigned mask = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), mask, 8);
  if (end.ec == std::errc() && mask <= 0777) out.umask = static_cast<mode_t>(mask);
  return out;
}

std::string limits_text(const ProcessLimits& limits) {
  Json soft = Json::array();
  for (const auto& [resource, value] : limits.soft) soft.push_back({resource, value});
  return to_text({{"soft", std::move(soft)}, {"umask", limits.umask ? Json(*limits.umask) : Json()}});
}

Result<ProcessLimits> limits_from_text(std::string_view text) {
  constexpr std::string_view where = "limits";
  ProcessLimits out;
  const Json json = TRY(parse_json(text, std::string(where)));
  for (const auto& [resource, value] :
       TRY(field<std::vector<std::pair<int, std::uint64_t>>>(json, "soft", where)))
    out.soft.emplace(resource, value);
  if (const Json mask = TRY(field<Json>(json, "umask", where)); !mask.is_null())
    out.umask = static_cast<mode_t>(TRY(field<unsigned>(json, "umask", where)));
  return out;
}

WithLimits::WithLimits(const ProcessLimits& limits) {
  for (const auto& [resource, soft] : limits.soft) {
    rlimit own{};
    if (::getrlimit(static_cast<__rlimit_resource>(resource), &own) != 0 || own.rlim_cur == soft) continue;
    before_.soft.emplace(resource, own.rlim_cur);
    set_soft(resource, soft);
  }
  if (limits.umask) before_.umask = ::umask(*limits.umask);
}

WithLimits::~WithLimits() {
  for (const auto& [resource, soft] : before_.soft) set_soft(resource, soft);
  if (before_.umask) ::umask(*before_.umask);
}

}  // namespace dlrun::agent
