// What becomes of agents whose ranks have ended because one of the run failed: they end, or are kept for
// another attempt.
#pragma once

namespace dlrun::job {

enum class AfterFailure { end, keep };

}  // namespace dlrun::job
