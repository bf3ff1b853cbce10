// Checker: the course of checking nodes before ranks run on them, as a pure reactor: what agents say and the
// time go in, messages for agents come out. Every node is asked for its time and its own checks as soon as it
// has an agent; then the nodes try to reach each other, and send to each other in rounds of pairs. Nodes that
// were slow are tried again alone, beside nothing else, before they are called so. With level full the others
// run allreduces in ever smaller groups then (bisection.hpp). It knows no stream and no launcher, and an
// agent that does not answer holds nobody up for long.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/health/bisection.hpp"
#include "src/health/report.hpp"
#include "src/plan/plan.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::job {

class Checker {
 public:
  struct Send {
    std::vector<NodeIndex> nodes;
    protocol::ToAgent message;
  };
  using Sends = std::vector<Send>;
  struct Now {
    Ticks ticks;
    Seconds wall{0};  // since 1970
  };

  /// The nodes are those of the plan. `token`: by which nodes let each other in.
  Checker(const plan::Plan& plan, health::Level level, std::string directory, std::string token, Ticks began);

  /// What happens; each gives what is to be sent.
  Sends no_agent(NodeIndex node, const std::string& why, Now now, health::FaultOf of = health::FaultOf::node);
  Sends said(NodeIndex node, const protocol::FromAgent& message, Now now);
  /// Time has passed: to be called a few times per second.
  Sends passed(Now now);

  bool done() const { return stage_ == Stage::done; }
  /// "checking 64 nodes: 12 have answered".
  std::string phase() const;
  health::Report report(Ticks now) const;

 private:
  enum class Stage { measuring, reaching, rounds, confirming, bisecting, done };
  struct Node {
    std::string host, name;     // its host name, and what others reach it by
    std::string no_agent = {};  // why
    health::FaultOf fault_of = health::FaultOf::node;
    std::optional<Ticks> ready = {};
    bool answered = false;
    Json values = Json::object();
    int port = 0;
    std::vector<std::string> addresses = {};
    Seconds asked_time{0};  // when it was asked for its own
    int tried = 0, asked_by = 0, reached_by = 0;
    std::vector<std::string> unreachable = {};
    std::string problem = {};  // of the first of them
    std::optional<double> send = {}, receive = {};
    std::optional<double> ring = {};  // the one it is in now

    bool is_out() const { return !no_agent.empty(); }
    bool is_over() const { return answered || is_out(); }
  };

  void on(NodeIndex node, const protocol::from_agent::Ready&, Now now, Sends& out);
  void on(NodeIndex node, const protocol::from_agent::Clock& clock, Now now, Sends& out);
  void on(NodeIndex node, const protocol::from_agent::NodeChecked& checked, Now now, Sends& out);
  void on(NodeIndex node, const protocol::from_agent::PeersChecked& checked, Now now, Sends& out);
  void on(NodeIndex node, const protocol::from_agent::RingChecked& checked, Now now, Sends& out);
  template <class Other>
  void on(NodeIndex, const Other&, Now, Sends&) {}  // a sign of life

  void lose(Node& node, const std::string& why);
  void lose_the_late(Ticks now);
  Seconds arrival_limit() const;
  void advance(Ticks now, Sends& out);
  void begin_stage(Ticks now, Seconds limit);
  void reach(Ticks now, Sends& out);
  void send_in_pairs(const std::vector<std::pair<int, int>>& pairs, Seconds time, Ticks now, Sends& out);
  void next_round(Ticks now, Sends& out);
  void confirm(Ticks now, Sends& out);
  void begin_bisection(Ticks now, Sends& out);
  void bisect(Ticks now, Sends& out);
  void ask_group(const std::vector<int>& group, Sends& out);
  double rate_of(const std::vector<int>& group) const;
  void tell_faults(std::vector<health::NodeAnswers>& answers) const;
  void ask(NodeIndex node, const std::vector<int>& peers, Seconds time, Sends& out);
  protocol::to_agent::CheckedPeer way_to(int node) const;
  std::vector<int> present() const;
  std::vector<int> slow_nodes() const;
  std::vector<int> peers_of(std::size_t place, const std::vector<int>& nodes) const;
  Node& at(NodeIndex node) { return nodes_.at(static_cast<std::size_t>(node.get())); }
  Node& at(int node) { return nodes_.at(static_cast<std::size_t>(node)); }

  const health::Level level_;
  const std::string directory_, token_;
  const Ticks began_;
  const Seconds start_timeout_;
  std::vector<Node> nodes_;
  Stage stage_ = Stage::measuring;
  std::set<int> waiting_;  // nodes that try to reach others
  Ticks stage_ends_{};
  int rounds_ = 0, confirmations_ = 0, ring_ = 0;
  std::optional<health::Bisection> bisection_;
  std::optional<Seconds> most_came_;  // after so long
};

}  // namespace dlrun::job
