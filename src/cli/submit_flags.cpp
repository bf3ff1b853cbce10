#include "src/cli/submit_flags.hpp"

namespace dlrun::cli {
namespace {

// The flag with its value, for each value that was given. Values of keys are in the frozen job.
template <class Options>
Argv given(const FlagRow<Options>& row, const Options& options) {
  const std::string name(row.flag.long_name());
  Argv out;
  std::visit(Overloaded{[](Key) {},
                        [&](std::string Options::*field) {
                          // With '=': a value may begin with a dash.
                          if (!(options.*field).empty()) out.push_back(name + "=" + options.*field);
                        },
                        [&](bool Options::*field) {
                          if (options.*field) out.push_back(name);
                        },
                        [&](std::vector<std::string> Options::*field) {
                          for (const std::string& value : options.*field) out.push_back(name + "=" + value);
                        }},
             row.place);
  return out;
}

template <class Options>
void add_forwarded(std::span<const FlagRow<Options>> rows, const Options& options, Argv& out) {
  for (const FlagRow<Options>& row : rows)
    if (row.flag.on_submit == OnSubmit::forwarded)
      for (std::string& word : given(row, options)) out.push_back(std::move(word));
}

template <class Options>
Result<void> check_refused(std::span<const FlagRow<Options>> rows, const Options& options) {
  for (const FlagRow<Options>& row : rows) {
    if (row.flag.on_submit != OnSubmit::refused) continue;
    const Argv words = given(row, options);
    if (words.empty()) continue;
    const std::string value = words.front().substr(row.flag.long_name().size() + 1);
    return fail(Error{.kind = ErrorKind::usage,
                      .what = fmt::format("{} {}: {}", row.flag.long_name(), value, row.flag.refusal),
                      .where = {},
                      .hint = "select nodes with resources.extra, for example [\"--nodelist=n1,n2\"]",
                      .also = {}});
  }
  return {};
}

}  // namespace

Argv forwarded_flags(const JobOptions& options, const CommonOptions& common) {
  Argv out;
  add_forwarded(job_flags(), options, out);
  add_forwarded(common_flags(), common, out);
  return out;
}

Result<void> check_refused_flags(const JobOptions& options) {
  TRY(check_refused(host_flags(), options.hosts));
  return check_refused(job_flags(), options);
}

}  // namespace dlrun::cli
