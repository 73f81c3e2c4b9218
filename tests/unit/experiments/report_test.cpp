// What experiments report: page, document, tables.
#include "report.hpp"

#include <gtest/gtest.h>

namespace rnic::experiment {
namespace {

TEST(Report, NumbersHaveNoNeedlessZeros) {
  EXPECT_EQ(number(1.0), "1");
  EXPECT_EQ(number(1.25), "1.25");
  EXPECT_EQ(number(-0.001), "0");
  EXPECT_EQ(number(1200.0, 0), "1200");
  EXPECT_EQ(number(uint64_t{7}), "7");
}

TEST(Report, CsvQuotesWhatNeedsIt) {
  const Table table{"t", "title", {"a", "b, c"}, {{"1", "say \"x\""}, {"", "2"}}};
  EXPECT_EQ(to_csv(table), "a,\"b, c\"\n1,\"say \"\"x\"\"\"\n,2\n");
}

TEST(Report, AFigureHasAxesLegendAndEveryPoint) {
  const Figure figure{"f",  "x, s", "y, octets",
                      true, true,   {{"one", {{1, 10}, {100, 1000}}}, {"two", {{10, 0}, {10, 5}}}}};
  const std::string svg = to_svg(figure);
  for (const char* part : {"x, s", "y, octets", "one", "two", "role=\"img\"", "100", "1000"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  size_t points = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) {
    ++points;
  }
  EXPECT_EQ(points, 3u);  // 0 has no place on a logarithmic axis
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Report, AnEmptyFigureIsDrawn) {
  EXPECT_EQ(to_svg({"f", "x", "y", false, false, {}}).find("nan"), std::string::npos);
}

TEST(Report, TextIsEscapedInThePageAndTheDocument) {
  Experiment e;
  e.name = "n";
  e.title = "a < b";
  e.findings = {"x & y"};
  e.tables = {{"t", "T", {"c|d"}, {{"1|2"}}}};
  const std::string html = to_html({e}, "how");
  EXPECT_NE(html.find("a &lt; b"), std::string::npos);
  EXPECT_NE(html.find("x &amp; y"), std::string::npos);
  EXPECT_NE(to_markdown({e}, "how").find("1\\|2"), std::string::npos);
}

}  // namespace
}  // namespace rnic::experiment
