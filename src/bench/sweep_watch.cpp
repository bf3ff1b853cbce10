#include "src/bench/sweep_watch.hpp"

#include "src/record/stop_request.hpp"

namespace dlrun::bench {

SweepWatch::SweepWatch(OpenBench& open) : open_(open), told_(open.bench.points.size(), false) {
  if (open.spec().stop_early) early_stop_.emplace(open);
}

Result<std::vector<std::size_t>> SweepWatch::update() {
  TRY(collect_sweep(open_));
  if (early_stop_) TRY(stop_the_worse());
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < told_.size(); ++i)
    if (!told_[i] && bench::is_over(open_.bench.points[i].status)) {
      told_[i] = true;
      out.push_back(i);
    }
  return out;
}

bool SweepWatch::is_over() const {
  std::size_t over = count_not_submitted(open_.bench);
  for (const Point& point : open_.bench.points) over += bench::is_over(point.status) ? 1 : 0;
  return over == open_.bench.points.size();
}

// Those that are over are known before the others are judged.
Result<void> SweepWatch::stop_the_worse() {
  const std::vector<Point>& points = open_.bench.points;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (bench::is_over(points[i].status) && !told_[i]) early_stop_->know(i);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].status != PointStatus::running) continue;
    const auto why = early_stop_->why_stopped(i);
    if (!why) continue;
    TRY(note_stopped_early(open_.folder, points[i], *why));
    TRY(job::request_stop(open_.folder / points[i].run, job::RunStop::save));
  }
  return {};
}

}  // namespace dlrun::bench
