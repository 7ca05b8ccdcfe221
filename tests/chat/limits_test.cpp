// Templates that try to hang, crash or fill memory end with an error, soon.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>

#include "chat/render.h"

namespace quipu::jinja {
namespace {

using testing::HasSubstr;

std::string repeated(std::string_view text, std::size_t n) {
  std::string result;
  for (std::size_t i = 0; i < n; ++i) result += text;
  return result;
}

std::string joined(std::initializer_list<std::string> parts) {
  std::string result;
  for (const std::string& part : parts) result.append(part);
  return result;
}

TEST(Limits, EndWhatWouldNotEnd) {
  const std::string hostile[] = {
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% "
      "endmacro %}{{ g() }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      joined({"{{ ", repeated("(", 20000), "1", repeated(")", 20000), " }}"}),
      joined({"{{ ", repeated("[", 20000), repeated("]", 20000), " }}"}),
      joined({"{{ ", repeated("not ", 20000), "1 }}"}),
      joined({"{{ ", repeated("-", 20001), "1 }}"}),
      joined({"{{ 1", repeated(" + 1", 20000), " }}"}),
      joined({"{{ 1", repeated(" if 1 else 1", 20000), " }}"}),
      joined({"{{ x", repeated(".y", 20000), " }}"}),
      joined({"{{ 'x'", repeated("|upper", 20000), " }}"}),
      joined({"{% set x", repeated("|upper", 20000), " %}{% endset %}"}),
      joined({repeated("{% if 1 %}", 5000), repeated("{% endif %}", 5000)}),
      joined({"{% set ", repeated("(", 20000), "x", repeated(")", 20000), " = 1 %}"}),
      "{{ range(10**9)|list }}",
      "{{ 'x' * 10**10 }}",
      "{{ [1] * 10**10 }}",
      "{{ 'x' * 10**30 }}",
      "{{ [1]|tojson(indent=10**9) }}",
      "{{ 'a'.ljust(10**12) }}{{ 'a'.zfill(10**12) }}",
      "{{ 'a'|center(10**12) }}",
      "{{ '\t'.expandtabs(10**12) }}",
      "{{ 'a\nb'|indent(10**12) }}",
      "{{ '%1000000000d' % 5 }}",
      "{{ '{:1000000000}'.format(5) }}",
      "{{ '%.1000000000f' % 5 }}",
      "{{ [1]|batch(10**12, 0)|list }}",
      "{{ [1]|slice(10**12)|list }}",
      "{{ 10**10**10 }}",
      "{% for x in range(100000) %}{% for y in range(100000) %}{% endfor %}{% endfor %}",
      "{% for x in range(100000) %}{% for y in range(100000) %}{{ x }}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
      "ns.l }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
      "ns.l|tojson }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}",
      "{% set ns = namespace(l=1) %}{% for i in range(100000) %}{% set ns.l = {'a': ns.l}.items %}{% endfor "
      "%}",
      "{% set ns = namespace(l=(1,)) %}{% for i in range(60) %}{% set ns.l = (ns.l, ns.l) %}{% endfor %}{{ "
      "{ns.l: 1} }}",
      "{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(60) %}{% set a.l = "
      "[a.l, a.l] %}"
      "{% set b.l = [b.l, b.l] %}{% endfor %}{{ a.l == b.l }}{{ a.l < b.l }}",
      "{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns }}",
      "{% set ns = namespace() %}{% for x in [1] %}{% set ns.l = loop %}{% endfor %}{{ ns.l.changed(ns.l) }}",
      "{% for i in range(100000) %}{{ ('a' * 200000).replace('b', 'c') }}{% endfor %}",
      "{{ ('a' * 1000000).find('a' * 500000 + 'b') }}{{ ('a' * 1000000).find('a' * 500000 + 'b') }}",
      "{{ ('a' * 1000000).split('a' * 400000 + 'b') }}{{ ('a,' * 10000000).split(',') }}",
      "{% macro f(n) %}{% for i in range(10) %}{{ f(n) if n < 0 else f(n + 1) }}{% endfor %}{% endmacro %}{{ "
      "f(0) }}",
  };
  for (const std::string& source : hostile) {
    SCOPED_TRACE(source.substr(0, 120));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_NE(fault_of(source), "");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
}

TEST(Limits, LeaveRoomForLongConversations) {
  std::string messages;
  for (int i = 0; i < 2000; ++i) {
    messages.append(i > 0 ? "," : "").append(R"({"role":"user","content":")");
    messages.append(repeated("some words ", 100)).append("\"}");
  }
  const std::string text = render(
                               "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{% if '</x>' in "
                               "m.content %}!{% endif %}\n{% endfor %}",
                               fmt::format("{{\"messages\":[{}]}}", messages))
                               .bytes;
  EXPECT_GT(text.size(), 2'000'000u);
}

TEST(Limits, AreKeptByInputToo) {
  EXPECT_THAT(
      fault_of("{{ x }}", fmt::format("{{\"x\":{}{}}}", repeated("[", 100000), repeated("]", 100000))),
      HasSubstr("nested"));
  EXPECT_THAT(fault_of("", R"({"x":123456789012345678901234567890123456789012345})"), HasSubstr("too large"));
}

TEST(Errors, NameLineAndColumn) {
  EXPECT_EQ(fault_of("ab\n  {{ 1 + }}"),
            "template, line 2, column 10: expected an expression, got the end of the print statement");
  EXPECT_EQ(fault_of("é{{ x.y.z }}"), "template, line 1, column 6: 'x' is undefined");
  EXPECT_EQ(fault_of("{% if true %}\n{{ raise_exception('No such role') }}{% endif %}"),
            "template, line 2, column 19: No such role");
  EXPECT_EQ(fault_of("a\r\nb\r\n{% nonesuch %}"), "template, line 3, column 4: unknown tag 'nonesuch'");
}

TEST(Errors, TellTextsThatAreNoTemplatesFromFailedRuns) {
  for (const auto& [source, code] :
       {std::pair("{{", ErrorCode::bad_file), {"{{ x.y }}", ErrorCode::invalid_argument}}) {
    try {
      render(source);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << source;
    }
  }
}

TEST(Errors, LeaveTheTemplateUsable) {
  const Template compiled("{{ x + 1 }}", "template");
  const Clock clock = system_clock();
  EXPECT_THROW(compiled.render({{"x", Value::text("a")}}, clock), Error);
  EXPECT_EQ(compiled.render({{"x", Value::integer(1)}}, clock).bytes, "2");
}

}  // namespace
}  // namespace quipu::jinja
