// SPDX-License-Identifier: Apache-2.0
#include "report/html_charts.h"

#include "base/error.h"
#include "base/text.h"
#include "report/html_json.h"

namespace penstock::report {
namespace {

std::string unit_json(Unit unit) {
  constexpr const char* names[] = {"seconds", "bytes", "count"};
  return json_text(names[static_cast<std::size_t>(unit)]);
}

std::string part_json(const BarChart::Part& part) {
  JsonList values;
  for (const double value : part.values) values.add(exact_number(value));
  return JsonObject().add("name", json_text(part.name)).add("values", values.text()).text();
}

}  // namespace

std::string bar_chart_json(const BarChart& chart) {
  JsonList rows, parts;
  for (const std::string& row : chart.rows) rows.add(json_text(row));
  for (const BarChart::Part& part : chart.parts) {
    PENSTOCK_CHECK(part.values.size() == chart.rows.size(), "a part has a value for each row");
    parts.add(part_json(part));
  }
  return JsonObject()
      .add("title", json_text(chart.title))
      .add("note", json_text(chart.note))
      .add("unit", unit_json(chart.unit))
      .add("rows", rows.text())
      .add("parts", parts.text())
      .text();
}

std::string point_chart_json(const PointChart& chart) {
  JsonList points;
  for (const PointChart::Point& point : chart.points) {
    points.add(JsonObject()
                   .add("name", json_text(point.name))
                   .add("x", exact_number(point.x))
                   .add("y", exact_number(point.y))
                   .text());
  }
  return JsonObject()
      .add("title", json_text(chart.title))
      .add("note", json_text(chart.note))
      .add("x", json_text(chart.x_name))
      .add("y", json_text(chart.y_name))
      .add("xUnit", unit_json(chart.x_unit))
      .add("yUnit", unit_json(chart.y_unit))
      .add("compared", chart.compared ? "true" : "false")
      .add("points", points.text())
      .text();
}

std::string heat_map_json(const HeatMap& map) {
  JsonList rows;
  for (const std::vector<double>& row : map.values) {
    JsonList values;
    for (const double value : row) values.add(exact_number(value));
    rows.add(values.text());
  }
  return JsonObject()
      .add("title", json_text(map.title))
      .add("note", json_text(map.note))
      .add("row", json_text(map.row_name))
      .add("column", json_text(map.column_name))
      .add("values", rows.text())
      .text();
}

}  // namespace penstock::report
