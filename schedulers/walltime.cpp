#include "schedulers/walltime.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <vector>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kMaxField = 1'000'000'000;  // of one field: the sum of all stays far from overflow
constexpr std::int64_t kMinute = 60, kHour = 3600, kDay = 86400;

bool is_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; });
}

bool is_unlimited(std::string_view text) {
  return text == "-1" || is_word(text, "UNLIMITED") || is_word(text, "INFINITE");
}

tl::unexpected<Error> no_time(std::string_view scheduler, std::string_view text, std::string_view forms) {
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("'{}' is not a {} time", text, scheduler),
                    .where = {},
                    .hint = fmt::format("valid forms: {}", forms)});
}

// The numbers between colons; unset if a field has anything but digits.
std::optional<std::vector<std::int64_t>> fields_of(std::string_view text) {
  std::vector<std::int64_t> out;
  for (const std::string& part : split(text, ':')) {
    const bool digits =
        !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    const auto value = digits ? parse_integer(part, 0, kMaxField) : fail(ErrorKind::input, "no number");
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

seconds sum(std::span<const std::int64_t> fields, std::span<const std::int64_t> units) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) out += fields[i] * units[i];
  return seconds(out);
}

// What the fields stand for depends on how many there are, and on whether days come before them.
std::optional<seconds> slurm_seconds(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto days = dash == text.npos ? std::vector<std::int64_t>{0} : fields_of(text.substr(0, dash));
  const auto rest = fields_of(dash == text.npos ? text : text.substr(dash + 1));
  if (!days || !rest || days->size() != 1 || rest->size() > 3) return std::nullopt;
  constexpr std::array<std::int64_t, 3> from_hours{kHour, kMinute, 1};
  const std::span<const std::int64_t> all(from_hours);
  const bool hours_first = dash != text.npos || rest->size() == 3;
  return seconds(days->front() * kDay) + sum(*rest, hours_first ? all : all.subspan(1));
}

}  // namespace

Result<Walltime> parse_slurm_walltime(std::string_view text) {
  if (is_unlimited(text)) return Walltime{};
  if (const auto time = slurm_seconds(text)) return Walltime{*time};
  return no_time("Slurm", text, "minutes, min:sec, h:min:sec, days-h, days-h:min, days-h:min:sec, UNLIMITED");
}

Result<Walltime> parse_pbs_walltime(std::string_view text) {
  const std::string_view whole = text.substr(0, text.find('.'));
  const std::string_view fraction = text.substr(whole.size());
  const bool fraction_fits = fraction.empty() || (fraction.size() > 1 && fields_of(fraction.substr(1)) &&
                                                  fraction.find(':') == fraction.npos);
  const auto fields = fields_of(whole);
  if (!fields || fields->size() > 3 || !fraction_fits)
    return no_time("PBS", text, "seconds, min:sec, h:min:sec");
  constexpr std::array<std::int64_t, 3> units{kHour, kMinute, 1};
  return Walltime{sum(*fields, std::span<const std::int64_t>(units).subspan(3 - fields->size()))};
}

Result<std::optional<Walltime>> parse_slurm_time_left(std::string_view text) {
  if (text == "INVALID" || text == "NOT_SET" || text == "N/A") return std::optional<Walltime>{};
  if (is_unlimited(text)) return std::optional<Walltime>{Walltime{}};
  // squeue prints a bare time without days as min:sec, never as minutes.
  return std::optional<Walltime>{TRY(parse_slurm_walltime(text))};
}

}  // namespace dlrun
