// See reporter.hpp.
#include "runtime/train/report/reporter.hpp"

#include <cmath>

#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::uint64_t steps_per_line = 50;  // of metrics.jsonl, which also has the first step
constexpr std::size_t kUnwritten = 4;         // lines: the first rank is ahead by an operation at most
constexpr Seconds between_progress_of_rank_0{0.25}, between_progress_of_others{1};

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double rounded(double value, double parts) {
  return std::round(value * parts) / parts;
}

// Steps whose totals are told with those of a later one have none.
bool has_totals(const StepWindow& window) {
  return window.totals.rows > 0;
}

}  // namespace

double rounded_figure(double value) {
  return rounded(value, 1e6);
}

Result<void> Reporter::open_files(const std::filesystem::path& folder, std::uint64_t resumed_at) {
  if (rank_ != 0) return {};
  metrics_ = TRY(MetricsLog::open(folder, resumed_at));
  events_ = TRY(EventFile::create(folder, wall_seconds(), resumed_at));
  return {};
}

Result<void> Reporter::lead(const std::filesystem::path& folder, std::uint64_t step) {
  rank_ = 0;
  std::deque<Line> lines = std::exchange(unwritten_, {});
  TRY(open_files(folder, lines.empty() ? step : lines.front().step - 1));
  for (Line& line : lines) TRY(write(std::move(line.json), line.scalars));
  return {};
}

void Reporter::set_unit(const SampleUnit& unit) {
  unit_ = unit;
  rate_tag_ = "train/" + unit.key();
}

void Reporter::phase(std::string_view what) {
  control_.send(Json{{"phase", what}}, ControlChannel::Importance::kept);
}

void Reporter::note_mllog(const MlLog::Lines& lines) {
  for (const std::string& each : lines) note(each);
}

void Reporter::begin_mllog(const MlLogFacts& facts) {
  mllog_.emplace(wall_seconds);
  const Seconds before = std::chrono::steady_clock::now() - begin_;
  note_mllog(mllog_->begin(facts, wall_seconds() - before.count()));
}

void Reporter::epoch_begins(std::uint64_t epoch) {
  if (mllog_) note_mllog(mllog_->train(epoch));
}

void Reporter::evaluation_begins(std::uint64_t epoch) {
  if (mllog_) note_mllog(mllog_->evaluate(epoch));
}

void Reporter::ended(MlLog::Status status, std::uint64_t epochs) {
  if (mllog_) note_mllog(mllog_->end(status, epochs));
}

void Reporter::data(std::string_view fingerprint, std::uint64_t samples) {
  if (rank_ == 0)
    control_.send(Json{{"data", {{"fingerprint", fingerprint}, {"samples", samples}}}},
                  ControlChannel::Importance::kept);
}

void Reporter::training(int shards, std::string_view job, std::string_view no_joins) {
  if (rank_ != 0) return;
  Json told{{"shards", shards}, {"job", job}};
  if (!no_joins.empty()) told["no_joins"] = no_joins;
  control_.send(Json{{"training", std::move(told)}}, ControlChannel::Importance::kept);
}

void Reporter::stop_leading() {
  rank_ = -1;
  metrics_.reset();
  events_.reset();
}

void Reporter::note(std::string_view line) {
  if (rank_ != 0) return;
  // It is news: it must not wait in a buffer while an epoch passes.
  auto written = write_all(STDOUT_FILENO, fmt::format("{}\n", line), "the standard output");
  if (!written && output_) output_ = std::move(written);
}

Json Reporter::line(const StepReport& report, const StepWindow& window) const {
  Json out{{"step", report.step},
           {"steps", length_.steps},
           {"epoch", report.epoch},
           {"epochs", length_.epochs},
           {unit_.key(), rounded(rate(window), 10)},
           {"learning_rate", rounded(report.learning_rate, 1e9)},
           {"time", rounded(wall_seconds(), 1e3)}};
  if (accuracy_ == Accuracy::told) out["accuracy"] = rounded(window.totals.accuracy(), 1e6);
  for (const LossColumn& loss : losses_) out[loss.key] = rounded_figure((window.totals.*loss.value)());
  return out;
}

Result<void> Reporter::step(const StepReport& report) {
  const Ticks now = std::chrono::steady_clock::now();
  recent_.add(report.totals, now - last_step_);
  epoch_.add(report.totals, now - last_step_);
  last_step_ = now;
  samples_ += report.totals.rows;
  if (!std::exchange(first_step_done_, true))
    note(fmt::format("first step done {:.3f} s after the start of rank 0", Seconds(now - begin_).count()));
  if (now - last_sent_ >= (rank_ == 0 ? between_progress_of_rank_0 : between_progress_of_others)) {
    last_sent_ = now;
    send_progress(rank_ == 0 && has_totals(recent_) ? line(report, recent_) : Json{{"step", report.step}});
  }
  line_due_ = line_due_ || report.step == 1 || report.step % steps_per_line == 0;
  return line_due_ && has_totals(recent_) ? write_window(report) : Result<void>{};
}

