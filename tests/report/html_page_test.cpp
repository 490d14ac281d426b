// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "report/count.h"
#include "report/example_reports.h"
#include "report/json_reader.h"

namespace penstock::report {
namespace {

Json data_of(const std::string& page) {
  const std::string_view open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return read_json(page.substr(begin, page.find("</script>", begin) - begin));
}

Report small_report() {
  return {"small", {example_run("slimpipe", example_program("slimpipe", 3, 2, 4), 2)}};
}

TEST(Page, NeedsNothingFromOutside) {
  const std::string page = html_page(small_report());
  for (const char* reference :
       {"http://", "https://", "src=", "href=", "@import", "url(", "fetch(", "XMLHttp", "import("}) {
    const std::size_t allowed = std::string_view(reference) == "http://" ? 1 : 0;  // the name space of SVG
    EXPECT_EQ(count(page, reference), allowed) << reference;
  }
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
}

TEST(Page, HasNoMarkLeftToFillIn) {
  const std::string page = html_page(small_report());
  for (const char* mark : {"@TITLE@", "@STYLE@", "@DATA@", "@SCRIPT@"}) EXPECT_EQ(page.find(mark), page.npos);
}

TEST(Page, ShowsTheMarksOfItsTemplateAsText) {
  Report report = small_report();
  report.title = "@DATA@ and @SCRIPT@";
  const std::string page = html_page(report);
  EXPECT_NE(page.find("<title>@DATA@ and @SCRIPT@</title>"), page.npos);
  EXPECT_EQ(data_of(page)["title"].text, "@DATA@ and @SCRIPT@");
}

TEST(Page, LetsNoTextBecomeMarkup) {
  const std::string evil = "</title></script><script>alert(1)</script><img src=x onerror=alert(1)><!--";
  Report report = small_report();
  const std::string harmless = html_page(report);
  report::Run& run = report.runs[0];
  report.title = run.name = run.configuration = run.program.name = evil;
  run.notes = {evil};
  run.tables = {{evil, {evil}, {{evil}}}};
  run.metrics[0].name = run.metrics[0].unit = evil;
  run.predicted->label = run.predicted->idle[0].cause = run.predicted->memory[0].categories[0] = evil;
  const std::string page = html_page(report);
  for (const char* tag : {"<script", "</script", "<img", "<title", "</title", "<!--"}) {
    EXPECT_EQ(count(page, tag), count(harmless, tag)) << tag;
  }
  EXPECT_EQ(data_of(page)["runs"][0]["notes"][0].text, evil);
}

TEST(Page, CarriesChartsNumberByNumberAndTheirTextsAsText) {
  const std::string evil = "</script><script>alert(1)</script>";
  Report report{"charts", {}};
  report.bars = {{evil, evil, Unit::Bytes, {evil, "b"}, {{evil, {1, 2.5}}}}};
  report.points = {{evil, evil, evil, evil, Unit::Bytes, Unit::Seconds, {{evil, 3, 0.25}}, true}};
  const std::string page = html_page(report);
  EXPECT_EQ(count(page, "<script"), count(html_page({"charts", {}}), "<script"));
  const Json bars = data_of(page)["bars"][0], points = data_of(page)["points"][0];
  EXPECT_EQ(bars["unit"].text, "bytes");
  EXPECT_EQ(bars["parts"][0]["values"][1].number, 2.5);
  EXPECT_EQ(bars["rows"][0].text, evil);
  EXPECT_EQ(points["points"][0]["y"].number, 0.25);
  EXPECT_EQ(points["yUnit"].text, "seconds");
  EXPECT_EQ(points["compared"].number, 1);
  report.bars[0].rows.pop_back();
  EXPECT_THROW(html_page(report), std::logic_error);
}

TEST(Page, CarriesHeatMapsNumberByNumberAndTheirTextsAsText) {
  const std::string evil = "</script><script>alert(1)</script>";
  Report report{"maps", {{.name = "one", .program = {}}}};
  report.runs[0].heat_maps = {{evil, evil, evil, evil, {{0.5, 1.5}}}};
  const std::string page = html_page(report);
  EXPECT_EQ(count(page, "<script"), count(html_page({"maps", {}}), "<script"));
  const Json map = data_of(page)["runs"][0]["heatMaps"][0];
  EXPECT_EQ(map["title"].text, evil);
  EXPECT_EQ(map["values"][0][1].number, 1.5);
}

TEST(Page, OfTwentyThousandActionsIsUnderTwoMegabytes) {
  const auto program = example_program("slimpipe", 16, 2, 312);
  std::size_t actions = 0;
  for (const auto& device : program.devices) {
    for (const auto& op : device.ops) actions += is_action(op.kind);
  }
  ASSERT_GE(actions, 19'900u);
  const std::string page = html_page({"large", {example_run("large", program, 1)}});
  EXPECT_LT(page.size(), 2'000'000u);
  EXPECT_TRUE(data_of(page)["runs"][0]["tracks"][1].has("events")) << "drawn action by action";
}

TEST(Page, GivesSharesOfTimeForWhatIsBeyondItsLimits) {
  Report report = small_report();
  std::size_t ops = 0;
  for (const auto& device : report.runs[0].program.devices) ops += device.ops.size();
  for (const std::size_t step : {0u, 1u}) {
    report.runs[0].opens_with = step;
    const Json shown = data_of(html_page(report, {.detailed_ops = 2 * ops}))["runs"][0];
    EXPECT_EQ(shown["opensWith"].number, static_cast<double>(step));
    const Json tracks = shown["tracks"];
    EXPECT_TRUE(tracks[0].has("events") && tracks[1 + step].has("events"))
        << "the prediction and the step that the page opens with come first";
    EXPECT_TRUE(tracks[2 - step].has("shares") && !tracks[2 - step].has("events"));
  }
  const Json run = data_of(html_page(report, {.detailed_ops = 0}))["runs"][0];
  EXPECT_EQ(run["program"].type, Json::Type::Null);
}

TEST(Page, StaysSmallHoweverManyActionsThereAre) {
  for (const int micro_batches : {300, 320, 800}) {  // 38,400 actions are drawn one by one, 40,960 are not
    const Report report{"huge", {example_run("huge", example_program("1f1b", 64, micro_batches, 1), 0)}};
    EXPECT_LT(html_page(report).size(), 2'000'000u) << micro_batches;
  }
}

TEST(Page, GivesTheBusySecondsOfEachKind) {
  const Report report = small_report();
  const Json track = data_of(html_page(report))["runs"][0]["tracks"][0];
  // 8 forwards of 1.00, 1.04, 1.08 and 1.12 ms, twice; backwards twice as long.
  EXPECT_NEAR(track["busy"][0][0].number, 8.48e-3, 1e-9);
  EXPECT_NEAR(track["busy"][0][1].number, 16.96e-3, 1e-9);
  EXPECT_EQ(track["counts"][0][0].number, 8);
}

TEST(Page, ThinsLongCurvesButKeepsTheirExtremes) {
  Report report = small_report();
  Metric& loss = report.runs[0].metrics[0];
  loss = {"loss", "", {}, {}};
  for (int step = 0; step < 100'000; ++step) {
    loss.steps.push_back(step);
    loss.values.push_back(step == 70'001 ? 99.0 : 2.0);
  }
  const Json curve = data_of(html_page(report))["runs"][0]["metrics"][0];
  EXPECT_LE(curve["values"].size(), 2'000u);
  for (std::vector<double>* numbers : {&loss.steps, &loss.values}) numbers->resize(2'999);
  for (std::size_t step = 0; step < 2'999; ++step) loss.values[step] = 1.0 * (step % 3);
  EXPECT_LE(data_of(html_page(report))["runs"][0]["metrics"][0]["values"].size(), 2'000u);
  double greatest = 0;
  for (const Json& value : curve["values"].list) greatest = std::max(greatest, value.number);
  EXPECT_EQ(greatest, 99.0);
  EXPECT_EQ(curve["steps"].list.front().number, 0);
  EXPECT_EQ(curve["steps"].list.back().number, 99'999) << "the loss at the end is what readers look for";
}

TEST(Page, LeavesAGapWhereALossIsNotFinite) {
  Report report = small_report();
  report.runs[0].metrics[0].values[3] = std::nan("");
  const Json values = data_of(html_page(report))["runs"][0]["metrics"][0]["values"];
  EXPECT_EQ(values[3].type, Json::Type::Null);
  EXPECT_EQ(values[4].type, Json::Type::Number);
}

TEST(Page, OfNothingIsAPage) {
  EXPECT_EQ(data_of(html_page({"", {}}))["runs"].size(), 0u);
  report::Run bare;
  bare.name = "a run without a timeline";
  EXPECT_EQ(data_of(html_page({"", {bare}}))["runs"][0]["tracks"].size(), 0u);
}

TEST(Page, RefusesATimelineOfAnotherProgram) {
  Report report = small_report();
  report.runs[0].program = example_program("gpipe", 3, 2, 1);
  EXPECT_THROW(html_page(report), std::logic_error);
}

}  // namespace
}  // namespace penstock::report
