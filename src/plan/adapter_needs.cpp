#include "src/plan/adapter_needs.hpp"

#include <filesystem>

#include "src/base/fields.hpp"
#include "src/base/quote.hpp"
#include "src/base/strings.hpp"
#include "src/plan/fact_text.hpp"

namespace dlrun::plan {
namespace {

// Looks for modules without loading them, which can take seconds. Python 2 knows another way.
constexpr std::string_view kLookForModules =
    "import sys\n"
    "try:\n"
    "    from importlib.util import find_spec\n"
    "except ImportError:\n"
    "    from imp import find_module as find_spec\n"
    "def there(name):\n"
    "    try:\n"
    "        return find_spec(name) is not None\n"
    "    except ImportError:\n"
    "        return False\n"
    "missing = [name for name in sys.argv[2:] if not there(name)]\n"
    "if missing:\n"
    "    sys.exit('%s has no module %s, and framework %s needs it' % (sys.executable, ', '.join(missing), "
    "sys.argv[1]))\n";

Result<std::vector<std::string>> names(yaml::Fields& fields, const std::string& key) {
  std::vector<std::string> out = TRY(fields.text_list(key));
  for (const std::string& name : out)
    if (name.empty() || (key == "variables" && !is_shell_identifier(name)))
      return yaml::error_at(*fields.find(key), fmt::format("needs.{}: '{}' is not a name", key, name));
  return out;
}

Argv shell_probe(const char* test, const char* text, const std::string& name, const std::string& framework) {
  return {
      "sh", "-c",
      fmt::format("{} || {{ echo \"{}, and framework {} needs it\" >&2; exit 1; }}", test, text, framework),
      name};
}

}  // namespace

Result<AdapterNeeds> read_needs(const yaml::Node* node) {
  AdapterNeeds out;
  if (node == nullptr) return out;
  yaml::Fields fields = TRY(yaml::Fields::of(*node, "needs"));
  out.where = node->source;
  out.programs = TRY(names(fields, "programs"));
  out.variables = TRY(names(fields, "variables"));
  out.modules = TRY(names(fields, "modules"));
  if (const yaml::Node* facts = fields.find("facts")) {
    if (facts->kind != yaml::Kind::list) return yaml::error_at(*facts, "needs.facts must be a list");
    for (const yaml::Node& fact : facts->items)
      out.facts.push_back(TRY(parse_fact_name(fact, "needs.facts", Scope::job)));
  }
  TRY(fields.finish());
  return out;
}

Result<void> check_facts(const AdapterNeeds& needs, const std::string& framework, const Facts& facts) {
  for (const std::string& fact : needs.facts) {
    const auto found = facts.find(fact);
    if (found != facts.end() && !found->second.is_null()) continue;
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("framework {} needs '{}', which has no value in this job: {}",
                                          framework, fact, find_fact(fact)->summary),
                      .where = needs.where,
                      .hint = "man 5 dlrun-framework describes it; another adapter may not need it"});
  }
  return {};
}

std::vector<Argv> probes(const AdapterNeeds& needs, const std::string& framework, const Argv& command) {
  std::vector<Argv> out;
  for (const std::string& name : needs.programs)
    out.push_back(
        shell_probe("command -v \"$0\" >/dev/null", "the program $0 is not found", name, framework));
  for (const std::string& name : needs.variables)
    out.push_back(
        shell_probe("eval \"[ -n \\\"\\${$0+set}\\\" ]\"", "the variable $0 is not set", name, framework));
  // A script of the user's own may choose its Python by itself: only a Python that we see can be asked.
  const bool python =
      !command.empty() && std::filesystem::path(command.front()).filename().string().starts_with("python");
  if (needs.modules.empty() || !python) return out;
  Argv probe{command.front(), "-c", std::string(kLookForModules), framework};
  probe.insert(probe.end(), needs.modules.begin(), needs.modules.end());
  out.push_back(std::move(probe));
  return out;
}

}  // namespace dlrun::plan
