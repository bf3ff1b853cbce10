// An adapter's checks: commands that must succeed before any rank starts. Their own message is the error. A
// look at a plan runs those that need nothing but the job, so that a wrong setting is found on the login node
// too.
#pragma once

#include "src/run/prepare.hpp"

namespace dlrun::job {

// All checks of the plan, in order; its run directory is there.
Result<void> run_checks(const plan::Plan& plan, const Environment& environment);

// The checks for a plan that nobody runs yet, in a folder of their own that is gone afterwards.
Result<void> run_plan_checks(const Prepared& job, const Environment& environment);

}  // namespace dlrun::job
