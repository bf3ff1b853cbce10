#include "src/health/compare.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace dlrun::health {
namespace {

// As people read it; empty where the node does not tell.
std::string shown(const Json& values, std::string_view name) {
  const auto found = values.is_object() ? values.find(name) : values.end();
  if (!values.is_object() || found == values.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : to_text(*found);
}

}  // namespace

std::optional<double> number_of(const Json& values, std::string_view name) {
  const auto found = values.is_object() ? values.find(name) : values.end();
  if (!values.is_object() || found == values.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string text_of(const Json& values, std::string_view name) {
  const auto found = values.is_object() ? values.find(name) : values.end();
  if (!values.is_object() || found == values.end() || !found->is_string()) return {};
  return found->get<std::string>();
}

double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

std::vector<Found> different(const std::vector<Sample>& samples, std::string_view name,
                             std::string_view title) {
  std::map<std::string, std::size_t> counts;
  for (const Sample& sample : samples) ++counts[shown(sample.values, name)];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<Found> out;
  if (samples.size() < 3 || 2 * most->second <= samples.size()) return out;
  const auto or_none = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (const Sample& sample : samples)
    if (const std::string value = shown(sample.values, name); value != most->first)
      out.push_back({sample.node, State::warning,
                     fmt::format("{}: {}; {} of {} nodes have {}", title, or_none(value), most->second,
                                 samples.size(), or_none(most->first))});
  return out;
}

void append(std::vector<Found>& to, std::vector<Found> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace dlrun::health
