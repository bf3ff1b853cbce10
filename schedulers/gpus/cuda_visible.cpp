#include "schedulers/gpus/cuda_visible.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The beginning of a UUID: hexadecimal digits in groups, of any length, since CUDA takes prefixes.
bool is_uuid_prefix(std::string_view text) {
  constexpr std::size_t whole = 36;
  return !text.empty() && text.size() <= whole &&
         text.find_first_not_of("0123456789abcdefABCDEF-") == text.npos;
}

bool is_old_mig(std::string_view rest) {  // <uuid>/gi/ci
  const std::vector<std::string> parts = split(rest, '/');
  return parts.size() == 3 && is_uuid_prefix(parts[0]) && is_digits(parts[1]) && is_digits(parts[2]);
}

bool hides_all(std::string_view value) {
  return value.empty() || value == "NoDevFiles" || value == "none";
}

// Why this entry ends the list; empty where it does not.
std::string objection(std::string_view name, const std::vector<std::string>& before,
                      std::optional<std::size_t> count) {
  const bool index = is_digits(name);
  if (name.empty()) return "is empty";
  if (!index && !is_gpu_id(name) && !is_mig_id(name)) return "is neither an index nor an id";
  if (std::find(before.begin(), before.end(), name) != before.end()) return "is listed twice";
  if (!before.empty() && is_digits(before.front()) != index) return "mixes ids and indices";
  if (!before.empty() && is_mig_id(before.front()) != is_mig_id(name)) return "mixes GPUs and MIG instances";
  if (index && count && !parse_integer(name, 0, static_cast<std::int64_t>(*count) - 1))
    return fmt::format("is not one of this machine's {} GPUs", *count);
  return {};
}

}  // namespace

bool is_gpu_id(std::string_view name) {
  return name.starts_with("GPU-") && is_uuid_prefix(name.substr(4));
}

bool is_mig_id(std::string_view name) {
  if (name.starts_with("MIG-GPU-")) return is_old_mig(name.substr(8));
  return name.starts_with("MIG-") && is_uuid_prefix(name.substr(4));
}

VisibleGpus read_cuda_visible(std::string_view value, std::optional<std::size_t> count) {
  return read_visible({.variable = "CUDA_VISIBLE_DEVICES", .reader = "CUDA"}, value, count);
}

VisibleGpus read_visible(const VisibleList& list, std::string_view value, std::optional<std::size_t> count) {
  VisibleGpus out;
  if (hides_all(trim(value))) return out;
  const std::vector<std::string> words = split(value, ',');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name(trim(words[i]));
    // A negative index is the documented way to end a list: no mistake, no warning.
    if (name.size() > 1 && name[0] == '-' && is_digits(std::string_view(name).substr(1))) return out;
    const std::string why = objection(name, out.names, count);
    if (!why.empty()) {
      out.warning =
          fmt::format("{}={}: entry {} ('{}') {}; {} stops there, {} of {} entries hidden", list.variable,
                      value, i + 1, name, why, list.reader, words.size() - i, words.size());
      // CUDA shows no device at all where one is named twice.
      if (why == "is listed twice") out.names.clear();
      return out;
    }
    out.names.push_back(name);
  }
  return out;
}

}  // namespace dlrun
