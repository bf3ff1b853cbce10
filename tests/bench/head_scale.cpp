// head_scale: the real head, the real codec and so many simulated agents in one process and one thread. The
// streams between them are strings, so no limit of descriptors counts and no kernel; what the head's side
// costs (reading messages, deciding, writing messages) is measured apart from what the agents' side costs.
// Usage: head_scale PLAN.json SECONDS FENCE_BYTES star|tree, the plan as `dlrun plan --json` prints it, and
// which way the fence goes; the figures are printed as one JSON object. tests/bench/head_scale runs it and
// makes the table.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <malloc.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/overloaded.hpp"
#include "src/base/version.hpp"
#include "src/plan/slice_texts.hpp"
#include "src/protocol/codec.hpp"
#include "src/run/head.hpp"
#include "tests/bench/relay_fence.hpp"

namespace dlrun::job {
namespace {

namespace from = protocol::from_agent;

constexpr int kBatch = 256;          // nodes whose messages are in memory at one time
constexpr int kAgentsThatRead = 64;  // decode the largest messages, which are the same for all

// Since begin_peak(): what reading the plan's JSON needed is not the head's.
double peak_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0; word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  return 0;
}

void begin_peak() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;
}

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "head_scale: error: %s\n", why.c_str());
  std::exit(1);
}

// Both sides of the streams.
class Simulation {
 public:
  Simulation(PlanPtr plan, Collectives collectives)
      : plan_(std::move(plan)), ranks_of_(plan_->nodes.size()), decoders_(plan_->nodes.size()) {
    for (const plan::RankPlan& rank : plan_->ranks)
      ranks_of_[static_cast<std::size_t>(rank.node.get())].push_back(rank.rank);
    const double began = cpu_seconds();
    head_.emplace(
        plan_, HeadSettings{.launcher = "simulated", .collectives = collectives, .own_host = "here"}, now_);
    deliver(event::Begun{});
    head_cpu_ += cpu_seconds() - began;
  }

  int nodes() const { return static_cast<int>(plan_->nodes.size()); }
  bool has_prolog() const { return !plan_->prolog.empty(); }
  int claiming_node() const { return plan_->ranks.front().node.get(); }
  const std::vector<Rank>& ranks_of(int node) const { return ranks_of_[static_cast<std::size_t>(node)]; }

  void connect_all() {
    const double began = cpu_seconds();
    for (int node = 0; node < nodes(); ++node) deliver(event::Connected{NodeIndex(node)});
    head_cpu_ += cpu_seconds() - began;
  }

  // Every node says what `speak(node, say)` makes it say; the head reads it, and does what follows.
  template <class Speak>
  void all_say(const Speak& speak) {
    std::vector<std::string> bytes(kBatch);
    for (int first = 0; first < nodes(); first += kBatch) {
      const int end = std::min(first + kBatch, nodes());
      for (int node = first; node < end; ++node) {
        std::string& out = bytes[static_cast<std::size_t>(node - first)];
        out.clear();
        speak(node, [&](const protocol::FromAgent& message) { out += encode(protocol::encode(message)); });
      }
      const double began = cpu_seconds();
      for (int node = first; node < end; ++node) read(node, bytes[static_cast<std::size_t>(node - first)]);
      head_cpu_ += cpu_seconds() - began;
    }
  }

  void close_all() {
    const double began = cpu_seconds();
    for (int node = 0; node < nodes(); ++node) deliver(event::Closed{NodeIndex(node), {}, {}});
    head_cpu_ += cpu_seconds() - began;
  }

  void pass(Seconds time) {
    const Ticks until = now_ + std::chrono::duration_cast<Ticks::duration>(time);
    const double began = cpu_seconds();
    while (!timers_.empty() && timers_.begin()->first <= until) {
      const Timer timer = timers_.begin()->second;
      now_ = std::max(now_, timers_.begin()->first);
      timers_.erase(timers_.begin());
      deliver(event::Woken{timer});
    }
    now_ = until;
    head_cpu_ += cpu_seconds() - began;
  }

  // The head's processor time since the last call.
  double take_cpu() { return std::exchange(head_cpu_, 0.0); }
  double take_bytes() { return static_cast<double>(std::exchange(bytes_out_, std::size_t{0})); }
  bool finished() const { return finished_; }
  std::size_t lines() const { return lines_; }
  std::size_t told(const std::string& type) const { return told_.contains(type) ? told_.at(type) : 0; }
  Outcome outcome() { return head_->conclude({}, now_); }

 private:
  void read(int node, const std::string& bytes) {
    MessageDecoder& decoder = decoders_[static_cast<std::size_t>(node)];
    decoder.add(bytes);
    for (;;) {
      auto message = decoder.next();
      if (!message) give_up(message.error().text());
      if (!*message) return;
      auto typed = protocol::decode_from_agent(std::move(**message));
      if (!typed) give_up(typed.error().text());
      deliver(event::Received{NodeIndex(node), std::move(*typed)});
    }
  }

