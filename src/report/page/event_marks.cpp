#include "src/report/page/event_marks.hpp"

#include <algorithm>
#include <string>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/base/utc.hpp"

namespace dlrun::report {
namespace {

std::string text_of(const Json& event, const char* name) {
  const auto found = event.find(name);
  if (found == event.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : to_text(*found);
}

// "on c1: the reason"
std::string at_host(const Json& event, const char* reason) {
  return fmt::format("{}: {}", text_of(event, "host"), text_of(event, reason));
}

struct MarkRow {
  std::string_view event, kind;
  bool grave;  // shown before all others where there are too many
  std::string (*text)(const Json& event);
};
constexpr MarkRow kMarks[] = {
    {"failed", "failure", true,
     [](const Json& e) {
       return fmt::format("rank {} on {}: {}", text_of(e, "rank"), text_of(e, "host"), text_of(e, "reason"));
     }},
    {"node_failed", "failure", true, [](const Json& e) { return "node " + at_host(e, "reason"); }},
    {"unreachable", "failure", true, [](const Json& e) { return "node " + at_host(e, "reason"); }},
    {"hang", "failure", true,
     [](const Json& e) {
       return fmt::format("hang of rank {} on {}: {}", text_of(e, "rank"), text_of(e, "host"),
                          text_of(e, "reason"));
     }},
    {"signal", "stop", true, [](const Json& e) { return "signal " + text_of(e, "signal"); }},
    {"walltime", "stop", true,
     [](const Json& e) { return "end of the walltime: SIG" + text_of(e, "signal"); }},
    {"save_and_stop", "stop", true,
     [](const Json& e) {
       return fmt::format("asked to save and stop, {} s before the end", text_of(e, "seconds_left"));
     }},
    {"lost", "failure", true,
     [](const Json& e) {
       return fmt::format("lost ranks {} on {}: {}; {} are left", text_of(e, "ranks"), text_of(e, "host"),
                          text_of(e, "reason"), text_of(e, "ranks_left"));
     }},
    {"left", "note", true,
     [](const Json& e) {
       return fmt::format("ranks {} on {} left on request; {} are left", text_of(e, "ranks"),
                          text_of(e, "host"), text_of(e, "ranks_left"));
     }},
    {"joined", "note", true,
     [](const Json& e) {
       return fmt::format("ranks {} on {} joined after {} s; {} are there", text_of(e, "ranks"),
                          text_of(e, "host"), text_of(e, "seconds"), text_of(e, "ranks_left"));
     }},
    {"join_failed", "note", true, [](const Json& e) { return "no join of " + at_host(e, "reason"); }},
    {"went_on", "note", true,
     [](const Json& e) {
       return fmt::format("continued after {} s, with step {}", text_of(e, "seconds"), text_of(e, "step"));
     }},
    {"straggler", "note", true,
     [](const Json& e) {
       return fmt::format("rank {} on {} is slow: {}", text_of(e, "rank"), text_of(e, "host"),
                          text_of(e, "text"));
     }},
    {"straggler_over", "note", false,
     [](const Json& e) { return fmt::format("rank {} is not slow any more", text_of(e, "rank")); }},
    {"all_staged", "note", false,
     [](const Json& e) {
       const auto bytes = field<std::uint64_t>(e, "bytes", "events.jsonl").value_or(0);
       return fmt::format("staged {} in {} s", format_size(bytes), text_of(e, "seconds"));
     }},
    {"end_changed", "note", false, [](const Json& e) { return "the walltime ends at " + text_of(e, "end"); }},
    {"stood_still", "note", false,
     [](const Json& e) { return fmt::format("the head stood still for {} s", text_of(e, "seconds")); }},
    {"port_taken", "note", false,
     [](const Json& e) {
       return fmt::format("port {} of {} is taken by {}", text_of(e, "port"), text_of(e, "host"),
                          text_of(e, "by"));
     }},
};

class Marks {
 public:
  explicit Marks(const PageLimits& limits) : limits_(limits) {}

  void begin_link(int number) { link_ = number, attempt_ = 1, failed_ = false; }
  void take(const Json& event) {
    const std::string kind = text_of(event, "event");
    if (kind == "planned") return planned(event);
    if (kind == "ended") return ended(event);
    if (kind == "report") return reported(event);
    const auto row = std::find_if(std::begin(kMarks), std::end(kMarks),
                                  [&](const MarkRow& each) { return each.event == kind; });
    if (row == std::end(kMarks)) return;
    if (kind == "failed" && std::exchange(failed_, true)) return;  // victims of the first failure
    add(event, row->kind, row->text(event), row->grave);
  }
  Json json();

 private:
  struct Mark {
    Json json;
    bool grave;
  };
  void add(const Json& event, std::string_view kind, std::string text, bool grave) {
    Json when = seconds_of(event, "time");
    if (when.is_null()) return;
    marks_.push_back({{{"t", std::move(when)},
                       {"kind", kind},
                       {"link", link_},
                       {"attempt", attempt_},
                       {"text", std::move(text)}},
                      grave});
  }
  void planned(const Json& event) {
    attempt_ = field<int>(event, "attempt", "events.jsonl").value_or(1);
    failed_ = false;
    if (attempt_ > 1) return add(event, "retry", fmt::format("attempt {} begins", attempt_), true);
    if (link_ > 1) add(event, "resume", fmt::format("link {} begins", link_), true);
  }
  void ended(const Json& event) {
    const int code = field<int>(event, "exit_code", "events.jsonl").value_or(0);
    add(event, code == 0 ? "done" : "end", fmt::format("exit code {}: {}", code, text_of(event, "reason")),
        code != 0);
  }
  void reported(const Json& event) {
    const auto said = event.find("report");
    if (said == event.end() || !said->is_object()) return;
    if (said->contains("phase") && text_of(event, "rank") == "0")
      add(event, "phase", text_of(*said, "phase"), false);
    if (said->contains("saved")) saved(event, *said);
  }
  // Ranks that save together report the same state, and count once.
  void saved(const Json& event, const Json& said) {
    const std::string what = text_of(said, "saved");
    if (std::exchange(last_saved_, what) == what) return;
    checkpoints_.push_back({{"t", seconds_of(event, "time")},
                            {"what", what},
                            {"seconds", said.value("seconds", Json())},
                            {"held", said.value("held", Json())}});
  }
  Json checkpoints_json() const;

  const PageLimits& limits_;
  int link_ = 1, attempt_ = 1;
  bool failed_ = false;  // of this attempt
  std::string last_saved_;
  std::vector<Mark> marks_;
  std::vector<Json> checkpoints_;
};

Json Marks::json() {
  std::size_t left_out = 0;
  for (const bool grave : {false, true})
    for (std::size_t at = marks_.size(); at-- > 0 && marks_.size() > limits_.events;)
      if (marks_[at].grave == grave)
        marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(at)), ++left_out;
  Json marks = Json::array();
  for (Mark& mark : marks_) marks.push_back(std::move(mark.json));
  return {{"marks", std::move(marks)},
          {"marks_left_out", left_out},
          {"checkpoints", checkpoints_json()},
          {"checkpoints_reported", checkpoints_.size()}};
}

Json Marks::checkpoints_json() const {
  Json out = Json::array();
  const std::size_t count = std::min(checkpoints_.size(), limits_.checkpoints);
  for (std::size_t i = 0; i < count; ++i) out.push_back(checkpoints_[i * checkpoints_.size() / count]);
  return out;
}

}  // namespace

Json seconds_of(const Json& object, const char* name) {
  const auto when = parse_utc(text_of(object, name));
  return when ? Json(static_cast<double>(when->time_since_epoch().count()) / 1e3) : Json(nullptr);
}

Json marks_json(const std::vector<LinkEvents>& links, const PageLimits& limits) {
  Marks marks(limits);
  for (const LinkEvents& link : links) {
    marks.begin_link(link.number);
    for (const Json& event : link.events) marks.take(event);
  }
  return marks.json();
}

}  // namespace dlrun::report
