// FactText: text of an adapter with {{fact}} in it, parsed once and checked when the adapter is loaded. The
// language ends here: no expressions, no quoting, no user input (the user's own words are never substituted).
#pragma once

#include <string>
#include <vector>

#include "src/base/yaml.hpp"
#include "src/plan/facts.hpp"

namespace dlrun::plan {

class FactText {
 public:
  // An Error at the node's place for an unknown fact, one of a wider scope than `allowed`, or an unclosed
  // "{{".
  static Result<FactText> parse(const yaml::Node& node, std::string_view name, Scope allowed);

  /// A text that has no facts, whatever it contains.
  static FactText literal(std::string text, std::string source);

  /// Substitutes the facts; an Error if one has no value.
  Result<std::string> evaluate(const Facts& facts) const;
  /// The text as written in the adapter.
  std::string text() const;
  bool uses_rank() const;
  std::vector<std::string> facts() const;
  const std::string& source() const { return source_; }

 private:
  struct Piece {
    std::string text;  // or the fact's name
    bool is_fact = false;
  };
  std::vector<Piece> pieces_;
  std::string source_;
};

// The fact called `node.scalar`, for forms that take a bare name.
Result<std::string> parse_fact_name(const yaml::Node& node, std::string_view name, Scope allowed);

}  // namespace dlrun::plan
