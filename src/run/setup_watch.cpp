#include "src/run/setup_watch.hpp"

#include <algorithm>
#include <cmath>

#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::job {
namespace {

constexpr Seconds kFirstSaid{30};  // and again after twice as long

}  // namespace

SetupWatch::SetupWatch(const plan::Plan& plan, Ticks began)
    : limit_(plan.limits.setup_timeout), began_(began), next_said_(kFirstSaid) {
  for (const plan::NodePlan& node : plan.nodes) {
    hosts_.push_back(node.host.get());
    waiting_.insert(node.index.get());
  }
}

std::vector<NodeIndex> SetupWatch::late(Ticks now) const {
  if (limit_.count() <= 0 || now - began_ < limit_) return {};
  std::vector<NodeIndex> out;
  for (const int node : waiting_) out.emplace_back(node);
  return out;
}

std::string SetupWatch::waiting_hosts() const {
  constexpr std::size_t kMaxShown = 8;
  std::vector<std::string> names;
  for (const int node : waiting_) {
    if (names.size() == kMaxShown) {
      names.push_back(fmt::format("{} more", waiting_.size() - kMaxShown));
      break;
    }
    names.push_back(hosts_[static_cast<std::size_t>(node)]);
  }
  return join(names, ", ");
}

std::string SetupWatch::phase() const {
  return waiting_.empty() ? std::string("starting the ranks")
                          : fmt::format("setting up the environment on {}", waiting_hosts());
}

std::string SetupWatch::waiting_text(Ticks now) {
  const Seconds past = now - began_;
  if (waiting_.empty() || past < next_said_) return {};
  next_said_ = 2 * past;
  return fmt::format("the setup of the environment has run for {}, still on {} (launch.setup-timeout: {})",
                     format_duration(Seconds(std::floor(past.count()))), waiting_hosts(),
                     limit_.count() > 0 ? format_duration(limit_) : "none");
}

std::string SetupWatch::timeout_text() const {
  return fmt::format("the setup of its environment did not end within {} (launch.setup-timeout){}",
                     format_duration(limit_),
                     waiting_.size() > 1 ? "; not ready: " + waiting_hosts() : std::string());
}

Seconds SetupWatch::interval() const {
  return limit_.count() > 0 ? std::min(limit_ / 4, Seconds(5)) : Seconds(5);
}

}  // namespace dlrun::job
