// The progress line of a training run, from the program's own reports: pure text, fitted to a width.
#pragma once

#include <string>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"

namespace dlrun::cli {

// "epoch 2/4 [#######.....]  58% step 545/938  loss 0.312  accuracy 88.4 %  3120 images/s  0m42s left"; parts
// that a report lacks are left out, and parts that do not fit are dropped from the right.
std::string progress_line(const Json& report, Seconds elapsed, int width);

}  // namespace dlrun::cli
