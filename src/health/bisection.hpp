// Bisection: finds who makes an allreduce slow, by allreduces of ever smaller groups. Pairs say what is
// usual; then all nodes are one ring. Where that is slow, its halves are measured, with the two links at
// which they were divided; what is slow of them is divided again. A pair that is slow is tried again alone,
// and each of its nodes with a third one: so it is one node's fault, or that of the link between
// both. Pure: it says which groups are to be measured, and is told how fast they were.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace dlrun::health {

class Bisection {
 public:
  using Group = std::vector<int>;
  /// A node that is slow with others; two that are slow only with each other; a group of which no part is.
  enum class Kind { node, link, together };
  struct Fault {
    Kind kind;
    Group nodes;
    double rate;
  };

  explicit Bisection(Group nodes);

  /// Those to be measured now, at the same time: no node is in two of them. None: it is over.
  const std::vector<Group>& groups() const { return groups_; }
  /// What each came to, in their order: bytes per second of a link; 0 where nothing got through.
  void measured(const std::vector<double>& rates);

  const std::vector<Fault>& faults() const { return faults_; }
  double usual() const { return usual_; }                 // of pairs
  std::optional<double> whole() const { return whole_; }  // of all nodes together

 private:
  enum class Stage { pairs, whole, halves, middles, ends, confirming, over };
  struct Claim {  // a group that was slow while others were measured
    Group group;
    std::vector<double> rates = {};  // alone; of a pair then also with the other node, first and second
  };

  bool is_slow(double rate) const;
  void take_pairs(const std::vector<double>& rates);
  void take_parts(const std::vector<double>& rates);
  void take_claim(double rate);
  void begin_pairs();
  void divide();
  void measure_links(Stage stage);
  void end_level();
  void suspect(Group group);
  void confirm();
  void decide(const Claim& claim);
  std::optional<int> other_node(const Claim& claim) const;
  bool is_named(int node) const;
  void finish() { stage_ = Stage::over, groups_.clear(); }

  const Group nodes_;
  Stage stage_ = Stage::pairs;
  std::vector<Group> groups_;
  int round_ = 0;
  std::vector<std::pair<Group, double>> pairs_;
  double usual_ = 0;
  std::optional<double> whole_;
  std::vector<Group> slow_;       // groups of three and more to be divided
  std::vector<std::size_t> of_;   // for each of groups_, which of slow_ it is a part of
  std::vector<Group> slow_next_;  // parts of them
  std::set<std::size_t> explained_;
  std::deque<Claim> claims_;
  std::set<Group> suspected_;
  std::vector<Fault> faults_;
};

}  // namespace dlrun::health
