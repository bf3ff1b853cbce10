#include "src/agent/provenance/search.hpp"

#include <algorithm>

#include "src/agent/provenance/program_seen.hpp"

namespace dlrun::agent {
namespace {

constexpr Seconds kFirst{0.5}, kMaxPause{120};

Json facts_of_node() {
  Json out = Json::object();
  for (const NodeFact& fact : node_facts()) out[std::string(fact.name)] = fact.find();
  return out;
}

Json facts_of(const ProgramSeen& program) {
  Json out{{"file", program.executable}};
  for (const ProgramFact& fact : program_facts()) out[std::string(fact.name)] = fact.find(program);
  return out;
}

// What a library was once loaded for stays known when it is unloaded.
std::vector<std::string> both(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> out;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

}  // namespace

void ProvenanceSearch::begin() {
  asking_node_ = std::make_unique<Aside<Json>>(loop_, facts_of_node, [this](Json found) {
    node_ = std::move(found);
    tell();
  });
  probe_after(kFirst);
}

void ProvenanceSearch::end() {
  ended_ = true;
  packages_.reset();
}

std::optional<pid_t> ProvenanceSearch::child() const {
  return packages_ && packages_->pid() > 0 ? std::optional(packages_->pid()) : std::nullopt;
}

void ProvenanceSearch::probe_after(Seconds pause) {
  pause_ = pause;
  loop_.after(pause, [this] { probe(); });
}

void ProvenanceSearch::probe() {
  if (ended_) return;
  const auto rank = callbacks_.first_rank();
  if (!rank) return;
  probe_after(std::min(2 * pause_, kMaxPause));
  if (asking_ && !asking_->answered()) return;
  auto seen = see_program(*rank);
  if (!seen) return;
  Known& known = programs_[seen->executable];
  ++known.times;
  const auto libraries = both(known.libraries, seen->libraries);
  if (!known.facts.is_null() && libraries == known.libraries) return tell();
  known.libraries = seen->libraries = libraries;
  ask_python(*seen);
  const auto shared = std::make_shared<const ProgramSeen>(std::move(*seen));
  asking_ = std::make_unique<Aside<Json>>(
      loop_, [shared] { return facts_of(*shared); },
      [this, shared](Json found) { learn(*shared, std::move(found)); });
}

void ProvenanceSearch::learn(const ProgramSeen& seen, Json facts) {
  programs_[seen.executable].facts = std::move(facts);
  tell();
}

void ProvenanceSearch::ask_python(const ProgramSeen& seen) {
  if (asked_python_ || ended_ || !is_python(seen)) return;
  asked_python_ = true;
  packages_ = PythonPackages::ask(seen, loop_, [this](Json found) {
    python_ = std::move(found);
    tell();
  });
}

void ProvenanceSearch::tell() {
  if (ended_ || node_.is_null()) return;
  const auto most = std::max_element(programs_.begin(), programs_.end(), [](const auto& a, const auto& b) {
    return std::pair(!a.second.facts.is_null(), a.second.times) <
           std::pair(!b.second.facts.is_null(), b.second.times);
  });
  Json program = nullptr;
  if (most != programs_.end() && !most->second.facts.is_null()) {
    program = most->second.facts;
    program["python"] = python_;
  }
  const Json found{{"node", node_}, {"program", std::move(program)}};
  if (std::string text = to_text(found); text != told_) {
    told_ = std::move(text);
    callbacks_.found(found);
  }
}

}  // namespace dlrun::agent
