// The values of a job's secrets, for texts that others wrote: the last lines of a rank, its exception, what
// it reported. Whatever we keep or show of these has none of them. What a prolog reads from a file is added
// when it is known. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/json_fwd.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

class SecretValues {
 public:
  /// Of the plan: its variables, and what its commands and setup lines give to names of secrets.
  void add(const Plan& plan);
  /// Of the variables whose names are secrets'; `further` are the job's own patterns.
  void add(const Environment& environment, const std::vector<std::string>& further);
  /// A value of several lines is printed line by line. Of fewer than 4 characters it would be found
  /// everywhere.
  void add(std::string_view value);

  std::string hidden(std::string text) const;
  std::vector<std::string> hidden(std::vector<std::string> lines) const;
  /// All texts in it.
  Json hidden(Json json) const;

  const std::vector<std::string>& all() const { return values_; }

 private:
  void add_difference(std::string_view text, std::string_view shown);
  std::vector<std::string> values_;  // the longest first: one may be part of another
};

}  // namespace dlrun::plan
