// dlrun frameworks: the adapters that are known, where they come from, and what one of them sets.
#include "src/base/file.hpp"
#include "src/cli/commands.hpp"

namespace dlrun::cli {
namespace {

Json adapter_json(const plan::Adapter& adapter) {
  return {{"name", adapter.name},
          {"summary", adapter.summary},
          {"source", adapter.source},
          {"process", plan::to_text(adapter.process)}};
}

}  // namespace

Result<int> show_frameworks(const FrameworksOptions& options, const Context& context) {
  job::Request request;
  request.installation = TRY(this_installation());
  request.environment = context.environment;
  if (!options.framework_dir.empty()) request.framework_dir = options.framework_dir;
  const plan::AdapterPath path = job::adapters_of(request);
  if (!options.name.empty()) {
    const plan::Adapter adapter = TRY(plan::find_adapter(path, options.name));
    if (context.common.json) {
      Json json = adapter_json(adapter);
      json["schema"] = "dlrun.framework/1";
      TRY(context.console.data(to_pretty_text(json)));
      return 0;
    }
    context.console.say("# " + adapter.source);
    TRY(context.console.data(TRY(read_file(adapter.source))));
    return 0;
  }
  const std::vector<plan::Adapter> adapters = TRY(plan::all_adapters(path));
  if (context.common.json) {
    Json list = Json::array();
    for (const plan::Adapter& adapter : adapters) list.push_back(adapter_json(adapter));
    TRY(context.console.data(to_pretty_text({{"schema", "dlrun.frameworks/1"}, {"frameworks", list}})));
    return 0;
  }
  for (const plan::Adapter& adapter : adapters)
    context.console.out(
        fmt::format("{:<20} {:<9} {}", adapter.name, plan::to_text(adapter.process), adapter.summary));
  return 0;
}

}  // namespace dlrun::cli
