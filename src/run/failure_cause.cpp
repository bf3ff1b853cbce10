#include "src/run/failure_cause.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

constexpr std::size_t kMaxCause = 300;
constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::string_view kTerminate = "terminate called after throwing an instance of '";
constexpr std::string_view kWhat = "what():  ";

// PyTorch puts "[rank3]: " before each line of a traceback.
std::string_view without_rank(std::string_view line) {
  if (!line.starts_with("[rank")) return line;
  const std::size_t end = line.find("]:");
  if (end == std::string_view::npos || end > 12) return line;
  line.remove_prefix(end + 2);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

std::string cut(std::string_view text) {
  return text.size() <= kMaxCause ? std::string(text) : std::string(text.substr(0, kMaxCause)) + "...";
}

bool says_error(std::string_view line) {
  static constexpr std::array marks{"error:",
                                    "error -",
                                    "fatal:",
                                    "fatal error",
                                    "panicked at",
                                    "assertion",
                                    "abort(",
                                    "segmentation fault",
                                    "bus error",
                                    "command not found",
                                    "no such file",
                                    "permission denied",
                                    "cannot open shared object",
                                    "out of memory"};
  std::string lower(line.substr(0, kMaxCause));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(marks.begin(), marks.end(),
                     [&](const char* mark) { return lower.find(mark) != std::string::npos; });
}

// What MPICH and torchrun say of a failure whose cause was printed before.
bool is_aftermath(std::string_view line) {
  return (line.starts_with("Abort(") && line.find("MPI_Abort(") != std::string_view::npos) ||
         line.find("ChildFailedError") != std::string_view::npos;
}

}  // namespace

void FailureCause::take(std::string_view printed) {
  const std::string_view line = without_rank(printed);
  if (line.starts_with(kTraceback)) {
    within_ = Within::traceback;
    return;
  }
  if (within_ == Within::traceback) {
    if (line.empty() || line.front() == ' ') return;  // a frame
    within_ = Within::none;
    if (!is_aftermath(line)) exception_ = cut(line);
    return;
  }
  if (line.starts_with(kTerminate)) {
    const std::string_view type = line.substr(kTerminate.size());
    exception_ = cut(type.substr(0, type.find('\'')));
    within_ = Within::terminate;
    return;
  }
  if (within_ == Within::terminate) {
    within_ = Within::none;
    if (const std::string_view what = trim(line); what.starts_with(kWhat))
      exception_ = cut(exception_ + ": " + std::string(what.substr(kWhat.size())));
    return;
  }
  if (says_error(line) && !is_aftermath(line)) error_ = cut(trim(line));
}

std::string cause_in_error_file(const Json& content) {
  if (!content.is_object()) return "";
  const auto message = content.find("message");
  if (message == content.end()) return "";
  if (message->is_string()) return cut(message->get<std::string>());
  const auto inner = message->is_object() ? message->find("message") : message->end();
  return message->is_object() && inner != message->end() && inner->is_string()
             ? cut(inner->get<std::string>())
             : "";
}

std::string cause_from_error_file(const plan::Plan& plan, const plan::RankPlan& rank) {
  const auto is_error_file = [](const auto& variable) { return variable.first == "TORCHELASTIC_ERROR_FILE"; };
  for (const plan::EnvironmentChanges* changes : {&rank.environment, &plan.environment}) {
    const auto found = std::find_if(changes->begin(), changes->end(), is_error_file);
    if (found == changes->end()) continue;
    const auto text = read_file(found->second);
    const auto content = text ? parse_json(*text, found->second) : fail(text.error());
    return content ? cause_in_error_file(*content) : std::string();
  }
  return "";
}

namespace {

// A shell around the program is not what lacks the module.
bool is_python(const std::string& program) {
  return program.substr(program.rfind('/') + 1).find("py") != std::string::npos;
}

}  // namespace

std::string cause_hint(std::string_view reason, std::string_view cause, const std::string& program) {
  if (reason == "killed by SIGKILL (9)")
    return "who kills so is often the kernel, for memory (dmesg), or the scheduler (sacct -j JOB -o "
           "JobID,MaxRSS,State)";
  if (cause.starts_with("ImportError") || cause.starts_with("ModuleNotFoundError"))
    return (is_python(program) ? "the program is " + program + "; " : std::string()) +
           "is the environment that has the module set up in the job (environment.activate, "
           "environment.modules)?";
  return "";
}

}  // namespace dlrun::job
