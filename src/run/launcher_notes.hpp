// LauncherNotes: what a launcher's command says while ranks run, held for a moment. srun tells of each task
// that ends before the head can know that the whole job was cancelled; who gets the lines decides then.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.hpp"

namespace dlrun::job {

class LauncherNotes {
 public:
  static constexpr Seconds kHold{1};
  explicit LauncherNotes(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  void hold(std::string text) { held_.push_back(std::move(text)); }
  void release() {
    for (const std::string& text : std::exchange(held_, {})) say_(text);
  }

 private:
  std::function<void(const std::string&)> say_;
  std::vector<std::string> held_;
};

}  // namespace dlrun::job
