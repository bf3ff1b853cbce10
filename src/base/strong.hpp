// Strong<Tag, Rep>: a number or name that cannot be passed where another one is meant (a rank is not a local
// rank). Ordered, hashable and printable; it has no arithmetic, which would be meaningless for most of them.
#pragma once

#include <algorithm>
#include <compare>
#include <functional>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace dlrun {

template <class Tag, class Rep>
class Strong {
 public:
  using Representation = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(std::move(value)) {}
  constexpr const Rep& get() const { return value_; }
  friend auto operator<=>(const Strong&, const Strong&) = default;  // NOLINT: clang-tidy 14 misreads it

 private:
  Rep value_{};
};

}  // namespace dlrun

template <class Tag, class Rep>
struct fmt::formatter<dlrun::Strong<Tag, Rep>> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }  // "{}" and no more
  template <class Context>
  auto format(const dlrun::Strong<Tag, Rep>& value, Context& context) const {
    // Not format_to(), of which clang looks for another symbol than the one that Debian's libfmt has.
    const std::string text = fmt::format("{}", value.get());
    return std::copy(text.begin(), text.end(), context.out());
  }
};

template <class Tag, class Rep>
struct std::hash<dlrun::Strong<Tag, Rep>> {
  std::size_t operator()(const dlrun::Strong<Tag, Rep>& value) const { return std::hash<Rep>{}(value.get()); }
};
