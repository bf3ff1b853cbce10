#include "src/record/provenance/facts.hpp"

namespace dlrun::job {
namespace {

constexpr HeadFact kHeadFacts[] = {{"git", find_git_state}, {"container", find_container_image}};

}  // namespace

std::span<const HeadFact> head_facts() {
  return kHeadFacts;
}

}  // namespace dlrun::job
