// See trace_file.hpp.
#include "runtime/train/trace_file.hpp"

#include <array>

#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

constexpr int kQuestions = 10;

double now() {
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string_view name_of(Trace::Track track) {
  static constexpr std::array<std::string_view, 3> names{"training", "communication", "checkpoint"};
  return names[static_cast<std::size_t>(track)];
}

Json name_event(const char* what, int rank, int thread, std::string_view name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}};
}

Result<void> answer(Communicator& comm, int rank) {
  for (int i = 0; i < kQuestions; ++i) {
    std::byte question{};
    TRY(comm.receive(std::span(&question, 1), rank));
    const double time = now();
    TRY(comm.send(std::as_bytes(std::span(&time, 1)), rank));
  }
  return {};
}

Result<ClockOffset> ask(Communicator& comm) {
  ClockOffset best{.offset = Seconds(0), .error = Seconds(1e9)};
  for (int i = 0; i < kQuestions; ++i) {
    const std::byte question{};
    double theirs = 0;
    const double asked = now();
    TRY(comm.send(std::span(&question, 1), 0));
    TRY(comm.receive(std::as_writable_bytes(std::span(&theirs, 1)), 0));
    const double half = (now() - asked) / 2;
    if (Seconds(half) < best.error) best = {.offset = Seconds(theirs - asked - half), .error = Seconds(half)};
  }
  return best;
}

}  // namespace

Result<ClockOffset> clock_offset(Communicator& comm) {
  if (comm.rank() != 0) return ask(comm);
  for (int rank = 1; rank < comm.size(); ++rank) TRY(answer(comm, rank));
  return ClockOffset{};
}

Json trace_json(const std::vector<Trace::Span>& spans, const TraceOwner& owner) {
  const auto microseconds = [&](Ticks when) {
    return (Seconds(when.time_since_epoch()) + owner.clock.offset).count() * 1e6;
  };
  Json events = Json::array();
  events.push_back(
      name_event("process_name", owner.rank, 0, fmt::format("rank {} on {}", owner.rank, owner.host)));
  for (const auto track : {Trace::Track::training, Trace::Track::communication, Trace::Track::checkpoint})
    events.push_back(name_event("thread_name", owner.rank, static_cast<int>(track), name_of(track)));
  for (const Trace::Span& span : spans)
    events.push_back({{"ph", "X"},
                      {"name", span.name},
                      {"cat", span.category},
                      {"pid", owner.rank},
                      {"tid", static_cast<int>(span.track)},
                      {"ts", microseconds(span.begin)},
                      {"dur", Seconds(span.end - span.begin).count() * 1e6}});
  return {{"traceEvents", std::move(events)},
          {"displayTimeUnit", "ms"},
          {"otherData",
           {{"clock_offset_us", owner.clock.offset.count() * 1e6},
            {"clock_error_us", owner.clock.error.count() * 1e6}}}};
}

}  // namespace dlrun::runtime
