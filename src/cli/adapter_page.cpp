#include "src/cli/adapter_page.hpp"

#include <fmt/core.h>

#include "src/base/json.hpp"

namespace dlrun::cli {
namespace {

// "TEXT", or "TEXT  (if FACT)".
std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string out = value.at("value").get<std::string>();
  for (const char* key : {"if", "unless"})
    if (value.contains(key)) out += fmt::format("  ({} {})", key, value.at(key).get<std::string>());
  return out;
}

std::string words_text(const Json& words) {
  std::string out;
  for (const Json& word : words) {
    if (word.is_string()) {
      out += word.get<std::string>() + " ";
      continue;
    }
    const char* key = word.contains("if") ? "if" : "unless";
    out +=
        fmt::format("[{} {} {}] ", word.at("value").get<std::string>(), key, word.at(key).get<std::string>());
  }
  if (!out.empty()) out.pop_back();
  return out;
}

std::string variables_text(const Json& variables, std::string_view title) {
  std::string out;
  for (const auto& [name, value] : variables.items())
    out += fmt::format("{:<10} {}={}\n", out.empty() ? title : "", name, value_text(value));
  return out;
}

std::string role_text(const Json& role) {
  std::string out =
      fmt::format("{}: {}", role.at("name").get<std::string>(), role.at("tasks").get<std::string>());
  if (role.contains("gpus"))
    out += role.at("gpus") == 0 ? ", no GPU" : fmt::format(", {} GPUs", role.at("gpus").get<int>());
  if (role.contains("port")) out += fmt::format(", ports from {}", role.at("port").get<int>());
  if (role.at("service").get<bool>()) out += ", ends with the job";
  if (role.contains("command")) out += "\n             $ " + words_text(role.at("command"));
  if (role.contains("env"))
    for (const auto& [name, value] : role.at("env").items())
      out += fmt::format("\n             {}={}", name, value_text(value));
  return out;
}

std::string kinds_text(const Json& kinds) {
  std::string out;
  for (const Json& kind : kinds) out += (out.empty() ? "" : ", ") + kind.get<std::string>();
  return out;
}

// "tensor, pipeline, data; in the order [...] or [...]"
std::string parallel_text(const Json& parallel) {
  std::string out = kinds_text(parallel.at("groups"));
  out += out.empty() ? "data" : ", data";
  bool first = true;
  for (const Json& order : parallel.at("orders")) {
    out += fmt::format("{}[{}]", first ? "; in the order " : " or ", kinds_text(order));
    first = false;
  }
  return out;
}

std::string command_text(const Json& adapter) {
  std::string out;
  const Json& own = adapter.at("command");
  for (const std::string& part :
       {words_text(adapter.at("prefix")), own.empty() ? std::string("COMMAND") : words_text(own),
        words_text(adapter.at("suffix"))})
    if (!part.empty()) out += (out.empty() ? "" : " ") + part;
  return out;
}

}  // namespace

std::string adapter_page(const Json& adapter) {
  const auto text = [&](const char* key) { return adapter.at(key).get<std::string>(); };
  std::string out = fmt::format("{:<10} {}\n{:<10} {}\n{:<10} {}, MPI: {}\n", text("name"), text("summary"),
                                "source", text("source"), "ranks", text("process"), text("mpi"));
  bool first = true;
  for (const Json& role : adapter.at("roles")) {
    out += fmt::format("{:<10} {}\n", first ? "roles" : "", role_text(role));
    first = false;
  }
  out +=
      fmt::format("{:<10} {}\n", "sees",
                  text("gpu_view") == "node" ? "the GPUs of all ranks on its node; its local rank selects one"
                                             : "its own GPUs alone");
  if (const Json& parallel = adapter.at("parallel"); !parallel.is_null())
    out += fmt::format("{:<10} {}\n", "groups", parallel_text(parallel));
  out += variables_text(adapter.at("env"), "sets") + variables_text(adapter.at("defaults"), "unless set");
  for (const auto& [name, before] : adapter.at("interfaces").items())
    out += fmt::format("{:<10} {}={}INTERFACE  (found on each node)\n", "unless set", name,
                       before.get<std::string>());
  out += fmt::format("{:<10} {}\n", "runs", command_text(adapter));
  for (const auto& [name, content] : adapter.at("files").items())
    out += fmt::format("{:<10} {}\n", "writes", name);
  for (const auto& [kind, names] : adapter.at("needs").items())
    for (const Json& name : names)
      out += fmt::format("{:<10} {} ({})\n", "needs", name.get<std::string>(), kind);
  return out;
}

}  // namespace dlrun::cli
