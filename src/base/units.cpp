#include "src/base/units.hpp"

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
               .hint = "write it as 120s, 10min, 8h, 2d or HOURS:MINUTES:SECONDS"});
}

// "[D-]H:M:S" or "M:S"; every field but the first is two digits below 60.
Result<Seconds> parse_clock(std::string_view text) {
  double days = 0;
  std::string_view rest = text;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto parsed = parse_integer(text.substr(0, dash), 0, 100000);
    if (!parsed) return bad_duration(text);
    days = static_cast<double>(*parsed);
    rest = text.substr(dash + 1);
  }
  const std::vector<std::string> fields = split(rest, ':');
  if (fields.size() < 2 || fields.size() > 3) return bad_duration(text);
  double seconds = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto value = parse_integer(fields[i], 0, i == 0 ? 1000000 : 59);
    if (!value || (i > 0 && fields[i].size() != 2)) return bad_duration(text);
    seconds = seconds * 60 + static_cast<double>(*value);
  }
  return Seconds(days * 86400 + seconds);
}

}  // namespace

Result<Seconds> parse_duration(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return parse_clock(text);
  const auto [digits, name] = split_unit(text);
  const auto value = parse_number(digits);
  const auto factor = factor_of(kTimeUnits, name);
  if (!value || !factor || *value < 0) return bad_duration(text);
  return Seconds(*value * *factor);
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
    return fail(ErrorKind::input, "{} is out of range: {} to {} are possible", text, low, high);
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
