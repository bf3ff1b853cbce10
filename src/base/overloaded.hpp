// Overloaded: lambdas as the cases of one std::visit. Nothing else.
#pragma once

namespace dlrun {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace dlrun
