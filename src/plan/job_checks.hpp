// Where an adapter's checks run, and what is said of one that fails. A check may need what the setup lines
// bring (data on a local disk) or what is staged, so that with either it runs behind them on the first node,
// else where dlrun runs.
#pragma once

#include "src/base/result.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

inline bool checks_need_setup(const Plan& plan) {
  return !plan.checks.empty() && (!plan.prolog.setup.empty() || !plan.stage.empty());
}

// `said`: what the checks have printed; `status`: "exit code 65"; `code`: the exit code, whose meaning is
// kept.
Error check_error(const std::vector<Argv>& checks, const EnvironmentRules& rules, std::string_view said,
                  std::string_view status, int code);

}  // namespace dlrun::plan
