// Generation: a GAN. Nothing can be measured on a test set: the losses of both networks are reported, and a
// grid of images is written after each epoch for people to look at.
#pragma once

#include "runtime/train/task.hpp"

namespace dlrun::runtime {

class Generation final : public Task {
 public:
  explicit Generation(const Parts& parts) : parts_(parts) {}
  /// The discriminator judges a real and a generated image.
  double answers_per_row() const override { return 2; }
  std::span<const LossColumn> losses() const override;
  Result<void> end_epoch(const StepReport& last) override;
  Result<RunResult> finish(const StepReport& last) override;

 private:
  Conversion shown_as() const;
  Parts parts_;
  Totals last_epoch_;
};

}  // namespace dlrun::runtime