  void deliver(Event event) {
    for (Action& action : head_->on(std::move(event), now_)) perform(action);
  }

  void perform(Action& action) {
    std::visit(Overloaded{[&](const action::Send& wanted) { send(wanted); },
                          [&](const action::SendSlices& wanted) { send_slices(wanted); },
                          [&](const action::WakeAt& wake) { timers_.emplace(wake.when, wake.timer); },
                          [&](const action::ShowLines& shown) { lines_ += shown.lines.size(); },
                          [&](const action::Record& record) { recorded_ += to_text(record.event).size(); },
                          [&](const action::Finish&) { finished_ = true; }, [](const auto&) {}},
               action);
  }

  void send(const action::Send& wanted) {
    const std::string bytes = encode(protocol::encode(wanted.message));
    bytes_out_ += bytes.size() * wanted.nodes.size();
    agents_read(bytes, wanted.nodes.size());
  }

  void send_slices(const action::SendSlices& wanted) {
    const plan::SliceTexts slices(*plan_);
    for (int node = 0; node < nodes(); ++node) {
      const std::string bytes = encode(protocol::encode(protocol::ToAgent(protocol::to_agent::Slice{
          .json = slices.of(NodeIndex(node)), .heartbeat = true, .input_rank = wanted.input_rank})));
      bytes_out_ += bytes.size();
      agents_read(bytes, 1);
    }
  }

  // The agents' side of a message that `agents` of them get; its time is not the head's.
  void agents_read(const std::string& bytes, std::size_t agents) {
    const double began = cpu_seconds();
    for (std::size_t i = 0; i < std::min<std::size_t>(agents, bytes.size() > 4096 ? 1 : kAgentsThatRead);
         ++i) {
      MessageDecoder decoder;
      decoder.add(bytes);
      auto message = decoder.next();
      if (!message || !*message) give_up("the head sent no whole message");
      auto typed = protocol::decode_to_agent(std::move(**message));
      if (!typed) give_up(typed.error().text());
      if (i == 0) told_[std::string(protocol::name_of(*typed))] += agents;
    }
    head_cpu_ -= cpu_seconds() - began;
  }

  PlanPtr plan_;
  std::vector<std::vector<Rank>> ranks_of_;
  std::vector<MessageDecoder> decoders_;
  std::optional<Head> head_;
  Ticks now_{std::chrono::hours(1)};
  std::multimap<Ticks, Timer> timers_;
  double head_cpu_ = 0;
  std::size_t bytes_out_ = 0, lines_ = 0, recorded_ = 0;
  std::map<std::string, std::size_t> told_;
  bool finished_ = false;
};

void expect(bool holds, const std::string& what) {
  if (!holds) give_up("not as expected: " + what);
}

Json start(Simulation& run, std::size_t ranks) {
  run.connect_all();
  run.all_say([](int node, const auto& say) {
    say(from::Ready{.pid = 1000 + node, .version = std::string(kVersion), .protocol = protocol::kVersion});
  });
  if (run.told("claim") > 0)  // the node of the rendezvous port
    run.all_say([&](int node, const auto& say) {
      if (node == run.claiming_node()) say(from::PortsClaimed{});
    });
  const double agents = run.take_cpu(), bytes = run.take_bytes();
  if (run.has_prolog())
    run.all_say([](int, const auto& say) { say(from::PrologEnded{.seconds = Seconds(1), .secrets = {}}); });
  run.all_say([&](int node, const auto& say) {
    for (const Rank rank : run.ranks_of(node))
      say(from::Started{
          .rank = rank, .pid = 2000, .program = "/usr/bin/python3.11", .processors = {0, 1, 2, 3}});
  });
  expect(run.told("slice") == static_cast<std::size_t>(run.nodes()), "every node has a slice");
  const double started = run.take_cpu();
  return {{"agents_s", agents},
          {"ranks_s", started},
          {"total_s", agents + started},
          {"slice_bytes_per_node", bytes / run.nodes()},
          {"ranks", ranks}};
}

// Agents that others call say where; the head passes it on.
void build_tree(Simulation& run) {
  const RelayTree tree(run.nodes());
  run.all_say([&](int node, const auto& say) {
    if (!tree.children(NodeIndex(node)).empty())
      say(from::RelayPort{.port = 40000, .addresses = {"10.0.0.1", "fe80::1"}});
  });
  expect(run.told("relay_parent") == static_cast<std::size_t>(run.nodes()) - 1, "every node has a parent");
}

