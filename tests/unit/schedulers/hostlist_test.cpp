#include "schedulers/hostlist/hostlist.hpp"

#include <random>

#include <doctest/doctest.h>

#include "src/base/strings.hpp"

using namespace dlrun;

namespace {

std::string expanded(std::string_view text) {
  const auto hosts = expand_hostlist(text);
  if (!hosts) return hosts.error().text();
  std::vector<std::string> names;
  for (const HostName& host : *hosts) names.push_back(host.get());
  return join(names, " ");
}

std::vector<HostName> hosts(std::string_view names) {
  std::vector<HostName> out;
  for (const std::string& name : split(names, ' ')) out.emplace_back(name);
  return out;
}

std::string compressed(std::string_view names) {
  const std::vector<HostName> list = hosts(names);
  const std::string text = compress_hostlist(list);
  CHECK(expand_hostlist(text).value() == list);
  return text;
}

}  // namespace

TEST_CASE("names, ranges and single numbers, in and out of brackets") {
  CHECK(expanded("n") == "n");
  CHECK(expanded("") == "");
  CHECK(expanded("alpha,beta") == "alpha beta");
  CHECK(expanded("nodeA,nodeB[001,003],nodeC") == "nodeA nodeB001 nodeB003 nodeC");
  CHECK(expanded("[1-3]") == "1 2 3");
  CHECK(expanded("n[1-2]-ib0.example") == "n1-ib0.example n2-ib0.example");
  CHECK(expanded("gpu-sm01-02") == "gpu-sm01-02");  // a dash outside brackets is not a range
  CHECK(expanded("fe80::[8-9]") == "fe80::8 fe80::9");
}

TEST_CASE("a range has the width of its low end") {
  CHECK(expanded("n[008-011]") == "n008 n009 n010 n011");
  CHECK(expanded("n[9-010]") == "n9 n10");
  CHECK(expanded("n[098-101]") == "n098 n099 n100 n101");
  CHECK(expanded("n[1,01,001]") == "n1 n01 n001");
  CHECK(expanded("n[00000000000000000000001]") == "n00000000000000000000001");
  CHECK(expanded("n[18446744073709551614-18446744073709551615]") ==
        "n18446744073709551614 n18446744073709551615");
}

TEST_CASE("duplicates stay, in their places") {
  CHECK(expanded("n[1-3],n[2-4]") == "n1 n2 n3 n2 n3 n4");
  CHECK(expanded("n[1,1]") == "n1 n1");
}

TEST_CASE(
    "several brackets: the last is the innermost loop, the one before it the outermost, as scontrol shows") {
  CHECK(expanded("a[1-2]b[1-2]") == "a1b1 a1b2 a2b1 a2b2");
  CHECK(expanded("a[1-2]b[1-2]c[1-2]") == "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2");
  CHECK(expanded("a[1-2]b[3-4]c[5-6]d[7-8]").starts_with("a1b3c5d7 a1b3c5d8 a2b3c5d7 a2b3c5d8 a1b4c5d7"));
  CHECK(expanded("n[1-2][3-4]") == "n13 n14 n23 n24");
}

TEST_CASE("what is wrong is shown with a caret below it") {
  CHECK(expanded("n[1-3") ==
        "host list, column 2: this bracket is not closed: the list may have been cut\n"
        "  n[1-3\n"
        "   ^\n"
        "  hint: give the whole list");
  CHECK(expanded("compute-b2[1-,4]") ==
        "host list, column 14: the range has no end: it may have been cut\n"
        "  compute-b2[1-,4]\n"
        "               ^\n"
        "  hint: write it as 1-4");
  CHECK(expanded("n[1, 2]").starts_with("host list, column 5: a blank is not a number\n"));
  CHECK(expanded("n[]").starts_with("host list, column 3: the bracket is empty\n"));
  CHECK(expanded("n[1,,2]").starts_with("host list, column 5: a number is missing here\n"));
  CHECK(expanded("n[3-1]").starts_with("host list, column 3: the range 3-1 is descending\n"));
  CHECK(expanded("n[1-[2]]").starts_with("host list, column 5: a bracket stands inside a bracket\n"));
  CHECK(expanded("n1]").starts_with("host list, column 3: ']' without '['\n"));
  CHECK(expanded("n1,,n2").starts_with("host list, column 4: a host name is empty\n"));
  CHECK(
      expanded("n1,").starts_with("host list, column 4: the list ends with a comma: it may have been cut\n"));
  CHECK(expanded("n1 n2").starts_with("host list, column 3: a blank is not valid in a host name\n"));
  CHECK(
      expanded("n[18446744073709551616]").starts_with("host list, column 3: the number is larger than 184"));
}

TEST_CASE("a caret in a long list stands below its letter, and the list is cut around it") {
  const std::string list = std::string(200, 'a') + " " + std::string(200, 'b');
  const auto read = expand_hostlist(list);
  REQUIRE_FALSE(read.has_value());
  const std::vector<std::string>& lines = read.error().also;
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].size() < 90);
  CHECK(lines[0][lines[1].find('^')] == ' ');
}

TEST_CASE("a list of too many hosts is refused at once, with the limit") {
  for (const char* list : {"n[1-99999999999]", "n[0-18446744073709551615]", "a[0-3000]b[0-3000]",
                           "n[1-4194304],m", "a[0-9999]b[0-9999]c[0-9999]d[0-9999]e[0-9999]f[0-9999]"}) {
    const auto read = expand_hostlist(list);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().what == "the list has more than the maximum of 4194304 hosts");
  }
  CHECK(count_hostlist("n[1-4194304]").value() == 4194304);
  CHECK_FALSE(expand_hostlist("n[1-3]", 2).has_value());
  CHECK(expand_hostlist("n[1-3]", 3).has_value());
}

