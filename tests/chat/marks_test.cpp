// What was input and what the template wrote can be told apart in the result, byte by byte.
#include <gtest/gtest.h>

#include "chat/render.h"

namespace quipu::jinja {
namespace {

/// The rendered text with its input in brackets.
std::string shown(std::string_view source, std::string_view variables) {
  const MarkedBytes result = render(source, variables);
  std::string text;
  std::size_t at = 0;
  for (const ByteRange& range : result.input) {
    text.append(result.bytes, at, range.begin - at).append("[");
    text.append(result.bytes, range.begin, range.end - range.begin).append("]");
    at = range.end;
  }
  return text + result.bytes.substr(at);
}

TEST(Marks, FollowInputThroughWhateverIsDoneToIt) {
  const std::string_view variables = R"({"x":"  Añb  ","l":["p","q"],"d":{"k":"v\n"},"n":5})";
  EXPECT_EQ(shown("<{{ x }}>", variables), "<[  Añb  ]>");
  EXPECT_EQ(shown("<{{ x | trim | upper }}>", variables), "<[AÑB]>");
  EXPECT_EQ(shown("{{ 'a' + x.strip()[1:] + 'c' }}", variables), "a[ñb]c");
  EXPECT_EQ(shown("{{ x.strip().replace('ñ', 'template') }}", variables), "[A]template[b]");
  EXPECT_EQ(shown("{{ l | join(', ') }}", variables), "[p], [q]");
  EXPECT_EQ(shown("{{ 'template'.replace('plate', l[0]) }}", variables), "tem[p]");
  EXPECT_EQ(shown("{{ '%s-%s' % (l[0], 'b') }}", variables), "[p]-b");
  EXPECT_EQ(shown("{{ '{}!'.format(l[1]) }}", variables), "[q]!");
  EXPECT_EQ(shown("{{ d | tojson }}", variables), R"({"[k]": "[v\n]"})");
  EXPECT_EQ(shown("{{ d }}", variables), R"({'[k]': '[v\n]'})");
  EXPECT_EQ(shown("{% set y %}({{ l[0] }}){% endset %}{{ y ~ 1 }}", variables), "([p])1");
  EXPECT_EQ(shown("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(l[0]) | upper }}", variables), "<[P]>");
  EXPECT_EQ(shown("{% for c in x.strip() %}{{ c }}.{% endfor %}", variables), "[A].[ñ].[b].");
  EXPECT_EQ(shown("{{ x.strip()[::-1] }}", variables), "[bñA]");
  EXPECT_EQ(shown("{{ l | map('upper') | list | string }}", variables), "['[P]', '[Q]']");
  EXPECT_EQ(shown("{{ n }}", variables), "5");
}

TEST(Marks, ChangeNoComparison) {
  EXPECT_EQ(
      shown("{{ x == 'a' }}{{ x in ['a'] }}{{ {'a': 1}[x] }}{{ x is eq 'a' }}{{ x < 'b' }}", R"({"x":"a"})"),
      "TrueTrue1TrueTrue");
}

TEST(Marks, KeepBytesThatAreNoText) {
  const Variables variables = {{"x", Value::text(from_utf8("a\xFF\xC3z", true))}};
  const MarkedBytes result =
      Template("<{{ x }}{{ x | length }}>", "template").render(variables, system_clock());
  EXPECT_EQ(result.bytes, "<a\xFF\xC3z4>");
  EXPECT_EQ(result.input, (std::vector<ByteRange>{{1, 5}}));
}

}  // namespace
}  // namespace quipu::jinja
