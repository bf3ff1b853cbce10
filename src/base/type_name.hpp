// type_name(): what a type is called in the source, for logs. No other use: compilers may spell it
// differently.
#pragma once

#include <string_view>

namespace dlrun {

/// The name of T without its namespaces.
template <class T>
constexpr std::string_view type_name() {
  std::string_view name = __PRETTY_FUNCTION__;  // "... type_name() [with T = dlrun::x::Name; ...]"
  name.remove_prefix(name.find("T = ") + 4);
  name = name.substr(0, name.find_first_of(";]"));
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

}  // namespace dlrun
