#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "rnic-demo/demo.hpp"

namespace rnic::demo {

namespace {

constexpr double kWidth = 1040;
constexpr double kHeight = 460;
constexpr double kLeft = 74;
constexpr double kRight = 18;
constexpr double kTop = 18;
constexpr double kBottom = 52;
constexpr size_t kMaxMarks = 3000;
constexpr size_t kMaxLinePoints = 1500;

/// How a fate is drawn; the CSS classes carry the colours.
struct Fate {
  TraceKind kind;
  const char* css;
  const char* label;
};

// Drawn in this order: the rare ones on top.
constexpr std::array<Fate, 5> kFates = {{{TraceKind::InOrder, "in-order", "in order"},
                                         {TraceKind::PlacedEarly, "early", "placed out of order"},
                                         {TraceKind::Held, "held", "held"},
                                         {TraceKind::Retransmitted, "again", "retransmitted"},
                                         {TraceKind::CrcDropped, "crc", "dropped by CRC"}}};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

class Plot {
 public:
  explicit Plot(const Picture& picture) : picture_(picture) {
    start_ = picture.events.front().time.count();
    end_ = picture.events.back().time.count();
    for (const TraceEvent& event : picture.events) top_ = std::max(top_, event.end);
    if (end_ == start_) end_ = start_ + 1;
  }

  std::string draw() {
    std::string svg = "<svg viewBox=\"0 0 " + number(kWidth) + " " + number(kHeight) +
                      "\" role=\"img\" aria-label=\"segments of one message over time\">\n";
    axes(svg);
    delivery_line(svg);
    for (const Fate& fate : kFates) marks(svg, fate);
    return svg + "</svg>\n" + legend();
  }

 private:
  [[nodiscard]] double x(int64_t time_ns) const {
    return kLeft + (kWidth - kLeft - kRight) * static_cast<double>(time_ns - start_) /
                       static_cast<double>(end_ - start_);
  }
  [[nodiscard]] double y(uint64_t offset) const {
    return kHeight - kBottom -
           (kHeight - kTop - kBottom) * static_cast<double>(offset) / static_cast<double>(top_);
  }

  void axes(std::string& svg) const {
    const double span_us = static_cast<double>(end_ - start_) / 1000.0;
    double step = std::pow(10.0, std::floor(std::log10(span_us / 5)));
    while (span_us / step > 8) step *= span_us / step > 16 ? 2.5 : 2;
    for (int tick = 0; tick * step <= span_us; ++tick) {
      const double t = tick * step;
      const double at = x(start_ + static_cast<int64_t>(t * 1000));
      svg += "<path class=\"grid\" d=\"M" + number(at) + " " + number(kTop) + "V" +
             number(kHeight - kBottom) + "\"/><text class=\"tick\" x=\"" + number(at) + "\" y=\"" +
             number(kHeight - kBottom + 18) + "\" text-anchor=\"middle\">" +
             number(t).substr(
                 0, number(t).find(".0") == std::string::npos ? 32 : number(t).size() - 2) +
             "</text>\n";
    }
    for (uint64_t offset = 0; offset <= top_; offset += 256u << 10) {
      svg += "<path class=\"grid\" d=\"M" + number(kLeft) + " " + number(y(offset)) + "H" +
             number(kWidth - kRight) + "\"/><text class=\"tick\" x=\"" + number(kLeft - 8) +
             "\" y=\"" + number(y(offset) + 4) + "\" text-anchor=\"end\">" +
             (offset == 0 ? "0" : size_text(offset)) + "</text>\n";
    }
    svg += "<text class=\"axis\" x=\"" + number((kWidth + kLeft) / 2) + "\" y=\"" +
           number(kHeight - 8) +
           "\" text-anchor=\"middle\">microseconds since the first event</text>\n"
           "<text class=\"axis\" transform=\"translate(16 " +
           number(kHeight / 2 - 16) +
           ") rotate(-90)\" text-anchor=\"middle\">stream offset</text>\n";
  }

  void delivery_line(std::string& svg) const {
    std::vector<const TraceEvent*> points;
    for (const TraceEvent& event : picture_.events) {
      if (event.kind == TraceKind::Delivered) points.push_back(&event);
    }
    if (points.empty()) return;
    const size_t stride = points.size() / kMaxLinePoints + 1;
    std::string path = "M" + number(x(start_)) + " " + number(y(0));
    for (size_t i = 0; i < points.size(); i += stride) {
      path += "H" + number(x(points[i]->time.count())) + "V" + number(y(points[i]->end));
    }
    path += "H" + number(x(points.back()->time.count())) + "V" + number(y(points.back()->end));
    svg += "<path class=\"delivered\" d=\"" + path + "\"/>\n";
  }

  void marks(std::string& svg, const Fate& fate) {
    size_t total = 0;
    for (const TraceEvent& event : picture_.events) total += event.kind == fate.kind ? 1 : 0;
    counts_[static_cast<size_t>(&fate - kFates.data())] = total;
    if (total == 0) return;
    // Only the ordinary case is ever thinned: whatever went another way stays visible.
    const size_t stride = fate.kind == TraceKind::InOrder ? total / (kMaxMarks / 2) + 1
                                                          : total / (kMaxMarks / 10) + 1;
    std::string path;
    size_t index = 0;
    for (const TraceEvent& event : picture_.events) {
      if (event.kind != fate.kind || index++ % stride != 0) continue;
      const double low = y(event.begin);
      const double high = std::min(y(event.end), low - 1.5);
      path += "M" + number(x(event.time.count())) + " " + number(low) + "V" + number(high);
    }
    svg += std::string("<path class=\"mark ") + fate.css + "\" d=\"" + path + "\"/>\n";
  }

  [[nodiscard]] std::string legend() const {
    std::string html = "<p class=\"legend\">";
    for (size_t i = 0; i < kFates.size(); ++i) {
      html += std::string("<span><i class=\"") + kFates[i].css + "\"></i>" + kFates[i].label +
              " <b>" + std::to_string(counts_[i]) + "</b></span>";
    }
    return html + "<span><i class=\"line\"></i>line of delivery</span></p>\n";
  }

  const Picture& picture_;
  int64_t start_ = 0;
  int64_t end_ = 0;
  uint64_t top_ = 1;
  std::array<size_t, kFates.size()> counts_{};
};

}  // namespace

std::string to_svg(const Picture& picture) { return Plot(picture).draw(); }

}  // namespace rnic::demo
