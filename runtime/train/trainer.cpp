// See trainer.hpp.
#include "runtime/train/trainer.hpp"

#include <cmath>
#include <cstdio>
#include <utility>

#include "runtime/train/evaluation.hpp"
#include "runtime/train/report/epoch_sums.hpp"
#include "runtime/train/rows.hpp"

namespace dlrun::runtime {
namespace {

RunShape shape_of(const Trainer::Parts& parts, std::uint64_t samples) {
  return RunShape{.world = parts.gradients.shards().shards,
                  .samples = samples,
                  .epochs = parts.spec.benchmark ? 0 : parts.spec.epochs,
                  .accumulate = parts.spec.accumulate};
}

}  // namespace

Trainer::Trainer(const Parts& parts, const Position& start)
    : parts_(parts),
      update_(parts.engine, parts.gradients.group(), parts.gradients.sums(), parts.gradients.servers()),
      split_(parts.data.train.count, parts.spec.data.train_share, parts.spec.seed),
      shards_(parts.gradients.shards()),
      batches_(parts.gradients.batches()),
      run_(shape_of(parts, split_.training())),
      order_(run_.samples, parts.spec.seed),
      epoch_order_(order_.epoch(start.epoch)),
      train_filler_(parts.data.train, parts.spec.conversion, parts.spec.augmentation, parts.spec.decoding),
      task_(make_task({.spec = parts.spec,
                       .engine = parts.engine,
                       .comm = parts.comm,
                       .data = parts.data,
                       .reporter = parts.reporter,
                       .split = split_,
                       .shards = shards_,
                       .together =
                           [this](const std::function<Result<Totals>()>& evaluation) {
                             return evaluate_together(evaluation);
                           },
                       .folder = parts.folder})),
      learning_rate_(parts.spec, run_),
      position_(start),
      first_step_(start.step),
      leads_(parts.comm.rank() == 0 && !parts.entered &&
             (parts.tensor == nullptr || parts.tensor->rank() == 0) &&
             (!parts.pipeline || parts.pipeline->rank().is_first())) {
  if (parts_.spec.mixup)
    train_filler_.mix_with({*parts_.spec.mixup, run_.samples,
                            [this](std::uint64_t number) { return split_.training_sample(number); }});
  if (parts_.comm.elastic() != nullptr) begin_elastic();
  if (parts_.spec.sync) local_.emplace(*parts_.spec.sync, run_.samples, parts_.engine, parts_.comm);
  if (ServerClient* const servers = parts_.gradients.servers();
      servers != nullptr && servers->staleness() > 0)
    stale_.emplace(*servers, parts_.comm);
  last_.step = start.step;
  last_.epoch = start.epoch;
  parts_.reporter.set_length(length());
  if (start.seen > 0 && parts_.epoch_sums)
    parts_.reporter.continue_epoch(window_of(*parts_.epoch_sums));
  else if (start.seen > 0)
    parts_.reporter.start_within_epoch(start.step);
  parts_.reporter.set_losses(task_->losses(),
                             task_->has_accuracy() ? Reporter::Accuracy::told : Reporter::Accuracy::none);
  parts_.reporter.set_unit(unit_of(parts.data.train.shape));
  take_shards();
  parts_.reporter.set_clock(clock_);
  if (parts_.checkpoints != nullptr) parts_.checkpoints->start_from(start, run_);
  parts_.engine.while_waiting([this] { fill_ahead(); });
  begin_trace();
}

// Ranks that have as many batches as the others are compared by their steps.
void Trainer::take_shards() {
  shards_ = parts_.gradients.shards();
  batches_ = parts_.gradients.batches();
  clock_.set_shards(shards_.shards == parts_.comm.size() ? 1 : batches_.own.count());
}

void Trainer::begin_trace() {
  if (parts_.trace == nullptr) return;
  Trace& trace = parts_.trace->trace();
  clock_.set_trace(trace);
  parts_.engine.set_trace(trace);
  parts_.comm.set_trace(trace);
  if (parts_.checkpoints != nullptr) parts_.checkpoints->set_trace(trace);
}

RunLength Trainer::length() const {
  if (parts_.spec.benchmark)
    return {parts_.spec.benchmark->warmup + parts_.spec.benchmark->repeat * parts_.spec.benchmark->steps, 0};
  const std::uint64_t rows =
      static_cast<std::uint64_t>(parts_.spec.batch) * static_cast<std::uint64_t>(run_.batches());
  const std::uint64_t per_epoch = (run_.samples + rows - 1) / rows;
  const std::uint64_t done =
      position_.epoch >= run_.epochs ? 0 : (run_.samples - position_.seen + rows - 1) / rows;
  const std::uint64_t later = position_.epoch >= run_.epochs ? 0 : run_.epochs - position_.epoch - 1;
  return {position_.step + done + later * per_epoch, run_.epochs};
}

Result<StepTotals> Trainer::forward_backward(Input input) {
  TRY(parts_.pipeline ? compute_in_stages(input) : compute_all(input));
  clock_.begin(StepClock::Part::wait);
  TRY(parts_.gradients.finish());
  clock_.begin(StepClock::Part::compute);
  return load(parts_.engine.spare_slots());
}

// What is drawn in the batches of an update differs, as in steps of their own.
std::uint64_t Trainer::draw_of(int number) const {
  const auto accumulate = static_cast<std::uint64_t>(run_.accumulate);
  return position_.step * accumulate + static_cast<std::uint64_t>(number) % accumulate;
}

// How many of them count.
Result<std::uint64_t> Trainer::take_rows(const Shard& rows, Input input) {
  clock_.begin(StepClock::Part::input);
  if (input == Input::fresh && !std::exchange(filled_ahead_, false)) fill(rows);
  TRY(train_filler_.state());
  clock_.begin(StepClock::Part::compute);
  return filled_;
}

// Those of the rank's last batch travel while they are computed.
std::function<void(std::size_t)> Trainer::bucket_sender(int number, Result<void>& sent) {
  const bool is_last = number + 1 == batches_.own.end;
  return [this, is_last, &sent](std::size_t bucket) {
    if (!is_last || !sent) return;
    clock_.begin(StepClock::Part::wait);
    sent = parts_.gradients.start(bucket);
    clock_.begin(StepClock::Part::compute);
  };
}

Result<void> Trainer::compute_all(Input input) {
  for (int number = batches_.own.begin; number < batches_.own.end; ++number) TRY(compute(number, input));
  return {};
}

// The gradients of one batch, and its totals.
Result<void> Trainer::compute(int number, Input input) {
  computing_ = number;
  const std::uint64_t counted = TRY(take_rows(shard(number, position_.seen), input));
  TRY(parts_.gradients.begin(number));
  Result<void> sent;
  const BatchResult result = parts_.engine.train_batch(draw_of(number), bucket_sender(number, sent));
  TRY(parts_.engine.status());
  TRY(std::move(sent));
  if (result.device) clock_.divide(*result.device);
  store_totals(result, counted);
  if (number + 1 != batches_.own.end) parts_.gradients.keep();
  return {};
}

// The same of all batches, with those that are under way in the other stages.
Result<void> Trainer::compute_in_stages(Input input) {
  const int batches = batches_.own.count();
  const StageRank rank = parts_.pipeline->rank();
  parts_.pipeline->links.begin_update(rank.is_first() ? 0 : batches);
  for (const PipelineStep& step : one_forward_one_backward(rank, batches))
    TRY(step.pass == PipelineStep::Pass::forward ? forward(step, input) : backward(step));
  return {};
}

Result<void> Trainer::forward(const PipelineStep& step, Input input) {
  const int number = batches_.own.begin + step.micro_batch;
  computing_ = number;
  in_flight_.resize(static_cast<std::size_t>(batches_.own.count()));
  in_flight_[static_cast<std::size_t>(step.micro_batch)] =
      TRY(take_rows(shard(number, position_.seen), input));
  parts_.engine.staged()->forward(draw_of(number), step.place);
  return parts_.engine.status();
}

// The last stage has losses and counts.
Result<void> Trainer::backward(const PipelineStep& step) {
  const int number = batches_.own.begin + step.micro_batch;
  TRY(parts_.gradients.begin(number));
  Result<void> sent;
  const BatchResult result =
      parts_.engine.staged()->backward(draw_of(number), step.place, bucket_sender(number, sent));
  TRY(parts_.engine.status());
  TRY(std::move(sent));
  store_totals(
      result, parts_.pipeline->rank().is_last() ? in_flight_[static_cast<std::size_t>(step.micro_batch)] : 0);
  if (number + 1 != batches_.own.end) parts_.gradients.keep();
  return {};
}

// What the rank was asked for counts however often it is told.
void Trainer::store_totals(const BatchResult& result, std::uint64_t rows) {
  for (const Requests& heard : {parts_.local_requests(), parts_.reporter.requests()}) {
    asked_.save = asked_.save || heard.save;
    asked_.stop = asked_.stop || heard.stop;
  }
  const Checkpointing* const checkpoints = parts_.checkpoints;
  asked_.save = asked_.save || (checkpoints != nullptr && checkpoints->wants_one());
  asked_.regroup = state_ && parts_.comm.elastic()->is_asked();
  store({.totals = {.loss_sum = result.loss_sum,
                    .correct = static_cast<double>(result.correct) / task_->answers_per_row(),
                    .rows = static_cast<double>(rows),
                    .generator_loss_sum = result.generator_loss_sum,
                    .targets = result.target_sums},
         .requests = asked_,
         .writing = checkpoints != nullptr && checkpoints->is_writing() ? 1 : 0},
        parts_.engine.spare_slots());
}

Shard Trainer::shard(int number, std::uint64_t seen) const {
  return step_shard(seen, run_.samples, static_cast<std::uint64_t>(parts_.spec.batch), number,
                    run_.batches());
}

// Of the step that begins where the run stands.
std::uint64_t Trainer::next_rows() const {
  return step_rows(position_.seen, run_.samples, static_cast<std::uint64_t>(parts_.spec.batch),
                   run_.batches());
}

void Trainer::fill(const Shard& shard) {
  announce_ahead();
  filled_ = train_filler_.fill(
      shard.count, [&](std::uint64_t i) { return split_.training_sample(epoch_order_(shard.first + i)); },
      AugmentationKey{parts_.spec.seed, position_.epoch}, rows_of(parts_.engine));
  announce_ahead();
}

// As many of the samples to come as there is room for, in the order in which fill() takes them, over the end
// of the epoch, too.
void Trainer::announce_ahead() {
  const auto batch = static_cast<std::uint64_t>(parts_.spec.batch);
  if (!announced_) announced_ = {position_.epoch, position_.seen, batches_.own.begin, epoch_order_};
  Announced& at = *announced_;
  while (train_filler_.free_rows() >= batch && (run_.epochs == 0 || at.epoch < run_.epochs)) {
    const Shard rows = shard(at.shard, at.seen);
    for (std::uint64_t i = rows.first; i < rows.first + rows.count; ++i)
      train_filler_.announce(split_.training_sample(at.order(i)),
                             AugmentationKey{parts_.spec.seed, at.epoch});
    if (++at.shard < batches_.own.end) continue;
    at.shard = batches_.own.begin;
    at.seen += step_rows(at.seen, run_.samples, batch, run_.batches());
    if (at.seen < run_.samples) continue;
    at.seen = 0;
    at.order = order_.epoch(++at.epoch);
  }
}

// Between two averages of local steps, the samples of other ranks count later.
void Trainer::count_left_out(std::uint64_t rows, const Totals& counted) {
  trained_ += rows;
  left_out_ += static_cast<double>(rows) - counted.rows;
}

// The first rank tells how many all ranks left out. Each rank names its own until every sample was read: then
// each of them has been named by one rank, and further epochs have the same ones on other ranks.
void Trainer::report_dropped() {
  const std::vector<std::string> own = train_filler_.take_dropped();
  if (std::exchange(trained_when_told_, trained_) < run_.samples) name_dropped(own, parts_.data.train);
  const std::uint64_t epoch = position_.seen == 0 ? position_.epoch : position_.epoch + 1;
  const std::string text =
      left_out_text(std::exchange(left_out_, 0), parts_.data.train, fmt::format("epoch {}", epoch));
  if (!text.empty()) parts_.reporter.note(text);
}

// The rows of the batch behind the one under way. Not beyond the epoch: what comes then may be an evaluation,
// and has another order.
void Trainer::fill_ahead() {
  const bool ends_step = computing_ + 1 == batches_.own.end;
  const std::uint64_t seen = position_.seen + (ends_step ? next_rows() : 0);
  if (seen >= run_.samples) return;
  fill(shard(ends_step ? batches_.own.begin : computing_ + 1, seen));
  filled_ahead_ = true;
}

Result<StepTotals> Trainer::step() {
  if (local_ && local_->is_local(position_)) return local_step();
  if (stale_) return stale_step();
  const auto batch = static_cast<double>(parts_.spec.batch);
  const std::uint64_t rows = next_rows();
  StepTotals sums;
  if (parts_.trace != nullptr) TRY(parts_.trace->before_step());
  const Done how = TRY(complete([&](SharedState::Attempt attempt) -> Result<void> {
    if (state_) TRY(state_->begin_step(attempt));
    sums = TRY(forward_backward(Input::fresh));
    return state_ ? state_->share_statistics(parts_.comm) : Result<void>{};
  }));
  if (how == Done::here) results_.step = sums;
  if (how == Done::here) change_world_after(sums);
  sums = results_.step;
  asked_ = {};
  TRY(check_loss(sums.totals));
  last_ = report_of_step(sums.totals);
  // A rank's gradient is its sum divided by the batch; the mean is over the rows of all ranks that count.
  // Damaged ones that were dropped do not; where all of them were, there is no gradient.
  const double counted = sums.totals.rows;
  if (how == Done::here) TRY(update(counted > 0 ? batch / counted : 0));
  clock_.step_done();
  advance(rows);
  return sums;
}

// Of the rows of this rank alone. The others hear of it when the ranks average; a rank without rows leaves
// its weights alone.
Result<StepTotals> Trainer::local_step() {
  const std::uint64_t rows = next_rows();
  if (parts_.trace != nullptr) TRY(parts_.trace->before_step());
  TRY(local_->begin());
  parts_.gradients.set_exchange(GradientExchange::Exchange::alone);
  const StepTotals own = TRY(forward_backward(Input::fresh));
  TRY(check_loss(own.totals));
  last_ = report_of_step({});
  if (own.totals.rows > 0) TRY(update(static_cast<double>(parts_.spec.batch) / own.totals.rows));
  local_->add(own);
  advance(rows);
  StepTotals sums;
  if (local_->ends_interval(position_) || evaluation_due()) {
    clock_.begin(StepClock::Part::wait);
    sums = TRY(local_->average());
    asked_ = {};
  }
  clock_.step_done();
  last_.totals = sums.totals;
  return sums;
}

// Before a step: what needs all ranks.
bool Trainer::wants_barrier() {
  return asked_.save || asked_.stop || (parts_.checkpoints != nullptr && parts_.checkpoints->is_due());
}

// Of this step, by all ranks whose gradients go to the servers as one sum.
std::uint64_t Trainer::rows_sent_together() const {
  std::uint64_t out = 0;
  for (const int rank : parts_.gradients.servers()->members())
    for (int batch = 0; batch < run_.accumulate; ++batch)
      out += shard(rank * run_.accumulate + batch, position_.seen).count;
  return out;
}

// How far a worker was ahead of the slowest, which is at most what the job allows.
void Trainer::tell_lead() {
  if (!stale_) return;
  const ServerClient& servers = *parts_.gradients.servers();
  parts_.reporter.keep_for_result("staleness",
                                  {{"bound", servers.staleness()}, {"most", servers.most_lead()}});
  parts_.reporter.note(
      fmt::format("staleness: a worker was {} steps ahead of the slowest at most, of {} that "
                  "the job allows",
                  servers.most_lead(), servers.staleness()));
}

// Its gradients go to the servers by themselves, however far the others are.
Result<StepTotals> Trainer::stale_step() {
  ServerClient& servers = *parts_.gradients.servers();
  const std::uint64_t rows = next_rows();
  if (parts_.trace != nullptr) TRY(parts_.trace->before_step());
  if (wants_barrier()) servers.ask_for_barrier();
  const StepTotals own = TRY(forward_backward(Input::fresh));
  // Of others on the node it is not known in time how many samples they dropped.
  const double together =
      servers.members().size() == 1 ? own.totals.rows : static_cast<double>(rows_sent_together());
  TRY(check_loss(own.totals));
  last_ = report_of_step({});
  TRY(update(together > 0 ? static_cast<double>(parts_.spec.batch) / together : 0,
             together / static_cast<double>(rows)));
  stale_->add(own);
  advance(rows);
  StepTotals sums;
  if (servers.is_at_barrier() || position_.seen == 0 || evaluation_due()) {
    clock_.begin(StepClock::Part::wait);
    sums = TRY(stale_->barrier());
    asked_ = {};
  }
  clock_.step_done();
  last_.totals = sums.totals;
  return sums;
}

Result<void> Trainer::check_loss(const Totals& totals) const {
  if (std::isfinite(totals.loss_sum) && std::isfinite(totals.generator_loss_sum)) return {};
  return fail(Error{.kind = ErrorKind::input,
                    // Without a sign: that of no number depends on the compiler.
                    .what = fmt::format("the loss is {} at step {} (epoch {}): training diverged",
                                        std::abs(totals.loss_sum + totals.generator_loss_sum),
                                        position_.step + 1, position_.epoch + 1),
                    .hint = hint_of_divergence()});
}

// No settings help where this run has not changed a weight yet.
std::string Trainer::hint_of_divergence() const {
  if (position_.step != first_step_)
    return "try a lower train.optimizer.lr or a longer train.schedule.warmup";
  if (first_step_ > 0)
    return "the checkpoint that this run started from has such weights already: remove it, so that the next "
           "run starts from an older one, or set another checkpoint.dir";
  return "no weight has been changed yet: look at the numbers of train.data and train.init-from";
}

// What the last update did, no later step tells.
Result<void> Trainer::check_result(const RunResult& result) const {
  for (const auto& [name, value] : result.figures.items())
    if (name.find("loss") != std::string::npos && value.is_number() && !std::isfinite(value.get<double>()))
      return fail(
          Error{.kind = ErrorKind::input,
                .what = fmt::format("{} is {} after the last step, {} (epoch {}): training diverged", name,
                                    std::abs(value.get<double>()), position_.step, position_.epoch),
                .hint = hint_of_divergence()});
  return {};
}

StepReport Trainer::report_of_step(const Totals& totals) const {
  return {.step = position_.step + 1,
          .epoch = position_.epoch + 1,
          .totals = totals,
          .learning_rate = learning_rate_.at(position_),
          .samples = next_rows()};
}

// By the gradients as they are, times `scale`. `share`: of the learning rate.
Result<void> Trainer::update(double scale, double share) {
  const bool by_servers = parts_.gradients.servers() != nullptr;
  const double clip = by_servers ? 1.0 : TRY(clip_factor(scale));
  const bool engine_clips = (by_servers || parts_.engine.clips_norm()) && parts_.spec.clip_norm;
  if (by_servers) clock_.begin(StepClock::Part::wait);
  return update_.apply({.learning_rate = last_.learning_rate * static_cast<float>(share),
                        .weight_decay = static_cast<float>(parts_.spec.optimizer.weight_decay),
                        .gradient_scale = static_cast<float>(scale * clip),
                        .updates = position_.step,
                        .clip_norm = engine_clips ? static_cast<float>(*parts_.spec.clip_norm) : 0});
}

// Of the norm of all gradients, as they are with this scale.
Result<double> Trainer::clip_factor(double scale) const {
  if (!parts_.spec.clip_norm || parts_.engine.clips_norm()) return 1.0;
  const bool is_divided = parts_.tensor != nullptr || parts_.pipeline;
  const double squares = is_divided ? TRY(parts_.gradients.square_sum()) : TRY(update_.squares());
  return clipping_factor(*parts_.spec.clip_norm, squares, scale);
}

void Trainer::advance(std::uint64_t rows) {
  ++position_.step;
  position_.seen += rows;
  if (position_.seen < run_.samples) return;
  position_.seen = 0;
  ++position_.epoch;
  epoch_order_ = order_.epoch(position_.epoch);
}

Result<void> Trainer::tell_and_save(const StepTotals& step) {
  TRY(parts_.reporter.step(last_));
  if (std::exchange(regrouped_, false)) parts_.reporter.went_on(position_.step);
  if (parts_.checkpoints == nullptr) return {};
  return parts_.checkpoints->after_step(
      parts_.engine, position_, step, parts_.reporter,
      differs() ? Checkpointing::Weights::own : Checkpointing::Weights::equal);
}

Result<void> Trainer::after_step(const StepTotals& step) {
  if (parts_.trace == nullptr) return tell_and_save(step);
  Result<void> done;
  Trace::timed(
      &parts_.trace->trace(), Trace::Track::training, "step", [&] { done = tell_and_save(step); },
      [] { return "report and checkpoint"; });
  TRY(std::move(done));
  return parts_.trace->after_step(position_.step);
}

// At the end of an epoch there is one anyway.
bool Trainer::evaluation_due() const {
  return parts_.spec.evaluate && position_.seen != 0 && position_.step % parts_.spec.evaluate->every == 0;
}

Result<void> Trainer::evaluate_within_epoch() {
  filled_ahead_ = false;
  TRY(task_->evaluate_within_epoch(last_));
  parts_.reporter.start_clock();
  return {};
}

// Figures of no sample would look like those of a training.
Result<void> Trainer::check_some_left() const {
  const bool trained = position_.step != first_step_;
  if (leads_ && trained && parts_.data.train.damaged == Damaged::dropped &&
      parts_.reporter.epoch_totals().rows == 0)
    return none_left("to train on");
  return {};
}

Result<void> Trainer::end_epoch() {
  filled_ahead_ = false;
  report_dropped();
  TRY(check_some_left());
  TRY(task_->end_epoch(last_));
  if (!task_->reached_target()) parts_.reporter.epoch_begins(position_.epoch + 1);
  parts_.reporter.start_clock();
  return {};
}

// A run that had reached its target when it ended is not to train on.
Result<void> Trainer::check_target_at_start() {
  if (!parts_.spec.has_target() || position_.epoch == 0 || position_.seen != 0) return {};
  TRY(task_->validate());
  if (!task_->reached_target() || position_.epoch >= run_.epochs) return {};
  const std::string why =
      fmt::format("{} was reached after {} epochs", parts_.spec.target_text(), position_.epoch);
  if (parts_.check_finished) TRY(parts_.check_finished(why));
  parts_.reporter.note("already finished: " + why);
  return {};
}

void Trainer::begin_mllog() {
  const TrainSpec& spec = parts_.spec;
  if (!spec.mllog) return;
  parts_.reporter.begin_mllog(
      {.benchmark = spec.model,
       .optimizer = std::string(spec.optimizer.optimizer.traits->name),
       .learning_rate = spec.optimizer.learning_rate,
       .accumulate = run_.accumulate,
       .global_batch = static_cast<std::uint64_t>(spec.batch) * static_cast<std::uint64_t>(run_.batches()),
       .seed = spec.seed,
       .train_samples = run_.samples,
       .eval_samples = split_.validation() > 0 ? split_.validation() : parts_.data.test.count,
       .target = spec.stop_at_accuracy});
}

Result<Ending> Trainer::run() {
  auto ended = train();
  return left_ ? leave() : ended;
}

Result<Ending> Trainer::train() {
  if (parts_.entered && TRY(enter(*parts_.entered, ElasticWorld::Cause::lost)) == Done::left)
    return Ending::left;
  if (state_ && !parts_.comm.elastic()->has_world())
    TRY(join());
  else
    TRY(check_target_at_start());
  begin_mllog();
  parts_.reporter.phase("training");
  parts_.reporter.start_clock();
  if (position_.epoch < run_.epochs && !task_->reached_target())
    parts_.reporter.epoch_begins(position_.epoch + 1);
  while (position_.epoch < run_.epochs && !task_->reached_target()) {
    if (!TRY(stays())) return Ending::left;
    const std::uint64_t rows = next_rows();
    const StepTotals done = TRY(step());
    count_left_out(rows, done.totals);
    task_->step_done();
    TRY(after_step(done));
    if (evaluation_due() && !done.requests.stop) TRY(evaluate_within_epoch());
    if (position_.seen == 0 && position_.epoch < run_.epochs) TRY(end_epoch());
    if (done.requests.stop && position_.epoch < run_.epochs) return stop();
  }
  return finish();
}

Result<Ending> Trainer::finish() {
  report_dropped();
  // Where an epoch's end reached the target, that end has looked, and the epoch's sums are gone.
  if (position_.seen != 0 || !task_->reached_target()) TRY(check_some_left());
  if (parts_.checkpoints != nullptr)
    TRY(parts_.checkpoints->begin_last(parts_.engine, position_, parts_.reporter));
  filled_ahead_ = false;
  const RunResult result = TRY(task_->finish(last_));
  TRY(check_result(result));
  bool told = false;
  TRY(end_together([&]() -> Result<void> {
    TRY(complete_checkpoint());
    if (!leads_ || std::exchange(told, true)) return {};
    tell_lead();
    parts_.reporter.result(position_, result);
    const bool solved = !parts_.spec.has_target() || task_->reached_target();
    parts_.reporter.ended(solved ? MlLog::Status::success : MlLog::Status::aborted, position_.epoch);
    return {};
  }));
  return Ending::finished;
}

// Of the state as it is: nothing is left to do where it has been begun already.
Result<void> Trainer::complete_checkpoint() {
  if (parts_.checkpoints == nullptr) return {};
  TRY(parts_.checkpoints->begin_last(parts_.engine, position_, parts_.reporter));
  return parts_.checkpoints->finish(parts_.reporter);
}

Result<Ending> Trainer::stop() {
  report_dropped();
  parts_.reporter.phase("saving");
  TRY(end_together([this] { return complete_checkpoint(); }));
  parts_.reporter.ended(MlLog::Status::aborted, position_.epoch);
  parts_.reporter.note(fmt::format("stopped on request after step {} ({} of {} samples of epoch {}){}",
                                   position_.step, position_.seen, run_.samples, position_.epoch + 1,
                                   parts_.spec.checkpoint.folder.empty()
                                       ? "; nothing was saved: checkpoint.dir is not set"
                                       : ", checkpoint saved"));
  return Ending::stopped;
}

}  // namespace dlrun::runtime
