// The smallest parts of an adapter: a word of a command line and a variable, each text with facts in it that
// can depend on whether a fact has a value. Reading them is strict; filling them in never guesses a value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/plan/fact_text.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::plan {

// "TEXT", or {value: TEXT, if: FACT} or {value: TEXT, unless: FACT}: left out where the fact has no value, or
// where it has one.
struct AdapterWord {
  FactText text;
  std::string condition, exception;
};

// One variable: text with facts, or one fact as JSON; with `condition` only where that fact has a value.
struct AdapterVariable {
  std::string name;
  std::optional<FactText> text;
  std::string json_fact;
  std::string condition;
  bool uses_rank = false;  // else it is the same for all ranks
};

Result<std::vector<AdapterWord>> read_words(const yaml::Node* node, const std::string& path, Scope allowed);
Result<std::vector<AdapterVariable>> read_variables(const yaml::Node* node, const std::string& path);

Result<Argv> fill_words(const std::vector<AdapterWord>& words, const Facts& facts);
// Those of one scope: what differs between ranks is filled in for each.
Result<void> fill_variables(EnvironmentChanges& out, const std::vector<AdapterVariable>& variables,
                            const Facts& facts, Scope scope);

// Every fact that they name, with its place.
struct NamedFact {
  std::string fact, where;
};
void add_facts(std::vector<NamedFact>& out, const std::vector<AdapterWord>& words);
void add_facts(std::vector<NamedFact>& out, const std::vector<AdapterVariable>& variables,
               const std::string& file);

}  // namespace dlrun::plan
