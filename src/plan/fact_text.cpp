#include "src/plan/fact_text.hpp"

#include <algorithm>

#include "src/base/fields.hpp"
#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

Result<void> check_fact(const yaml::Node& node, std::string_view name, std::string_view fact, Scope allowed) {
  const FactInfo* info = find_fact(fact);
  if (info == nullptr) {
    std::vector<std::string> names;
    for (const FactInfo& known : all_facts()) names.emplace_back(known.name);
    return yaml::error_at(node, fmt::format("{}: fact '{}' is not known", name, fact),
                          did_you_mean(fact, names));
  }
  if (allowed == Scope::job && info->scope == Scope::rank)
    return yaml::error_at(
        node, fmt::format("{}: '{}' differs between ranks, and this is used once per job", name, fact));
  return {};
}

}  // namespace

Result<FactText> FactText::parse(const yaml::Node& node, std::string_view name, Scope allowed) {
  const std::string text = TRY(yaml::as_text(node, name));
  FactText out;
  out.source_ = node.source;
  std::size_t at = 0;
  for (std::size_t open; (open = text.find("{{", at)) != std::string::npos;) {
    const std::size_t close = text.find("}}", open);
    if (close == std::string::npos)
      return yaml::error_at(node, fmt::format("{}: '{{{{' is not closed: {}", name, text.substr(open, 40)));
    const std::string fact(trim(std::string_view(text).substr(open + 2, close - open - 2)));
    TRY(check_fact(node, name, fact, allowed));
    if (open > at) out.pieces_.push_back({.text = text.substr(at, open - at), .is_fact = false});
    out.pieces_.push_back({.text = fact, .is_fact = true});
    at = close + 2;
  }
  if (at < text.size()) out.pieces_.push_back({.text = text.substr(at), .is_fact = false});
  return out;
}

Result<std::string> FactText::evaluate(const Facts& facts) const {
  std::string out;
  for (const Piece& piece : pieces_) {
    if (!piece.is_fact) {
      out += piece.text;
      continue;
    }
    const auto found = facts.find(piece.text);
    if (found == facts.end() || found->second.is_null())
      return fail(Error{.kind = ErrorKind::input,
                        .what = fmt::format("'{}' has no value in this job", piece.text),
                        .where = source_,
                        .hint = fmt::format("use the form {{if: {}, value: ...}}", piece.text)});
    out += fact_text(found->second);
  }
  return out;
}

FactText FactText::literal(std::string text, std::string source) {
  FactText out;
  out.pieces_.push_back({.text = std::move(text), .is_fact = false});
  out.source_ = std::move(source);
  return out;
}

std::vector<std::string> FactText::facts() const {
  std::vector<std::string> out;
  for (const Piece& piece : pieces_)
    if (piece.is_fact) out.push_back(piece.text);
  return out;
}

std::string FactText::text() const {
  std::string out;
  for (const Piece& piece : pieces_) out += piece.is_fact ? "{{" + piece.text + "}}" : piece.text;
  return out;
}

bool FactText::uses_rank() const {
  return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) {
    return piece.is_fact && find_fact(piece.text)->scope == Scope::rank;
  });
}

Result<std::string> parse_fact_name(const yaml::Node& node, std::string_view name, Scope allowed) {
  const std::string fact = TRY(yaml::as_text(node, name));
  TRY(check_fact(node, name, fact, allowed));
  return fact;
}

}  // namespace dlrun::plan
