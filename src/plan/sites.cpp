#include "src/plan/sites.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <fnmatch.h>

#include "src/base/fields.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

constexpr std::string_view kHost = "host:";

bool matches(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// "NERSC_HOST=perlmutter" with the value that it has, or the host's name; empty where it does not match.
std::string seen(const std::string& mark, const Environment& environment,
                 const std::vector<std::string>& hosts) {
  if (mark.starts_with(kHost)) {
    for (const std::string& host : hosts)
      if (matches(mark.substr(kHost.size()), host)) return "host " + host;
    return {};
  }
  const std::size_t equals = mark.find('=');
  const auto value = environment.find(mark.substr(0, equals));
  return value && matches(mark.substr(equals + 1), *value) ? mark.substr(0, equals + 1) + *value : "";
}

Result<void> check_marks(const SitePreset& site, const yaml::Node& node) {
  for (const std::string& mark : site.marks)
    if (!mark.starts_with(kHost) && mark.find('=') == std::string::npos)
      return yaml::error_at(node,
                            fmt::format("site.detect: '{}' is neither NAME=PATTERN nor host:PATTERN", mark));
  return {};
}

// The preset that was meant, or all of them: any short word is near to 'none'.
std::string hint_for(const std::string& wanted, const std::vector<SitePreset>& all) {
  std::vector<std::string> names;
  for (const SitePreset& site : all) names.push_back(site.name);
  if (!nearest(wanted, names).empty()) return did_you_mean(wanted, names);
  return fmt::format("valid names: {}, auto, none", join(names, ", "));
}

Result<std::optional<ChosenSite>> detected(const std::vector<SitePreset>& all, const Environment& environment,
                                           const std::vector<std::string>& hosts) {
  std::optional<ChosenSite> out;
  for (const SitePreset& site : all)
    for (const std::string& mark : site.marks) {
      const std::string why = seen(mark, environment, hosts);
      if (why.empty() || (out && out->preset.name == site.name)) continue;
      if (out)
        return fail(Error{.kind = ErrorKind::input,
                          .what = fmt::format("this is both {} ({}) and {} ({})", out->preset.name, out->why,
                                              site.name, why),
                          .where = {},
                          .hint = fmt::format("say which: --site {}, or --site none", site.name)});
      out = ChosenSite{site, "detected: " + why};
    }
  return out;
}

}  // namespace

Result<SitePreset> parse_site(std::string_view text, const std::filesystem::path& file) {
  SitePreset out{.name = file.stem().string(),
                 .title = {},
                 .marks = {},
                 .settings = TRY(yaml::parse(text, file.string()))};
  yaml::Fields top = TRY(yaml::Fields::of(out.settings, ""));
  const yaml::Node* node = top.find("site");
  if (node == nullptr) return yaml::error_at(out.settings, "a preset of a site needs the section 'site'");
  yaml::Fields fields = TRY(yaml::Fields::of(*node, "site"));
  out.title = TRY(fields.text("title"));
  out.marks = TRY(fields.text_list("detect"));
  TRY(fields.finish());
  TRY(check_marks(out, *node));
  std::erase_if(out.settings.entries, [](const auto& entry) { return entry.first == "site"; });
  return out;
}

Result<std::vector<SitePreset>> all_sites(const std::filesystem::path& data) {
  std::vector<std::filesystem::path> files;
  std::error_code problem;
  for (std::filesystem::directory_iterator at(data / "sites", problem), end; !problem && at != end;
       at.increment(problem))
    if (at->path().extension() == ".yaml") files.push_back(at->path());
  std::sort(files.begin(), files.end());
  std::vector<SitePreset> out;
  for (const std::filesystem::path& file : files) out.push_back(TRY(parse_site(TRY(read_file(file)), file)));
  return out;
}

Result<std::optional<ChosenSite>> choose_site(const std::vector<SitePreset>& all, const std::string& wanted,
                                              const Environment& environment,
                                              const std::vector<std::string>& hosts) {
  if (wanted == "none") return std::optional<ChosenSite>{};
  if (wanted == "auto") return detected(all, environment, hosts);
  for (const SitePreset& site : all)
    if (site.name == wanted) return std::optional(ChosenSite{site, "--site"});
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("--site: there is no preset '{}'", wanted),
                    .where = {},
                    .hint = hint_for(wanted, all)});
}

}  // namespace dlrun::plan
