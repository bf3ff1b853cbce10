// Presets of known machines: share/sites/NAME.yaml has keys of a job file, which come after the defaults and
// before the site's own file, and a section `site` that says how the machine is recognized. A preset that
// does not parse, and a machine that two presets recognize, are Errors.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/yaml.hpp"

namespace dlrun::plan {

struct SitePreset {
  std::string name;                // the file's
  std::string title;               // "Perlmutter, NERSC"
  std::vector<std::string> marks;  // "NERSC_HOST=perlmutter" or "host:login*"; any of them will do
  yaml::Node settings;             // the keys of a job file
};

/// `file`: for the places of its settings.
Result<SitePreset> parse_site(std::string_view text, const std::filesystem::path& file);

/// The presets of an installation, by name.
Result<std::vector<SitePreset>> all_sites(const std::filesystem::path& data);

/// The one that was chosen, and why.
struct ChosenSite {
  SitePreset preset;
  std::string why;  // "--site", "detected: NERSC_HOST=perlmutter"
};

/// `wanted`: a preset's name, "auto" for the one that recognizes this machine by its variables or by its
/// names
/// (`hosts`), or "none".
Result<std::optional<ChosenSite>> choose_site(const std::vector<SitePreset>& all, const std::string& wanted,
                                              const Environment& environment,
                                              const std::vector<std::string>& hosts);

}  // namespace dlrun::plan
