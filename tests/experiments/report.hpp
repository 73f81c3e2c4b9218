/// \file
/// What an experiment reports, and the three forms of it: page, document, tables.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rnic::experiment {

/// One line of a figure.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // by ascending x
};

struct Figure {
  std::string title;
  std::string x_label;  ///< with its unit
  std::string y_label;
  bool log_x = false;
  bool log_y = false;
  std::vector<Series> series;
};

struct Table {
  std::string name;  ///< of its file: NAME.csv
  std::string title;
  std::vector<std::string> columns;  ///< with their units
  std::vector<std::vector<std::string>> rows;
  bool detail = false;  ///< too long for the document: only its file and the page have it
};

struct Experiment {
  std::string name;  ///< for --only
  std::string title;
  std::string requirements;           ///< IDs of the catalogue
  std::string draft;                  ///< what the draft says, and where
  std::string setup;                  ///< what was done
  std::vector<std::string> findings;  ///< what came out; one sentence or two each
  std::vector<Table> tables;
  std::vector<Figure> figures;
};

/// "12", "12.3": `digits` behind the point, no needless zeros.
[[nodiscard]] std::string number(double value, int digits = 2);
[[nodiscard]] inline std::string number(uint64_t value) { return std::to_string(value); }
[[nodiscard]] inline std::string number(uint32_t value) { return std::to_string(value); }
/// A share of 1 in per cent.
[[nodiscard]] inline std::string percent(double share, int digits = 1) {
  return number(share * 100, digits) + " %";
}

/// The figure as SVG with axes, units and a legend.
[[nodiscard]] std::string to_svg(const Figure& figure);
/// \param how the command that gave the figures
[[nodiscard]] std::string to_html(const std::vector<Experiment>& experiments,
                                  const std::string& how);
[[nodiscard]] std::string to_markdown(const std::vector<Experiment>& experiments,
                                      const std::string& how);
[[nodiscard]] std::string to_csv(const Table& table);

}  // namespace rnic::experiment
