// A world for the head, without processes, streams and clocks: it keeps the time and the timers, gives events
// to a Head, and remembers every action. Its agents say only what a test lets them say.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/run/head.hpp"

namespace dlrun::job {

namespace to = protocol::to_agent;
namespace from = protocol::from_agent;

class World {
 public:
  /// A plan of so many nodes n1, n2, ... with so many ranks on each.
  static plan::Plan plan_of(int nodes, int ranks_per_node);

  explicit World(plan::Plan plan, HeadSettings settings = {.launcher = "ssh", .own_host = "login"});

  // What happens.
  void happen(Event event);
  void connect(int node) { happen(event::Connected{NodeIndex(node)}); }
  template <class Message>
  void say(int node, Message message) {
    happen(event::Received{NodeIndex(node), std::move(message)});
  }
  void ready(int node) {
    say(node, from::Ready{.pid = 100 + node, .version = kThisVersion, .protocol = protocol::kVersion});
  }
  void close(int node, std::string reason = {}, std::string last_words = {}) {
    happen(event::Closed{NodeIndex(node), std::move(reason), std::move(last_words)});
  }
  void signal(int number, SignalSender sender = SignalSender::own_user) {
    happen(event::Signal{{number, sender}});
  }
  /// Time passes; timers fire when they are due.
  void pass(double seconds);
  /// The same, and every agent that works says each second that it lives.
  void live(double seconds);

  // The usual ways.
  void arrive();  // all agents come and are ready
  void start();   // and their ranks run
  void start_rank(int rank);
  void exit_rank(int rank, int code = 0, int signal = 0);
  void fail_rank(int rank, int code, std::string reason);
  void end_node(int node);  // clean, done, closed
  void end_well();          // all ranks with 0, all nodes

  // What came of it.
  template <class Kind>
  std::vector<Kind> actions() const {
    std::vector<Kind> out;
    for (const Action& action : actions_)
      if (const auto* one = std::get_if<Kind>(&action)) out.push_back(*one);
    return out;
  }
  /// The messages of a kind that a node was sent.
  template <class Message>
  std::vector<Message> sent(int node) const {
    std::vector<Message> out;
    for (const action::Send& send : actions<action::Send>())
      if (const auto* message = std::get_if<Message>(&send.message))
        if (std::count(send.nodes.begin(), send.nodes.end(), NodeIndex(node)) > 0) out.push_back(*message);
    return out;
  }
  bool finished() const { return !actions<action::Finish>().empty(); }
  bool closed(int node) const;
  std::vector<std::string> notes() const;
  std::vector<std::string> phases() const;
  /// Events of this name for events.jsonl.
  std::vector<Json> recorded(const std::string& name) const;
  void forget() { actions_.clear(); }
  Outcome outcome(DriverEnd end = {}) { return head_.conclude(end, now_); }
  Head& head() { return head_; }
  Ticks now() const { return now_; }

 private:
  static const std::string kThisVersion;

  plan::Plan plan_;
  Ticks now_{std::chrono::hours(1)};
  Head head_;
  std::vector<Action> actions_;
  std::multimap<Ticks, Timer> timers_;
};

}  // namespace dlrun::job
