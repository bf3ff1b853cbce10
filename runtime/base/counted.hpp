// Numbers of things in sentences for people: "1 token", "2 tokens".
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

namespace dlrun::runtime {

/// The number and the word, with an s where it is not one. Words that take another ending have none here.
template <class Integer>
std::string counted(Integer count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

}  // namespace dlrun::runtime
