// FailureCause: finds in what a program prints on stderr why it fails: the exception that ends a Python
// traceback or a C++ program, else its last line that says error. Pure: lines in, one line out. It reads no
// log file and remembers only what it may answer.
#pragma once

#include <string>
#include <string_view>

#include "src/base/json_fwd.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::job {

class FailureCause {
 public:
  void take(std::string_view line);
  // "ValueError: label 11 is out of range"; empty: nothing looked like a cause.
  const std::string& text() const { return exception_.empty() ? error_ : exception_; }

 private:
  enum class Within { none, traceback, terminate };
  Within within_ = Within::none;
  std::string exception_, error_;
};

// The same from the file that TORCHELASTIC_ERROR_FILE names, as PyTorch's @record writes it; empty: none.
std::string cause_in_error_file(const Json& content);

// What that file of this rank tells; empty: it names none, or there is none.
std::string cause_from_error_file(const plan::Plan& plan, const plan::RankPlan& rank);

// What to do next about such an end; empty: nothing that its text tells.
std::string cause_hint(std::string_view reason, std::string_view cause, const std::string& program);

}  // namespace dlrun::job
