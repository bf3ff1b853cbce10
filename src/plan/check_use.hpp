// CheckUse: whether a job has its nodes checked before its ranks start, and how well.
#pragma once

#include <string_view>

#include "src/base/enum_names.hpp"

namespace dlrun::plan {

enum class CheckUse { off, quick, full };

inline constexpr auto kCheckUses =
    enum_names<CheckUse>({{CheckUse::off, "off"}, {CheckUse::quick, "quick"}, {CheckUse::full, "full"}});
constexpr std::string_view name_of(CheckUse use) {
  return kCheckUses.name(use);
}

}  // namespace dlrun::plan
