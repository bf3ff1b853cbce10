// What the readers of runs need of the world (src/report), for one command.
#pragma once

#include <thread>

#include "src/cli/command.hpp"
#include "src/report/scheduler_job.hpp"

namespace dlrun::cli {

class WorldOf {
 public:
  explicit WorldOf(const Context& context) : environment_(context.environment) {}
  report::World world() const {
    return {environment_, commands_, clock_, [](Seconds time) { std::this_thread::sleep_for(time); }};
  }

 private:
  const Environment& environment_;
  SystemCommands commands_;
  SystemClock clock_;
};

}  // namespace dlrun::cli
