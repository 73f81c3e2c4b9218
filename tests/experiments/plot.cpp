// A figure as SVG.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "report.hpp"

namespace rnic::experiment {

namespace {

constexpr double kWidth = 900;
constexpr double kHeight = 400;
constexpr double kLeft = 86;
constexpr double kRight = 20;
constexpr double kTop = 14;
constexpr double kBottom = 52;
constexpr std::array<const char*, 8> kColours = {"#2f6fd0", "#d6453d", "#12a594", "#e0a100",
                                                 "#a534c9", "#5c6778", "#8a5a2b", "#e0559b"};
constexpr std::array<const char*, 4> kDashes = {"", "7 4", "2 4", "9 3 2 3"};

std::string at(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string tick_text(double value) {
  const auto scaled = [](double v, const char* unit) { return number(v, 2) + unit; };
  const double size = std::abs(value);
  if (size >= 1e9) return scaled(value / 1e9, " G");
  if (size >= 1e6) return scaled(value / 1e6, " M");
  if (size >= 1e4) return scaled(value / 1e3, " k");
  if (size != 0 && size < 1e-3) {
    char text[32];
    std::snprintf(text, sizeof text, "%.0e", value);
    return text;
  }
  return number(value, 3);
}

/// One axis: values to a line of unit length.
class Axis {
 public:
  Axis(bool log, double low, double high) : log_(log), low_(low), high_(high) {
    if (log_) {
      low_ = std::pow(10, std::floor(std::log10(low_)));
      high_ = std::pow(10, std::ceil(std::log10(high_)));
      if (high_ <= low_) high_ = low_ * 10;
      for (double v = low_; v < high_ * 1.01; v *= 10) ticks_.push_back(v);
      // At most a dozen marks.
      while (ticks_.size() > 12) {
        std::vector<double> half;
        for (size_t i = 0; i < ticks_.size(); i += 2) half.push_back(ticks_[i]);
        ticks_ = half;
      }
      return;
    }
    if (high_ <= low_) high_ = low_ + 1;
    double step = std::pow(10, std::floor(std::log10((high_ - low_) / 5)));
    while ((high_ - low_) / step > 8) step *= (high_ - low_) / step > 16 ? 2.5 : 2;
    low_ = std::floor(low_ / step) * step;
    high_ = std::ceil(high_ / step - 1e-9) * step;
    for (double v = low_; v < high_ + step / 2; v += step) ticks_.push_back(v);
  }

  [[nodiscard]] double place(double value) const {
    if (!log_) return (value - low_) / (high_ - low_);
    return (std::log10(value) - std::log10(low_)) / (std::log10(high_) - std::log10(low_));
  }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }

 private:
  bool log_;
  double low_;
  double high_;
  std::vector<double> ticks_;
};

/// A logarithmic axis has no place for 0.
bool fits(const Figure& figure, const std::pair<double, double>& point) {
  return (!figure.log_x || point.first > 0) && (!figure.log_y || point.second > 0);
}

Axis axis_of(const Figure& figure, bool of_x) {
  const bool log = of_x ? figure.log_x : figure.log_y;
  double low = log ? 1e300 : (of_x ? 1e300 : 0);
  double high = -1e300;
  for (const Series& series : figure.series) {
    for (const auto& point : series.points) {
      if (!fits(figure, point)) continue;
      const double value = of_x ? point.first : point.second;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (high < low) low = 1, high = 10;
  return {log, low, high};
}

double x_at(const Axis& axis, double value) {
  return kLeft + (kWidth - kLeft - kRight) * axis.place(value);
}
double y_at(const Axis& axis, double value) {
  return kHeight - kBottom - (kHeight - kTop - kBottom) * axis.place(value);
}

void draw_axes(std::string& svg, const Figure& figure, const Axis& x, const Axis& y) {
  for (const double value : x.ticks()) {
    const std::string place = at(x_at(x, value));
    svg += "<path class=\"grid\" d=\"M" + place + " " + at(kTop) + "V" + at(kHeight - kBottom) +
           "\"/><text class=\"tick\" x=\"" + place + "\" y=\"" + at(kHeight - kBottom + 17) +
           "\" text-anchor=\"middle\">" + tick_text(value) + "</text>\n";
  }
  for (const double value : y.ticks()) {
    const double place = y_at(y, value);
    svg += "<path class=\"grid\" d=\"M" + at(kLeft) + " " + at(place) + "H" + at(kWidth - kRight) +
           "\"/><text class=\"tick\" x=\"" + at(kLeft - 7) + "\" y=\"" + at(place + 4) +
           "\" text-anchor=\"end\">" + tick_text(value) + "</text>\n";
  }
  svg += "<text class=\"axis\" x=\"" + at((kWidth + kLeft) / 2) + "\" y=\"" + at(kHeight - 10) +
         "\" text-anchor=\"middle\">" + figure.x_label +
         "</text>\n<text class=\"axis\" transform=\"translate(16 " +
         at((kHeight - kBottom + kTop) / 2) + ") rotate(-90)\" text-anchor=\"middle\">" +
         figure.y_label + "</text>\n";
}

}  // namespace

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  std::string out = text;
  if (out.find('.') == std::string::npos) return out;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string to_svg(const Figure& figure) {
  const Axis x = axis_of(figure, true);
  const Axis y = axis_of(figure, false);
  std::string svg = "<svg viewBox=\"0 0 " + at(kWidth) + " " + at(kHeight) +
                    "\" role=\"img\" aria-label=\"" + figure.title + "\">\n";
  draw_axes(svg, figure, x, y);
  std::string legend = "<p class=\"legend\">";
  for (size_t i = 0; i < figure.series.size(); ++i) {
    const Series& series = figure.series[i];
    const std::string colour = kColours[i % kColours.size()];
    const std::string dash = kDashes[i % kDashes.size()];
    std::string path;
    std::string marks;
    for (const auto& point : series.points) {
      if (!fits(figure, point)) continue;
      const std::string px = at(x_at(x, point.first));
      const std::string py = at(y_at(y, point.second));
      path += (path.empty() ? "M" : "L") + px + " " + py;
      if (series.points.size() <= 40) {
        marks += "<circle cx=\"" + px + "\" cy=\"" + py + "\" r=\"3\" fill=\"" + colour + "\"/>";
      }
    }
    svg += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour +
           "\" stroke-width=\"2\" stroke-dasharray=\"" + dash + "\"/>" + marks + "\n";
    legend += "<span><i style=\"background:" + colour + "\"></i>" + series.name + "</span>";
  }
  return svg + "</svg>\n" + legend + "</p>\n";
}

}  // namespace rnic::experiment
