// The program dlrun: reads the command line, calls one command, prints its error, returns its exit code.
#include <unistd.h>

#include "src/base/json.hpp"
#include "src/base/uncaught.hpp"
#include "src/cli/command_line.hpp"
#include "src/cli/error_report.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/process/init_process.hpp"

namespace dlrun::cli {
namespace {

enum class Form { text, text_and_json };

int report(const Error& error, Console& console, Form form) {
  const auto print = [&](const Error& one) {
    console.err(console.tinted_err("dlrun: error: ", Tint::red) + plain_text(one.text(), Newlines::kept));
  };
  console.clear_status_line();
  print(error);
  if (form == Form::text_and_json)
    if (const auto written = console.data(to_pretty_text(error_json(error)));
        !written && written.error().what != error.what)
      print(written.error());
  return to_int(exit_code_of(error));
}

int main(const std::vector<std::string>& arguments) {
  init_process();
  const Environment environment = Environment::of_this_process();
  const Result<CommandLine> line = read_command_line(arguments);
  const CommonOptions common = line ? line->common : CommonOptions();
  Console console(environment, common.color_choice(), common.verbosity());
  const Form form = common.json || (!line && asks_for_json(arguments)) ? Form::text_and_json : Form::text;
  if (!line) return report(line.error(), console, form);
  const Result<int> code = line->command->run({console, common, environment});
  if (!code) return report(code.error(), console, form);
  if (const std::string lost = *code == 0 ? console.lost_out() : ""; !lost.empty())
    return report(Error{.kind = ErrorKind::io, .what = "cannot write to the standard output: " + lost},
                  console, Form::text);
  return *code;
}

}  // namespace
}  // namespace dlrun::cli

int main(int argc, char** argv) {
  try {
    return dlrun::cli::main({argv + 1, argv + argc});
  } catch (const std::exception& uncaught) {
    const dlrun::Error error = dlrun::error_of(uncaught);
    const std::string text = "dlrun: error: " + error.text() + "\n";
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    return dlrun::to_int(dlrun::exit_code(error.kind));
  }
}
