#include "src/plan/adapter_words.hpp"

#include "src/base/fields.hpp"
#include "src/base/quote.hpp"
#include "src/plan/valid_names.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

Result<AdapterVariable> read_variable(const std::string& key, const Node& node, const std::string& path) {
  AdapterVariable out;
  out.name = key;
  if (!is_shell_identifier(key))
    return yaml::error_at(node, fmt::format("'{}' is not a valid variable name", key));
  if (is_reserved_variable(key))
    return yaml::error_at(node, fmt::format("dlrun itself sets {} for every rank", key));
  if (node.kind != yaml::Kind::map) {
    out.text = TRY(FactText::parse(node, path, Scope::rank));
    out.uses_rank = out.text->uses_rank();
    return out;
  }
  Fields fields = TRY(Fields::of(node, path));
  const Node* value = fields.find("value");
  const Node* json = fields.find("json");
  const Node* condition = fields.find("if");
  TRY(fields.finish());
  if ((value == nullptr) == (json == nullptr))
    return yaml::error_at(node, fmt::format("{} needs either 'value' or 'json'", path));
  if (value != nullptr) out.text = TRY(FactText::parse(*value, path + ".value", Scope::rank));
  if (json != nullptr) out.json_fact = TRY(parse_fact_name(*json, path + ".json", Scope::rank));
  if (condition != nullptr) out.condition = TRY(parse_fact_name(*condition, path + ".if", Scope::rank));
  const auto of_rank = [](const std::string& fact) {
    return !fact.empty() && find_fact(fact)->scope == Scope::rank;
  };
  out.uses_rank = (out.text && out.text->uses_rank()) || of_rank(out.json_fact) || of_rank(out.condition);
  return out;
}

Result<AdapterWord> read_word(const Node& node, const std::string& path, Scope allowed) {
  if (node.kind != yaml::Kind::map) return AdapterWord{TRY(FactText::parse(node, path, allowed)), {}, {}};
  Fields fields = TRY(Fields::of(node, path));
  const Node* value = fields.find("value");
  const Node* condition = fields.find("if");
  const Node* exception = fields.find("unless");
  TRY(fields.finish());
  if (value == nullptr || (condition == nullptr) == (exception == nullptr))
    return yaml::error_at(
        node, fmt::format("{}: a word that is a map needs 'value' and either 'if' or 'unless'", path));
  AdapterWord out{TRY(FactText::parse(*value, path + ".value", allowed)), {}, {}};
  if (condition != nullptr) out.condition = TRY(parse_fact_name(*condition, path + ".if", allowed));
  if (exception != nullptr) out.exception = TRY(parse_fact_name(*exception, path + ".unless", allowed));
  return out;
}

bool has_value(const Facts& facts, const std::string& fact) {
  const auto found = facts.find(fact);
  return found != facts.end() && !found->second.is_null() && !fact_text(found->second).empty();
}

}  // namespace

Result<std::vector<AdapterWord>> read_words(const Node* node, const std::string& path, Scope allowed) {
  std::vector<AdapterWord> out;
  if (node == nullptr) return out;
  if (node->kind != yaml::Kind::list) return yaml::error_at(*node, path + " must be a list of words");
  for (const Node& word : node->items) out.push_back(TRY(read_word(word, path, allowed)));
  return out;
}

Result<std::vector<AdapterVariable>> read_variables(const Node* node, const std::string& path) {
  std::vector<AdapterVariable> out;
  if (node == nullptr) return out;
  const Fields fields = TRY(Fields::of(*node, path));
  for (const auto& [key, value] : node->entries)
    out.push_back(TRY(read_variable(key, value, fields.path(key))));
  return out;
}

Result<Argv> fill_words(const std::vector<AdapterWord>& words, const Facts& facts) {
  Argv out;
  for (const AdapterWord& word : words) {
    if (!word.condition.empty() && !has_value(facts, word.condition)) continue;
    if (!word.exception.empty() && has_value(facts, word.exception)) continue;
    out.push_back(TRY(word.text.evaluate(facts)));
  }
  return out;
}

Result<void> fill_variables(EnvironmentChanges& out, const std::vector<AdapterVariable>& variables,
                            const Facts& facts, Scope scope) {
  for (const AdapterVariable& variable : variables) {
    if (variable.uses_rank != (scope == Scope::rank)) continue;
    if (!variable.condition.empty() && !has_value(facts, variable.condition)) continue;
    out[variable.name] = variable.text ? TRY(variable.text->evaluate(facts))
                                       : dlrun::to_text(facts.find(variable.json_fact)->second);
  }
  return {};
}

void add_facts(std::vector<NamedFact>& out, const std::vector<AdapterWord>& words) {
  for (const AdapterWord& word : words) {
    for (const std::string& fact : word.text.facts()) out.push_back({fact, word.text.source()});
    for (const std::string& fact : {word.condition, word.exception})
      if (!fact.empty()) out.push_back({fact, word.text.source()});
  }
}

void add_facts(std::vector<NamedFact>& out, const std::vector<AdapterVariable>& variables,
               const std::string& file) {
  for (const AdapterVariable& variable : variables) {
    if (variable.text)
      for (const std::string& fact : variable.text->facts()) out.push_back({fact, variable.text->source()});
    for (const std::string& fact : {variable.json_fact, variable.condition})
      if (!fact.empty()) out.push_back({fact, file});
  }
}

}  // namespace dlrun::plan
