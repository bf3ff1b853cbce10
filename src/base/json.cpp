#include "src/base/json.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "src/base/json_members.hpp"

namespace dlrun {
namespace {

// Builds the value from the parser's events and stops at the first level too many: what copies, prints or
// frees a value recurses. The library's own callback could count too, but goes through a whole list again for
// each of its elements.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(int maximum_depth) : maximum_depth_(maximum_depth) {}

  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(std::int64_t value) override { return place(value); }
  bool number_unsigned(std::uint64_t value) override { return place(value); }
  bool number_float(double value, const std::string&) override { return place(value); }
  bool string(std::string& value) override { return place(std::move(value)); }
  bool binary(Json::binary_t&) override { return false; }  // no event of JSON texts
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    member_ = &open_.back().members[name];
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& problem) override {
    problem_ = Problem{.position = position, .is_syntax = problem.id < 200, .text = problem.what()};
    return false;
  }

  // Where and what the library did not take; not set where it took all, or the value is too deep.
  struct Problem {
    std::size_t position = 0;
    bool is_syntax = true;
    std::string text;
  };
  const std::optional<Problem>& problem() const { return problem_; }
  Json result() { return std::move(root_); }

 private:
  struct Level {
    explicit Level(Json* opened) : value(opened), members(*opened) {}
    Json* value;
    JsonMembers members;  // of an object
  };

  Json* put(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Json& parent = *open_.back().value;
    if (parent.is_object()) return &(*member_ = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }
  bool place(Json value) {
    put(std::move(value));
    return true;
  }
  bool open(Json empty) {
    if (open_.size() >= static_cast<std::size_t>(maximum_depth_)) return false;
    open_.emplace_back(put(std::move(empty)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  int maximum_depth_;
  Json root_;
  std::vector<Level> open_;  // each the last element of the one before, so that none moves while it is open
  Json* member_ = nullptr;
  std::optional<Problem> problem_;
};

std::string position_text(std::string_view text, std::string_view where, std::size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return fmt::format("{}:{}:{}", where, line, std::max<std::size_t>(column, 1));
}

// At most `maximum` bytes of `text`, cut between characters of UTF-8.
std::string cut_text(std::string text, std::size_t maximum) {
  if (text.size() <= maximum) return text;
  while (maximum > 0 && (static_cast<unsigned char>(text[maximum]) & 0xc0) == 0x80) --maximum;
  return text.substr(0, maximum) + "...";
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view where, int maximum_depth) {
  if (text.size() > kMaxJsonBytes)
    return bad_input(std::string(where), fmt::format("{} bytes of JSON, more than the maximum of {}",
                                                     text.size(), kMaxJsonBytes));
  JsonBuilder builder(maximum_depth);
  if (Json::sax_parse(text, &builder)) return builder.result();
  if (!builder.problem())
    return bad_input(std::string(where), fmt::format("nested deeper than {} levels", maximum_depth));
  if (!builder.problem()->is_syntax) return bad_input(std::string(where), builder.problem()->text);
  return bad_input(position_text(text, where, builder.problem()->position), "not valid JSON");
}

bool is_json_text(std::string_view text) {
  const auto back = parse_json(to_text(Json(std::string(text))), "text");
  return back && back->get<std::string>() == text;
}

std::string to_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string short_text(const Json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  constexpr std::size_t kMaxShown = 60;
  return cut_text(to_text(value), kMaxShown);
}

std::string to_pretty_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dlrun
