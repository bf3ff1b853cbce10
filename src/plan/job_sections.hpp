// The larger sections of a job file, each in a source of its own, and what their readers share. For
// job_spec.cpp and them alone.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/base/fields.hpp"
#include "src/plan/job_spec.hpp"

namespace dlrun::plan {

inline constexpr std::int64_t kMaxTasks = 100'000;

Result<Resources> read_resources(yaml::Fields fields);

/// `base`: what relative paths start at.
Result<JobEnvironment> read_environment(yaml::Fields fields, const std::filesystem::path& base);

Result<LaunchSpec> read_launch(yaml::Fields fields);

/// The map under `key`, or an empty one.
Result<yaml::Fields> section(yaml::Fields& parent, std::string_view key);

/// Unset where the key is absent.
Result<std::optional<int>> optional_integer(yaml::Fields& fields, std::string_view key, std::int64_t low,
                                            std::int64_t high);

/// One of the choices, which keep their order in the error text.
Result<std::string> choice(yaml::Fields& fields, std::string_view key, std::string fallback,
                           std::span<const std::string> choices);

/// A line that goes into a script or a scheduler's header: one line, or it would become two there.
Result<void> check_single_line(const yaml::Node& node, std::string_view name);

}  // namespace dlrun::plan
