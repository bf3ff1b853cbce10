#include "src/cli/cmd_frameworks.hpp"

#include "src/cli/adapter_page.hpp"
#include "src/plan/config_layers.hpp"
#include "src/plan/hypothetical_nodes.hpp"
#include "src/plan/make_plan.hpp"
#include "src/run/prepare.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<FrameworksCommand> kFrameworksFlags[] = {
    {{.name = "--framework-dir", .value = "DIR", .help = "look for adapters in this folder first"},
     &FrameworksCommand::framework_dir},
};

Json adapter_json(const plan::Adapter& adapter) {
  return {{"name", adapter.name},
          {"summary", adapter.summary},
          {"source", adapter.source},
          {"process", plan::to_text(adapter.process)}};
}

// A plan for nodes that are not there: facts that have no value show up only in one.
Result<void> try_to_plan(const plan::Adapter& adapter, const Installation& installation, int gpus) {
  plan::PlanInput input;
  const std::string text = fmt::format(
      "name: check\nframework: {}\ncommand: [program]\nresources: {{nodes: 2, gpus-per-node: {}}}\n",
      adapter.name, gpus);
  input.spec = TRY(plan::read_job_spec(
      TRY(plan::merge_layers({plan::default_layer(), TRY(yaml::parse(text, "a job for the check"))})), "/"));
  input.allocation = plan::hypothetical_allocation(2, gpus);
  input.adapter = adapter;
  input.job_id = "check";
  input.run_directory = "/run";
  input.installation = installation;
  input.detected_mpi = plan::MpiProtocol::pmix;
  TRY(plan::make_plan(input));
  return {};
}

Result<int> check(const std::string& file, const plan::AdapterPath& path, const Installation& installation,
                  const Context& context) {
  const plan::Adapter adapter = TRY(plan::load_adapter(path, file));
  // The builtin trainer takes no command, so that no job can be made up for it here.
  if (adapter.name != "builtin") {
    const auto with = try_to_plan(adapter, installation, 8), without = try_to_plan(adapter, installation, 0);
    if (!with && !without) return fail(with.error());
    if (!with) context.console.say("in a job with GPUs: " + with.error().text());
    if (!without) context.console.say("in a job without GPUs: " + without.error().text());
  }
  if (context.common.json) {
    Json json = plan::to_json(adapter);
    json["schema"] = "dlrun.framework/1";
    TRY(context.console.data(to_pretty_text(json)));
    return 0;
  }
  context.console.out(fmt::format("{}: no errors found", file));
  TRY(context.console.data(adapter_page(plan::to_json(adapter))));
  return 0;
}

Result<int> show(const std::string& name, const plan::AdapterPath& path, const Context& context) {
  Json json = plan::to_json(TRY(plan::find_adapter(path, name)));
  json["schema"] = "dlrun.framework/1";
  TRY(context.console.data(context.common.json ? to_pretty_text(json) : adapter_page(json)));
  return 0;
}

}  // namespace

const char* const FrameworksCommand::kExamples = R"(Examples:
  dlrun frameworks                            all adapters, a line each
  dlrun frameworks pytorch                    what one sets, and the file that it comes from
  dlrun frameworks check my-framework.yaml    look for mistakes in an adapter of your own)";

void FrameworksCommand::add(Arguments& arguments) {
  arguments.argument("NAME", name, "show this one; or 'check': check FILE for errors");
  arguments.argument("FILE", file, "the adapter to check");
  arguments.flags<FrameworksCommand>(kFrameworksFlags, *this);
}

// No argument, a name, or "check FILE".
Result<void> FrameworksCommand::finish(const ExtraArguments&) {
  const bool checks = name == "check";
  if (checks != file.empty()) return {};
  return fail(Error{.kind = ErrorKind::usage,
                    .what = checks ? "frameworks check: no file to check"
                                   : fmt::format("frameworks takes one name; unexpected argument '{}'", file),
                    .where = {},
                    .hint = "dlrun frameworks check my-framework.yaml"});
}

Result<int> FrameworksCommand::run(const Context& context) {
  job::Request request;
  request.installation = TRY(this_installation());
  request.environment = context.environment;
  if (!framework_dir.empty()) request.framework_dir = framework_dir;
  const plan::AdapterPath path = job::adapters_of(request);
  if (!file.empty()) return check(file, path, request.installation, context);
  if (!name.empty()) return show(name, path, context);
  const std::vector<plan::Adapter> adapters = TRY(plan::all_adapters(path));
  if (context.common.json) {
    Json list = Json::array();
    for (const plan::Adapter& adapter : adapters) list.push_back(adapter_json(adapter));
    TRY(context.console.data(to_pretty_text({{"schema", "dlrun.frameworks/1"}, {"frameworks", list}})));
    return 0;
  }
  for (const plan::Adapter& adapter : adapters)
    context.console.out(
        fmt::format("{:<22} {:<9} {}", adapter.name, plan::to_text(adapter.process), adapter.summary));
  return 0;
}

}  // namespace dlrun::cli
