#include "src/base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "src/base/strings.hpp"

namespace dlrun {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 8> kTimeUnits{
    {{"ms", 1e-3}, {"s", 1}, {"sec", 1}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}}};
constexpr double kKibi = 1024.0;
constexpr std::array<Unit, 9> kSizeUnits{{{"B", 1},
                                          {"KiB", kKibi},
                                          {"MiB", kKibi* kKibi},
                                          {"GiB", kKibi* kKibi* kKibi},
                                          {"TiB", kKibi* kKibi* kKibi* kKibi},
                                          {"kB", 1e3},
                                          {"KB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9}}};

template <std::size_t N>
std::optional<double> factor_of(const std::array<Unit, N>& units, std::string_view name) {
  for (const Unit& unit : units)
    if (unit.name == name) return unit.factor;
  return std::nullopt;
}

// Splits "10min" into "10" and "min".
std::pair<std::string_view, std::string_view> split_unit(std::string_view text) {
  const std::size_t end = text.find_last_of("0123456789.");
  if (end == std::string_view::npos) return {text, {}};
  return {text.substr(0, end + 1), trim(text.substr(end + 1))};
}

tl::unexpected<Error> bad_duration(std::string_view text) {
  return fail({.kind = ErrorKind::input,
               .what = fmt::format("'{}' is not a duration", text),
               .hint = "write it as 120s, 10min, 1h30m, 2d or HOURS:MINUTES:SECONDS"});
}

// "24:00": hours and minutes, or minutes and seconds?
tl::unexpected<Error> ambiguous_clock(std::string_view text, std::string_view first,
                                      std::string_view second) {
  return fail({.kind = ErrorKind::input,
               .what = fmt::format("'{}' can be hours and minutes or minutes and seconds", text),
               .hint = fmt::format("write {0}:{1}:00 ({0}h{1}m) or 0:{2}:{1} ({0}m{1}s)", first, second,
                                   first.size() < 2 ? fmt::format("0{}", first) : std::string(first))});
}

// "[D-]H:M:S", "D-H:M" or "D-H"; every field but the first is two digits below 60.
Result<Seconds> parse_clock(std::string_view text) {
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  const auto days = has_days ? parse_integer(text.substr(0, dash), 0, 100000) : 0;
  const std::vector<std::string> fields = split(has_days ? text.substr(dash + 1) : text, ':');
  if (!days || fields.size() > 3 || (!has_days && fields.size() < 2)) return bad_duration(text);
  std::int64_t seconds = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const bool given = i < fields.size();
    const auto value = given ? parse_integer(fields[i], 0, i == 0 ? 1000000 : 59) : 0;
    if (!value || (given && i > 0 && fields[i].size() != 2)) return bad_duration(text);
    seconds = seconds * 60 + *value;
  }
  if (!has_days && fields.size() == 2) return ambiguous_clock(text, fields[0], fields[1]);
  return Seconds(static_cast<double>(*days * 86400 + seconds));
}

// "1h30m": numbers with units, the larger unit first and each once.
Result<Seconds> parse_sum(std::string_view text) {
  double sum = 0, last = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t unit = rest.find_first_not_of("0123456789.");
    const std::size_t next =
        std::min(rest.find_first_of("0123456789", std::min(unit, rest.size())), rest.size());
    if (unit == std::string_view::npos || unit == 0) return bad_duration(text);
    const auto value = parse_number(rest.substr(0, unit));
    const auto factor = factor_of(kTimeUnits, trim(rest.substr(unit, next - unit)));
    if (!value || !factor || (last > 0 && *factor >= last)) return bad_duration(text);
    sum += *value * *factor, last = *factor;
    rest.remove_prefix(next);
  }
  return last > 0 ? Result<Seconds>(Seconds(sum)) : bad_duration(text);
}

}  // namespace

Result<Seconds> parse_duration(std::string_view text) {
  const bool clock = text.find(':') != std::string_view::npos ||
                     (text.find('-') != std::string_view::npos && text[0] != '-');
  return clock ? parse_clock(text) : parse_sum(text);
}

Result<Seconds> parse_time_limit(std::string_view text) {
  const std::string word = lower(text);
  if (word == "unlimited" || word == "infinite") return kUnlimited;
  auto out = parse_duration(text);
  if (!out && out.error().hint.starts_with("write it as"))
    out.error().hint = "write it as 90min, 8h, 1h30m, 2d, HOURS:MINUTES:SECONDS, DAYS-HOURS or UNLIMITED";
  return out;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto [digits, name] = split_unit(text);
  const auto value = parse_number(digits);
  const auto factor = factor_of(kSizeUnits, name);
  if (!value || !factor || *value < 0 || *value * *factor > 9e18)
    return fail({.kind = ErrorKind::input,
                 .what = fmt::format("'{}' is not a size", text),
                 .hint = "write it with its unit: 512KiB, 8MiB, 1GiB, 100MB"});
  return static_cast<std::uint64_t>(*value * *factor);
}

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc::result_out_of_range ||
      (problem == std::errc{} && end == text.data() + text.size() && (value < low || value > high)))
    return fail(ErrorKind::input, "{} is out of range [{}, {}]", text, low, high);
  if (problem != std::errc{} || end != text.data() + text.size())
    return fail(ErrorKind::input, "'{}' is not a whole number", text);
  return value;
}

Result<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return fail(ErrorKind::input, "'{}' is not a number", text);
  return value;
}

std::string format_duration(Seconds duration) {
  const double seconds = duration.count();
  if (seconds < 1) return fmt::format("{:.0f}ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= kKibi && unit + 1 < names.size()) value /= kKibi, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, names[unit]);
}

}  // namespace dlrun
