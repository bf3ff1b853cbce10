// Presets of known machines: how they are chosen, and that those that come with dlrun are jobs' keys.
#include "src/plan/sites.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "src/plan/config_layers.hpp"
#include "src/plan/job_spec.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;
using plan::ChosenSite;
using plan::SitePreset;

namespace {

std::vector<SitePreset> shipped() {
  return plan::all_sites(std::filesystem::path(TEST_SOURCE_DIR) / "share").value();
}

// "NAME: why", "" where none is chosen, or the error.
std::string chosen(const std::vector<SitePreset>& all, const std::string& wanted,
                   const std::vector<std::string>& variables, const std::vector<std::string>& hosts = {}) {
  const auto found = plan::choose_site(all, wanted, Environment::from_entries(variables), hosts);
  if (!found) return found.error().text();
  return *found ? (*found)->preset.name + ": " + (*found)->why : "";
}

}  // namespace

TEST_CASE("the machines that come with dlrun are known by what their documentation says") {
  const auto all = shipped();
  CHECK(all.size() == 6);
  CHECK(chosen(all, "auto", {}, {"laptop"}).empty());
  CHECK(chosen(all, "auto", {"NERSC_HOST=perlmutter", "SLURM_CLUSTER_NAME=perlmutter"}) ==
        "perlmutter: detected: NERSC_HOST=perlmutter");
  CHECK(chosen(all, "auto", {"PBS_JOBID=7.polaris-pbs-01.hsn.cm"}) ==
        "polaris: detected: PBS_JOBID=7.polaris-pbs-01.hsn.cm");
  CHECK(chosen(all, "auto", {}, {"polaris-login-02", "polaris-login-02.x"}) ==
        "polaris: detected: host polaris-login-02");
  CHECK(chosen(all, "auto", {"CLUSTER_NAME=santis", "SLURM_CLUSTER_NAME=santis"}) ==
        "alps: detected: CLUSTER_NAME=santis");
  CHECK(chosen(all, "lumi", {"NERSC_HOST=perlmutter"}) == "lumi: --site");
  CHECK(chosen(all, "none", {"NERSC_HOST=perlmutter"}).empty());
  CHECK(chosen(all, "lumni", {}) == "--site: there is no preset 'lumni'\n  hint: did you mean 'lumi'?");
  CHECK(chosen(all, "nope", {}) ==
        "--site: there is no preset 'nope'\n"
        "  hint: valid names: alps, aurora, frontier, lumi, perlmutter, polaris, auto, none");
}

TEST_CASE("a machine that two presets recognize is an error that names both") {
  CHECK(chosen(shipped(), "auto", {"NERSC_HOST=perlmutter", "LMOD_SYSTEM_NAME=frontier"}) ==
        "this is both frontier (detected: LMOD_SYSTEM_NAME=frontier) and perlmutter (NERSC_HOST=perlmutter)\n"
        "  hint: say which: --site perlmutter, or --site none");
}

TEST_CASE("each preset that comes with dlrun is read as a job's keys, and says where it comes from") {
  for (const SitePreset& site : shipped()) {
    INFO(site.name);
    CHECK_FALSE(site.title.empty());
    const auto tree =
        plan::merge_layers({plan::default_layer(), site.settings,
                            yaml::parse("command: [x]\nframework: plain\n", "job.yaml").value()});
    REQUIRE(tree.has_value());
    const auto spec = plan::read_job_spec(*tree, "/");
    CHECK_MESSAGE(spec.has_value(), error_of(spec));
    const auto lines = plan::explain(*tree);
    CHECK(std::any_of(lines.begin(), lines.end(), [&](const plan::Explained& line) {
      return line.source.find("sites/" + site.name + ".yaml:") != line.source.npos;
    }));
  }
}

TEST_CASE("a preset that does not say how to recognize its machine is refused") {
  const auto error = [](const char* text) { return plan::parse_site(text, "x.yaml").error().what; };
  CHECK(error("launch: {via: slurm}\n") == "a preset of a site needs the section 'site'");
  CHECK(error("site: {title: X, detect: [perlmutter]}\n") ==
        "site.detect: 'perlmutter' is neither NAME=PATTERN nor host:PATTERN");
  CHECK(error("site: {title: X, detect: [A=b], name: y}\n").find("'name'") != std::string::npos);
}

TEST_CASE("environment.defaults gives way to the user's environment and to environment.set") {
  auto in = input("command: [x]\nenvironment: {defaults: {A: site, B: site, C: site}, set: {B: job}}\n",
                  machine(2));
  in.environment = Environment::from_entries({"C=user"});
  const auto plan = plan::make_plan(in);
  REQUIRE_MESSAGE(plan.has_value(), error_of(plan));
  CHECK(plan->ranks[0].defaults.at("A") == "site");
  CHECK_FALSE(plan->ranks[0].defaults.contains("B"));
  CHECK_FALSE(plan->ranks[0].defaults.contains("C"));
  CHECK(plan->environment.at("B") == "job");
}