TEST_CASE("a name that is longer than DNS has is refused, however it is written") {
  CHECK_FALSE(expand_hostlist("n[" + std::string(300, '0') + "-1]").has_value());
  CHECK_FALSE(expand_hostlist(std::string(254, 'n')).has_value());
  CHECK(expand_hostlist(std::string(253, 'n')).has_value());
  CHECK_FALSE(expand_hostlist(std::string(250, 'n') + "[1-9999]").has_value());
  std::string brackets;
  for (int i = 0; i < 100000; ++i) brackets += "[1]";
  CHECK_FALSE(expand_hostlist(brackets).has_value());
}

TEST_CASE("counting makes no names and agrees with expansion") {
  for (const char* list : {"", "n", "n[1-3],n[2-4]", "a[1-2]b[1-3]c[7]", "x,y,z[001-100]"})
    CHECK(count_hostlist(list).value() == expand_hostlist(list)->size());
}

TEST_CASE("what a host may be called") {
  for (const char* name : {"n1", "a.b-c_d", "10.0.0.1", "fe80::1", "1", "::1", "_x"})
    CHECK(check_host_name(name));
  for (const char* name : {"", "-n", ".n", "a b", "a\tb", "a/b", "a'b", "a\"b", "a;b", "a$b", "a,b", "a[1]",
                           "a]", "a\nb", "a\x7f", "\xc3\xa4", "a@b", "a*", "a\\b"}) {
    CAPTURE(name);
    CHECK_FALSE(check_host_name(name).has_value());
  }
  CHECK_FALSE(check_host_name(std::string_view("a\0b", 3)).has_value());
}

TEST_CASE("compression: neighbours that differ in one number share an element") {
  CHECK(compressed("n1 n2 n3") == "n[1-3]");
  CHECK(compressed("n1 n2 n4 n7 n8") == "n[1-2,4,7-8]");
  CHECK(compressed("n008 n009 n010 n011") == "n[008-011]");
  CHECK(compressed("n9 n10 n11") == "n[9-11]");
  CHECK(compressed("n09 n10") == "n[09-10]");
  CHECK(compressed("n9 n010") == "n[9,010]");
  CHECK(compressed("n1 n01 n001") == "n[1,01,001]");
  CHECK(compressed("n3 n1 n2 n2") == "n[3,1-2,2]");
  CHECK(compressed("n99 n100") == "n[99-100]");
  CHECK(compressed("1.2.3.4 1.2.3.5") == "1.2.3.[4-5]");
  CHECK(compressed("n1-ib n2-ib m1") == "n[1-2]-ib,m1");
  CHECK(compressed("alpha beta beta") == "alpha,beta,beta");
  CHECK(compressed("n1") == "n1");
  CHECK(compressed("n1 n1 n1") == "n[1,1,1]");
  CHECK(compressed("x99999999999999999999998 x99999999999999999999999") ==
        "x99999[999999999999999998-999999999999999999]");
  CHECK(compress_hostlist({}) == "");
}

TEST_CASE("compression: two and more brackets where Slurm's order allows them") {
  CHECK(compressed("r0n1 r0n2 r1n1 r1n2") == "r[0-1]n[1-2]");
  CHECK(compressed("r0n1 r0n2 r1n1") == "r0n[1-2],r1n1");
  for (const char* list : {"rack[0-1]node[2-3]-ib[0-1]", "a[1-2]b[1-2]c[1-2]d[1-3]", "a[1,1]b[2,2]"})
    CHECK(expand_hostlist(compress_hostlist(expand_hostlist(list).value())).value() ==
          expand_hostlist(list).value());
  CHECK(compress_hostlist(expand_hostlist("a[1-2]b[1-2]c[1-2]").value()) == "a[1-2]b[1-2]c[1-2]");
  // The order that a nested loop has is not Slurm's for three brackets.
  CHECK(compressed("a1b1c1 a1b1c2 a1b2c1 a1b2c2 a2b1c1 a2b1c2 a2b2c1 a2b2c2") ==
        "a1b[1-2]c[1-2],a2b[1-2]c[1-2]");
}

TEST_CASE("property: what was compressed expands to the same names in the same order") {
  std::mt19937 random(20261128);
  const std::vector<std::string> parts{
      "a", "-ib", "0", "1", "2", "9", "10", "09", ".x", "_", "99999999999999999999"};
  for (int round = 0; round < 20000; ++round) {
    std::vector<HostName> list;
    std::string name;
    for (std::size_t left = random() % 12; left > 0; --left) {
      if (name.empty() || random() % 3 == 0) {
        name = random() % 2 == 0 ? "n" : "7";
        for (std::size_t more = random() % 5; more > 0; --more) name += parts[random() % parts.size()];
      } else {
        for (char& c : name)
          if (c >= '0' && c <= '9' && random() % 3 == 0) c = static_cast<char>('0' + (c - '0' + 1) % 3);
      }
      list.emplace_back(name);
    }
    const std::string text = compress_hostlist(list);
    CAPTURE(text);
    REQUIRE(expand_hostlist(text).value() == list);
  }
}

TEST_CASE("a list is split at the commas outside brackets") {
  using Words = std::vector<std::string_view>;
  CHECK(split_hostlist("a,b[1,2]:3,c") == Words{"a", "b[1,2]:3", "c"});
  CHECK(split_hostlist("a,,") == Words{"a", "", ""});
  CHECK(split_hostlist("") == Words{""});
}
