#include "src/render/template.hpp"

#include <doctest/doctest.h>

#include "src/base/json.hpp"
#include "src/base/quote.hpp"

using namespace dlrun;
using render::Template;

namespace {

std::string rendered(std::string_view text, const Json& context) {
  const auto parsed = Template::parse(text, "t.tmpl");
  if (!parsed) return parsed.error().text();
  const auto out = parsed->render(context, shell_quote);
  return out ? *out : out.error().text();
}

std::string checked(std::string_view text, const Json& example) {
  const auto parsed = Template::parse(text, "t.tmpl");
  if (!parsed) return parsed.error().text();
  const auto done = parsed->check(example);
  return done ? "good" : done.error().text();
}

}  // namespace

TEST_CASE("values are quoted for the target; three braces put them in as they are") {
  const Json context{{"a", "it's"}, {"n", 3}, {"yes", true}, {"deep", {{"er", "x y"}}}};
  CHECK(rendered("echo {{a}} {{{a}}} {{n}} {{yes}} {{ deep.er }}", context) ==
        "echo 'it'\\''s' it's 3 true 'x y'");
  CHECK(rendered("{{{a}}}", {{"a", "two\nlines"}}) ==
        "t.tmpl:1:1: 'a' has more than one line, which {{{ }}} does not allow");
}

TEST_CASE("sections repeat over lists, enter maps and take branches") {
  const Json context{
      {"list", {{{"x", 1}}, {{"x", 2}}}}, {"words", {"a", "b"}}, {"none", nullptr}, {"map", {{"y", 9}}},
      {"empty", Json::array()},           {"no", false}};
  CHECK(rendered("{{#list}}<{{x}}>{{/list}}", context) == "<1><2>");
  CHECK(rendered("{{#words}}{{.}},{{/words}}", context) == "a,b,");
  CHECK(rendered("{{#map}}{{y}}{{/map}}", context) == "9");
  CHECK(
      rendered("{{#none}}a{{/none}}{{^none}}b{{/none}}{{^no}}c{{/no}}{{^empty}}d{{/empty}}{{^map}}e{{/map}}",
               context) == "bcd");
  CHECK(rendered("{{#list}}{{#map}}{{x}}{{y}} {{/map}}{{/list}}", context) == "19 29 ");
}

TEST_CASE("a section tag or comment alone on its line leaves no line behind") {
  CHECK(rendered("a\n  {{#yes}}\nb\n{{/yes}}  \n{{! a comment }}\nc\n", {{"yes", true}}) == "a\nb\nc\n");
  CHECK(rendered("a {{#yes}}b{{/yes}}\n", {{"yes", true}}) == "a b\n");
  CHECK(rendered("a {{! comment }}b\n{{#yes}}\n{{/yes}}", {{"yes", true}}) == "a b\n");
}

TEST_CASE("an unknown name is an error with its place, also where its branch is not taken") {
  CHECK(rendered("one\n  {{jbo.name}}", {{"job", {{"name", "x"}}}}) ==
        "t.tmpl:2:3: name 'jbo.name' is not known\n  hint: valid names: job");
  CHECK(checked("{{#list}}{{naem}}{{/list}}", {{"list", {{{"name", "x"}}}}}) ==
        "t.tmpl:1:10: name 'naem' is not known\n  hint: did you mean 'name'?");
  CHECK(checked("{{^yes}}{{zebra}}{{/yes}}", {{"yes", true}}).starts_with("t.tmpl:1:9: name 'zebra'"));
  CHECK(checked("{{#list}}{{/list}}", {{"list", Json::array()}}) ==
        "t.tmpl:1:1: the example of 'list' is empty");
  CHECK(checked("{{#list}}{{name}}{{/list}}", {{"list", {{{"name", "x"}}}}}) == "good");
}

TEST_CASE("what is no text is not written as text") {
  CHECK(rendered("{{a}}", {{"a", {1, 2}}}) == "t.tmpl:1:1: 'a' is a list, not text");
  CHECK(rendered("{{a}}", {{"a", nullptr}}) == "t.tmpl:1:1: 'a' is nothing, not text");
}

TEST_CASE("malformed templates are refused with their place") {
  CHECK(rendered("a {{b", {}) == "t.tmpl:1:3: '{{' is not closed with '}}'");
  CHECK(rendered("a\n{{#b}}", {{"b", 1}}) == "t.tmpl:2:1: 'b' is not closed");
  CHECK(rendered("{{/b}}", {}) == "t.tmpl:1:1: 'b' is closed and was not opened");
  CHECK(rendered("{{#a}}\n{{/b}}", {}) == "t.tmpl:2:1: 'b' is closed where 'a' of line 1 is open");
  CHECK(rendered("{{}}", {}).starts_with("t.tmpl:1:1: '' is not a name"));
  CHECK(rendered("{{>partial}}", {}).starts_with("t.tmpl:1:1: '>partial' is not a name"));
  CHECK(rendered("{{=<% %>=}}", {}).starts_with("t.tmpl:1:1: '=<% %>=' is not a name"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{{#a}}";
  CHECK(rendered(deep, {{"a", true}}) == "t.tmpl:1:193: sections deeper than 32");
}
