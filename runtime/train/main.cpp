// dlrun-train: one rank of a training. Reads its arguments and job, then hands over to the session.
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <unistd.h>

#include "runtime/train/arguments.hpp"
#include "runtime/train/model_commands.hpp"
#include "runtime/train/prepare_command.hpp"
#include "runtime/train/servers/server_settings.hpp"
#include "runtime/train/session.hpp"
#include "runtime/train/startup.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/file.hpp"
#include "src/base/thread_stack.hpp"
#include "src/base/version.hpp"

namespace {

using dlrun::runtime::Arguments;

int fail_with(const dlrun::Error& error) {
  dlrun::runtime::print_error(error);
  return dlrun::to_int(dlrun::exit_code(error.kind));
}

// What was asked for is done once it is written.
int print(const std::string& text) {
  const auto written = dlrun::write_all(STDOUT_FILENO, text, "the standard output");
  return written ? dlrun::to_int(dlrun::ExitCode::done) : fail_with(written.error());
}

int check(const dlrun::runtime::TrainSpec& spec, const dlrun::runtime::ModelRank& rank) {
  const auto found = dlrun::runtime::check_job(spec, dlrun::Environment::of_this_process(), rank);
  if (!found) return fail_with(found.error());
  return print(*found + "\n");
}

int check_alone(const dlrun::runtime::TrainSpec& spec, const dlrun::runtime::ModelRank& rank) {
  const auto checked = dlrun::runtime::check_settings(spec, rank);
  return checked ? dlrun::to_int(dlrun::ExitCode::done) : fail_with(checked.error());
}

int prepare(const std::vector<std::string>& words) {
  const auto job = dlrun::runtime::parse_prepare(words);
  if (!job) return fail_with(job.error());
  const auto done = dlrun::runtime::run_prepare(*job);
  if (!done) return fail_with(done.error());
  return print(*done + "\n");
}

int run_model(const std::vector<std::string>& words) {
  const auto done = dlrun::runtime::run_model_command(words);
  if (!done) return fail_with(done.error());
  return print(*done + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  dlrun::give_threads_stack();
  ::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of the write
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (!words.empty() && (words[0] == "--prepare" || words[0].starts_with("--prepare=")))
    return prepare(words);
  if (dlrun::runtime::is_model_command(words)) return run_model(words);
  const auto arguments = dlrun::runtime::parse_arguments(words);
  if (!arguments) return fail_with(arguments.error());
  if (arguments->action == Arguments::Action::help) return print(std::string(dlrun::runtime::help_text()));
  if (arguments->action == Arguments::Action::version)
    return print(
        fmt::format("dlrun-train {} ({}, {})\n", dlrun::kVersion, dlrun::kCompiler, dlrun::kBuildType));
  auto spec = dlrun::runtime::read_train_spec_file(arguments->config);
  if (!spec) return fail_with(spec.error());
  const bool is_checked = arguments->action != Arguments::Action::train;
  if (is_checked)
    if (const auto usable = use_server_processes(*spec, arguments->servers.value_or(0)); !usable)
      return fail_with(usable.error());
  if (arguments->ranks)
    if (const auto divided = divide_global_batch(*spec, *arguments->ranks / arguments->ranks_of_model());
        !divided)
      return fail_with(divided.error());
  if (arguments->action == Arguments::Action::check) return check(*spec, arguments->model());
  if (arguments->action == Arguments::Action::check_settings) return check_alone(*spec, arguments->model());
  return dlrun::runtime::run_session(*spec, dlrun::Environment::of_this_process(), begin);
}
