#include "schedulers/slurm/version.hpp"

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/process/command.hpp"

namespace dlrun {
namespace {

Result<SlurmVersion> version_of_srun(const Environment& environment) {
  const CommandOutput output =
      TRY(run_command({.argv = {"srun", "--version"}, .environment = environment, .limit = Seconds(20)}));
  if (const auto version = parse_slurm_version(output.out)) return *version;
  return fail(
      Error{.kind = ErrorKind::unavailable,
            .what = fmt::format("srun does not report its version: '{}'", trim(output.out + output.err)),
            .where = {},
            .hint = "is this Slurm's own srun? --via ssh does not need it"});
}

}  // namespace

std::optional<SlurmVersion> parse_slurm_version(std::string_view text) {
  const std::size_t blank = text.find(' ');
  if (!text.starts_with("slurm") || blank == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> parts = split(trim(text.substr(blank)), '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = parse_integer(parts[0], 0, 1000), minor = parse_integer(parts[1], 0, 1000);
  if (!major || !minor) return std::nullopt;
  return SlurmVersion{static_cast<int>(*major), static_cast<int>(*minor)};
}

std::shared_ptr<const SrunVersion> SrunVersion::ask(const Environment& environment) {
  auto out = std::make_shared<SrunVersion>();
  out->answer_ = std::async(std::launch::async, version_of_srun, environment).share();
  return out;
}

}  // namespace dlrun