void Reporter::send_progress(Json line) {
  if (const auto shares = clock_ != nullptr ? clock_->take() : std::nullopt) {
    line["input"] = rounded(shares->input, 1e7);
    line["compute"] = rounded(shares->compute, 1e7);
    line["wait"] = rounded(shares->wait, 1e7);
  }
  if (rank_ == 0) line["samples"] = samples_;
  control_.send(line, ControlChannel::Importance::progress);
}

Result<void> Reporter::write(Json line, std::span<const Scalar> scalars) {
  const double now = line.value("time", wall_seconds());  // a line that waited has the time of its step
  line["time"] = rounded(now, 1e3);
  const auto step = line["step"].get<std::uint64_t>();
  if (!metrics_ || !events_) {
    unwritten_.push_back({step, std::move(line), {scalars.begin(), scalars.end()}});
    // A step has two lines where an epoch ends: they go together, as a file is cut by steps.
    const std::uint64_t oldest = unwritten_.front().step;
    if (unwritten_.size() > kUnwritten)
      while (!unwritten_.empty() && unwritten_.front().step == oldest) unwritten_.pop_front();
    return {};
  }
  TRY(metrics_->write(line));
  return events_->write(step, now, scalars);
}

Result<void> Reporter::write_window(const StepReport& report) {
  std::vector<Scalar> scalars = {{rate_tag_, static_cast<float>(rate(recent_))},
                                 {"train/learning_rate", report.learning_rate}};
  if (accuracy_ == Accuracy::told)
    scalars.push_back({"train/accuracy", static_cast<float>(recent_.totals.accuracy())});
  for (const LossColumn& loss : losses_)
    scalars.push_back({loss.tag, static_cast<float>((recent_.totals.*loss.value)())});
  TRY(write(line(report, recent_), scalars));
  recent_ = {};
  line_due_ = false;
  return {};
}

void Reporter::add_part_of_epoch(Json& line, std::uint64_t last_step) const {
  if (epoch_from_ > 0) line["epoch_steps"] = {epoch_from_, last_step};
}

std::string Reporter::part_of_epoch(std::uint64_t last_step) const {
  return epoch_from_ > 0 ? fmt::format(" (steps {}-{})", epoch_from_, last_step) : std::string();
}

Result<void> Reporter::write_figures(const StepReport& last, const EpochReport& report) {
  Json record = {{"step", last.step}, {"epoch", last.epoch}};
  record.update(report.figures);
  if (report.figures.contains("epoch_loss")) add_part_of_epoch(record, last.step);
  std::vector<Scalar> scalars;
  for (const auto& [tag, value] : report.scalars) scalars.push_back({tag, static_cast<float>(value)});
  return write(std::move(record), scalars);
}

Result<void> Reporter::epoch(const StepReport& last, const EpochReport& report) {
  if (recent_.totals.rows > 0) TRY(write_window(last));
  TRY(write_figures(last, report));
  note(fmt::format("epoch {}/{}{}  {}  {:.0f} {}/s  {:.1f} s", last.epoch, length_.epochs,
                   part_of_epoch(last.step), report.text, rate(epoch_), unit_.name, epoch_.time.count()));
  if (mllog_) note_mllog(mllog_->evaluated(last.epoch, report.accuracy));
  end_epoch();
  return {};
}

Result<void> Reporter::evaluation(const StepReport& last, const EpochReport& report) {
  if (recent_.totals.rows > 0) TRY(write_window(last));
  TRY(write_figures(last, report));
  note(fmt::format("step {}  {}", last.step, report.text));
  return {};
}

void Reporter::went_on(std::uint64_t step) {
  if (rank_ == 0) control_.send(Json{{"went_on", step}}, ControlChannel::Importance::kept);
}

void Reporter::saved(std::uint64_t step, Seconds took, Seconds held) {
  control_.send(
      Json{{"saved", step}, {"seconds", rounded(took.count(), 1e3)}, {"held", rounded(held.count(), 1e3)}},
      ControlChannel::Importance::kept);
}

void Reporter::send_result(Json figures) {
  figures.update(facts_);
  control_.send(Json{{"result", std::move(figures)}}, ControlChannel::Importance::kept);
}

void Reporter::result(const Position& position, const RunResult& result) {
  if (rank_ != 0) return;
  Json figures = result.figures;
  figures["steps"] = position.step;
  figures["epochs"] = position.epoch;
  send_result(std::move(figures));
  if (!result.text.empty()) note(result.text);
}

void Reporter::benchmark(const Json& figures) {
  if (rank_ == 0) send_result(figures);
}

}  // namespace dlrun::runtime
