// A std::variant of many types whose copies, moves and destruction are compiled in one place. Those of a
// plain variant of fifty types are a table of fifty functions each, in every file that hands one on: two
// fifths of what the head's files compiled to.
//   struct ThingTypes { using Variant = std::variant<A, B, C>; };
//   using Thing = OneOf<ThingTypes>;
//   extern template class dlrun::OneOf<ThingTypes>;    behind the header's namespace; one source has it
//   without extern
// Everything else is std::variant's: std::visit, std::get_if.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace dlrun {

template <class T, class Variant>
inline constexpr bool kIsOneOf = false;
template <class T, class... Types>
inline constexpr bool kIsOneOf<T, std::variant<Types...>> = (std::same_as<T, Types> || ...);

template <class Types>
class OneOf : public Types::Variant {
  using Variant = typename Types::Variant;

 public:
  template <class T>
  requires kIsOneOf<std::remove_cvref_t<T>, Variant> OneOf(T&& value)  // NOLINT: no OneOf is one
      : Variant(std::in_place_type<std::remove_cvref_t<T>>, std::forward<T>(value)) {}
  OneOf(const OneOf&);
  OneOf(OneOf&&) noexcept;
  OneOf& operator=(const OneOf&) = delete;
  OneOf& operator=(OneOf&&) noexcept;
  ~OneOf();
};

template <class Types>
OneOf<Types>::OneOf(const OneOf&) = default;
template <class Types>
OneOf<Types>::OneOf(OneOf&&) noexcept = default;
template <class Types>
OneOf<Types>::~OneOf() = default;

template <class Types>
OneOf<Types>& OneOf<Types>::operator=(OneOf&& other) noexcept {
  if (this == &other) return *this;
  std::destroy_at(this);  // and no table of fifty assignments: what moves does not throw
  return *std::construct_at(this, std::move(other));
}

}  // namespace dlrun
