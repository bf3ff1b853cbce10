// See trainer.hpp.
#include "runtime/train/trainer.hpp"

#include <cmath>
#include <utility>

#include "runtime/train/evaluation.hpp"
#include "runtime/train/report/sample_grid.hpp"
#include "runtime/train/rows.hpp"

namespace dlrun::runtime {
namespace {

RunShape shape_of(const Trainer::Parts& parts, std::uint64_t samples) {
  return RunShape{
      .world = parts.comm.size(), .samples = samples, .epochs = parts.spec.benchmark ? 0 : parts.spec.epochs};
}

}  // namespace

Trainer::Trainer(const Parts& parts, const Position& start)
    : parts_(parts),
      split_(parts.data.train.count, parts.spec.data.train_share, parts.spec.seed),
      run_(shape_of(parts, split_.training())),
      order_(run_.samples, parts.spec.seed),
      epoch_order_(order_.epoch(start.epoch)),
      train_filler_(parts.data.train, parts.spec.conversion, parts.spec.augmentation),
      held_out_filler_(parts.data.train, parts.spec.conversion, {}),
      test_filler_(parts.data.test, parts.spec.conversion, {}),
      learning_rate_(parts.spec, run_),
      position_(start) {
  last_.step = start.step;
  last_.epoch = start.epoch;
  parts_.reporter.set_length(length());
  if (start.seen > 0) parts_.reporter.start_within_epoch(start.step);
  if (parts_.engine.generates()) parts_.reporter.tell_of_gan();
  if (parts_.checkpoints != nullptr) parts_.checkpoints->start_from(start, run_);
  parts_.engine.while_waiting([this] { fill_ahead(); });
}

RunLength Trainer::length() const {
  if (parts_.spec.benchmark)
    return {parts_.spec.benchmark->warmup + parts_.spec.benchmark->repeat * parts_.spec.benchmark->steps, 0};
  const std::uint64_t rows =
      static_cast<std::uint64_t>(parts_.spec.batch) * static_cast<std::uint64_t>(run_.world);
  const std::uint64_t an_epoch = (run_.samples + rows - 1) / rows;
  const std::uint64_t done =
      position_.epoch >= run_.epochs ? 0 : (run_.samples - position_.seen + rows - 1) / rows;
  const std::uint64_t later = position_.epoch >= run_.epochs ? 0 : run_.epochs - position_.epoch - 1;
  return {position_.step + done + later * an_epoch, run_.epochs};
}

Result<StepTotals> Trainer::forward_backward(const Share& share) {
  Result<void> sent;
  const BatchResult mine = parts_.engine.train_batch(position_.step, [&](std::size_t bucket) {
    if (sent) sent = parts_.gradients.start(bucket);
  });
  TRY(parts_.engine.status());
  TRY(std::move(sent));
  Requests requests = parts_.local_requests();
  const Requests heard = parts_.reporter.requests();
  requests.save = requests.save || heard.save;
  requests.stop = requests.stop || heard.stop;
  const double answers = parts_.engine.generates() ? 2 : 1;  // to a row
  store({.totals = {.loss_sum = mine.loss_sum,
                    .correct = static_cast<double>(mine.correct) / answers,
                    .rows = static_cast<double>(share.count),
                    .generator_loss_sum = mine.generator_loss_sum},
         .requests = requests},
        parts_.engine.spare_slots());
  TRY(parts_.gradients.finish());
  return load(parts_.engine.spare_slots());
}

Share Trainer::this_share() const {
  return step_share(position_.seen, run_.samples, static_cast<std::uint64_t>(parts_.spec.batch),
                    parts_.comm.rank(), run_.world);
}

void Trainer::fill(const Share& share) {
  train_filler_.fill(
      share.count, [&](std::uint64_t i) { return split_.training_sample(epoch_order_(share.first + i)); },
      AugmentationKey{parts_.spec.seed, position_.epoch}, rows_of(parts_.engine));
}

// Not beyond the epoch: what comes then may be an evaluation, and has another order.
void Trainer::fill_ahead() {
  const auto batch = static_cast<std::uint64_t>(parts_.spec.batch);
  const std::uint64_t seen = position_.seen + step_rows(position_.seen, run_.samples, batch, run_.world);
  if (seen >= run_.samples) return;
  fill(step_share(seen, run_.samples, batch, parts_.comm.rank(), run_.world));
  filled_ahead_ = true;
}

Result<StepTotals> Trainer::step() {
  const auto batch = static_cast<std::uint64_t>(parts_.spec.batch);
  const std::uint64_t rows = step_rows(position_.seen, run_.samples, batch, run_.world);
  const Share share = this_share();
  if (!std::exchange(filled_ahead_, false)) fill(share);
  TRY(train_filler_.state());
  const StepTotals sums = TRY(forward_backward(share));
  if (!std::isfinite(sums.totals.loss_sum) || !std::isfinite(sums.totals.generator_loss_sum))
    return fail(Error{.kind = ErrorKind::input,
                      // Without a sign: that of no number depends on the compiler.
                      .what = fmt::format("the loss is {} at step {} (epoch {}): training diverged",
                                          std::abs(sums.totals.loss_sum + sums.totals.generator_loss_sum),
                                          position_.step + 1, position_.epoch + 1),
                      .hint = "try a lower train.optimizer.lr or a longer train.schedule.warmup"});
  last_ = {.step = position_.step + 1,
           .epoch = position_.epoch + 1,
           .totals = sums.totals,
           .learning_rate = learning_rate_.at(position_)};
  // A rank's gradient is its sum divided by the batch; the mean is over the rows of all ranks that count.
  parts_.engine.apply(
      {.learning_rate = last_.learning_rate,
       .weight_decay = static_cast<float>(parts_.spec.optimizer.weight_decay),
       .gradient_scale = static_cast<float>(static_cast<double>(batch) / static_cast<double>(rows)),
       .updates = position_.step});
  advance(rows);
  return sums;
}

void Trainer::advance(std::uint64_t rows) {
  ++position_.step;
  position_.seen += rows;
  if (position_.seen < run_.samples) return;
  position_.seen = 0;
  ++position_.epoch;
  epoch_order_ = order_.epoch(position_.epoch);
}

Result<void> Trainer::after_step(const StepTotals& step) {
  TRY(parts_.reporter.step(last_));
  if (parts_.checkpoints == nullptr) return {};
  return parts_.checkpoints->after_step(parts_.engine, position_, step.requests.save, parts_.reporter);
}

Result<Totals> Trainer::test() {
  filled_ahead_ = false;
  return evaluate(parts_.engine, parts_.comm, test_filler_, parts_.data.test.count,
                  [](std::uint64_t i) { return i; });
}

Result<Totals> Trainer::watch() {
  if (split_.held_out() == 0) return test();
  filled_ahead_ = false;
  return evaluate(parts_.engine, parts_.comm, held_out_filler_, split_.held_out(),
                  [this](std::uint64_t i) { return split_.held_out_sample(i); });
}

// Nothing can be measured on a test set: people look at what is made.
Result<void> Trainer::end_epoch_of_gan() {
  TRY(parts_.reporter.epoch_of_gan(last_));
  if (parts_.comm.rank() == 0 && !parts_.folder.empty())
    TRY(write_sample_grid(parts_.engine, parts_.data.train.shape, parts_.spec.conversion, parts_.folder,
                          last_.epoch));
  parts_.reporter.start_clock();
  return {};
}

Result<void> Trainer::end_epoch() {
  if (parts_.engine.generates()) return end_epoch_of_gan();
  watched_ = TRY(watch());
  TRY(parts_.reporter.epoch(last_, *watched_, split_.held_out() == 0 ? "test" : "validation"));
  parts_.reporter.start_clock();
  return {};
}

bool Trainer::reached_target() const {
  return parts_.spec.stop_at_accuracy && watched_ && watched_->accuracy() >= *parts_.spec.stop_at_accuracy;
}

// A run that had reached its target when it ended is not to train on.
Result<void> Trainer::check_target_at_start() {
  if (!parts_.spec.stop_at_accuracy || position_.epoch == 0 || position_.seen != 0) return {};
  watched_ = TRY(watch());
  if (!reached_target() || position_.epoch >= run_.epochs) return {};
  const std::string why = fmt::format("stop-at.accuracy {} was reached after {} epochs",
                                      *parts_.spec.stop_at_accuracy, position_.epoch);
  if (parts_.check_finished) TRY(parts_.check_finished(why));
  parts_.reporter.note("already finished: " + why);
  return {};
}

Result<Ending> Trainer::run() {
  TRY(check_target_at_start());
  parts_.reporter.phase("training");
  parts_.reporter.start_clock();
  while (position_.epoch < run_.epochs && !reached_target()) {
    watched_.reset();
    const StepTotals done = TRY(step());
    TRY(after_step(done));
    if (position_.seen == 0 && position_.epoch < run_.epochs) TRY(end_epoch());
    if (done.requests.stop && position_.epoch < run_.epochs) return stop();
  }
  return finish();
}

Result<Ending> Trainer::finish_gan() {
  if (parts_.checkpoints != nullptr)
    TRY(parts_.checkpoints->begin_last(parts_.engine, position_, parts_.reporter));
  if (last_.totals.rows > 0) TRY(end_epoch());
  if (parts_.checkpoints != nullptr) TRY(parts_.checkpoints->finish(parts_.reporter));
  parts_.reporter.result_of_gan(position_);
  return Ending::finished;
}

Result<Ending> Trainer::finish() {
  if (parts_.engine.generates()) return finish_gan();
  if (parts_.checkpoints != nullptr)
    TRY(parts_.checkpoints->begin_last(parts_.engine, position_, parts_.reporter));
  parts_.reporter.phase("testing");
  if (!watched_ && last_.totals.rows > 0) TRY(end_epoch());
  const Totals result = split_.held_out() == 0 && watched_ ? *watched_ : TRY(test());
  if (parts_.checkpoints != nullptr) TRY(parts_.checkpoints->finish(parts_.reporter));
  parts_.reporter.result(position_, result);
  return Ending::finished;
}

Result<Ending> Trainer::stop() {
  parts_.reporter.phase("saving");
  if (parts_.checkpoints != nullptr) {
    TRY(parts_.checkpoints->begin_last(parts_.engine, position_, parts_.reporter));
    TRY(parts_.checkpoints->finish(parts_.reporter));
  }
  parts_.reporter.note(fmt::format("stopped on request after step {} ({} of {} samples of epoch {}){}",
                                   position_.step, position_.seen, run_.samples, position_.epoch + 1,
                                   parts_.spec.checkpoint.folder.empty()
                                       ? "; nothing was saved: checkpoint.dir is not set"
                                       : ", checkpoint saved"));
  return Ending::stopped;
}

}  // namespace dlrun::runtime