Json fence(Simulation& run, std::size_t bytes_per_rank) {
  run.all_say([&](int node, const auto& say) {
    say(from::Allgather{.key = "fence 1",
                        .blob = std::string(bytes_per_rank * run.ranks_of(node).size(), 'x')});
  });
  expect(run.told("allgathered") == static_cast<std::size_t>(run.nodes()), "every node has all blobs");
  const double seconds = run.take_cpu(), out = run.take_bytes();
  return {{"head_s", seconds},
          {"head_ms_per_node", seconds * 1e3 / run.nodes()},
          {"bytes_to_each_node", out / run.nodes()},
          {"bytes_out", out}};
}

Json output(Simulation& run, int seconds) {
  constexpr int kLinesPerSecond = 10;
  const std::size_t before = run.lines();
  for (int tick = 0; tick < seconds * kLinesPerSecond; ++tick) {
    run.all_say([&](int node, const auto& say) {
      for (const Rank rank : run.ranks_of(node))
        say(from::Output{
            .rank = rank,
            .text = fmt::format("step {} loss 0.{:04} 312 images/s\n", tick, rank.get() % 9973)});
      if (tick % kLinesPerSecond == 0) say(from::Alive{});
    });
    run.pass(Seconds(1.0 / kLinesPerSecond));
  }
  const double cpu = run.take_cpu();
  const double lines = static_cast<double>(run.lines() - before);
  return {{"lines", lines}, {"head_s", cpu}, {"cores", cpu / seconds}, {"us_per_line", cpu * 1e6 / lines}};
}

Json end(Simulation& run) {
  const int failing = run.nodes() / 2;
  const Rank first = run.ranks_of(failing).front();
  run.all_say([&](int node, const auto& say) {
    if (node != failing) return;
    say(from::Exited{.rank = first, .code = 3, .signal = 0, .text = "exit code 3"});
    say(from::Failed{.rank = first, .code = 3, .reason = "exit code 3"});
  });
  run.pass(Seconds(0.6));
  expect(run.told("stop") == static_cast<std::size_t>(run.nodes()), "every node is told to stop");
  run.all_say([&](int node, const auto& say) {
    say(from::Signalled{15});
    for (const Rank rank : run.ranks_of(node))
      if (rank != first)
        say(from::Exited{.rank = rank, .code = 0, .signal = 15, .text = "killed by SIGTERM (15)"});
    say(from::Clean{});
    say(from::Done{});
  });
  run.close_all();
  expect(run.finished(), "the head has finished");
  const Outcome outcome = run.outcome();
  expect(outcome.exit_code == 3 && outcome.first_failure && outcome.first_failure->rank == first,
         "the verdict");
  return {{"head_s", run.take_cpu()}};
}

Result<plan::Plan> load_plan(const std::string& file) {
  return plan::plan_from_json(TRY(parse_json(TRY(read_file(file)), file)));
}

int simulate(const std::string& file, int seconds, std::size_t fence_bytes, Collectives collectives) {
  auto plan = load_plan(file);
  if (!plan) give_up(plan.error().text());
  begin_peak();
  plan->mpi = plan::MpiProtocol::pmix;
  plan->limits.lost_after = Seconds(30);
  plan->limits.no_output = plan->limits.no_progress = Seconds(0);
  const double before = peak_megabytes();
  const std::size_t ranks = plan->ranks.size();
  Simulation run(std::make_shared<const plan::Plan>(std::move(*plan)), collectives);
  Json out{{"nodes", run.nodes()}, {"ranks", ranks}, {"megabytes_before", before}};
  out["start"] = start(run, ranks);
  out["megabytes_started"] = peak_megabytes();
  out["output"] = output(run, seconds);
  out["megabytes_output"] = peak_megabytes();
  if (collectives == Collectives::by_tree) build_tree(run);
  if (collectives == Collectives::by_head) out["fence"] = fence(run, fence_bytes);
  out["tree_s"] = run.take_cpu();
  out["end"] = end(run);
  out["megabytes"] = peak_megabytes();
  if (collectives == Collectives::by_tree)
    out["fence"] = relay_fence(run.nodes(), fence_bytes * ranks / static_cast<std::size_t>(run.nodes()));
  std::printf("%s\n", to_text(out).c_str());
  return 0;
}

}  // namespace
}  // namespace dlrun::job

int main(int count, char** words) {
  const std::string fence = count == 5 ? words[4] : "";
  if (fence != "star" && fence != "tree") {
    std::fprintf(stderr, "usage: head_scale PLAN.json SECONDS FENCE_BYTES star|tree\n");
    return 64;
  }
  using dlrun::job::Collectives;
  return dlrun::job::simulate(words[1], std::atoi(words[2]), static_cast<std::size_t>(std::atol(words[3])),
                              fence == "tree" ? Collectives::by_tree : Collectives::by_head);
}
