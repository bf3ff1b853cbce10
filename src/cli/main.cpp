// The program dlrun: reads the command line, calls one command, prints its error, returns its exit code.
#include <unistd.h>

#include "src/base/exit_code.hpp"
#include "src/cli/command_line.hpp"
#include "src/process/init_process.hpp"

namespace dlrun::cli {
namespace {

int report(const Error& error, Console& console) {
  console.clear_status_line();
  console.err(console.tinted_err("dlrun: error: ", Tint::red) + error.text());
  // A value that was given as a flag is mended on the command line, not in a file.
  const bool of_a_flag = error.kind == ErrorKind::input && error.where.starts_with("--");
  return to_int(exit_code(of_a_flag ? ErrorKind::usage : error.kind));
}

int main(const std::vector<std::string>& arguments) {
  init_process();
  const Environment environment = Environment::of_this_process();
  const Result<CommandLine> line = read_command_line(arguments);
  const CommonOptions common = line ? line->common : CommonOptions();
  Console console(environment, common.color_choice(), common.verbosity());
  if (!line) return report(line.error(), console);
  const Result<int> code = line->command->run({console, common, environment});
  if (!code) return report(code.error(), console);
  if (const std::string lost = *code == 0 ? console.lost_out() : ""; !lost.empty())
    return report(Error{.kind = ErrorKind::io, .what = "cannot write to the standard output: " + lost},
                  console);
  return *code;
}

}  // namespace
}  // namespace dlrun::cli

int main(int argc, char** argv) {
  try {
    return dlrun::cli::main({argv + 1, argv + argc});
  } catch (const std::exception& bug) {
    (void)!::write(STDERR_FILENO, "dlrun: bug: ", 12);
    (void)!::write(STDERR_FILENO, bug.what(), std::char_traits<char>::length(bug.what()));
    (void)!::write(STDERR_FILENO, "\n", 1);
    return dlrun::to_int(dlrun::ExitCode::internal);
  }
}
