// dlrun-train: one rank of a training. Reads its arguments and job, then hands over to the session.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/train/arguments.hpp"
#include "runtime/train/session.hpp"
#include "runtime/train/startup.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/version.hpp"

namespace {

using dlrun::runtime::Arguments;

int fail_with(const dlrun::Error& error) {
  dlrun::runtime::print_error(error);
  return dlrun::to_int(dlrun::exit_code(error.kind));
}

int check(const dlrun::runtime::TrainSpec& spec) {
  const auto found = dlrun::runtime::check_job(spec);
  if (!found) return fail_with(found.error());
  fmt::print("{}\n", *found);
  return dlrun::to_int(dlrun::ExitCode::done);
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  const auto arguments = dlrun::runtime::parse_arguments({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (!arguments) return fail_with(arguments.error());
  if (arguments->action == Arguments::Action::help) return fmt::print("{}", dlrun::runtime::help_text()), 0;
  if (arguments->action == Arguments::Action::version)
    return fmt::print("dlrun-train {} ({}, {})\n", dlrun::kVersion, dlrun::kCompiler, dlrun::kBuildType), 0;
  const auto spec = dlrun::runtime::read_train_spec_file(arguments->config);
  if (!spec) return fail_with(spec.error());
  if (arguments->action == Arguments::Action::check) return check(*spec);
  if (arguments->action == Arguments::Action::check_settings) return dlrun::to_int(dlrun::ExitCode::done);
  return dlrun::runtime::run_session(*spec, dlrun::Environment::of_this_process(), begin);
}
