#include "report.hpp"

#include <algorithm>

namespace rnic::experiment {

namespace {

constexpr const char* kStyle = R"css(
:root{--ink:#1b2330;--dim:#5c6778;--line:#dfe4ea;--back:#fbfcfd;--card:#fff}
@media(prefers-color-scheme:dark){:root{--ink:#e8ecf2;--dim:#9aa6b6;--line:#2c3440;
--back:#12161c;--card:#181e26}}
body{margin:0 auto;max-width:1000px;padding:32px 20px 64px;background:var(--back);
color:var(--ink);font:15px/1.55 system-ui,sans-serif}
h1{font-size:26px;margin:0 0 4px}h2{font-size:20px;margin:48px 0 6px}h3{font-size:15px;
margin:22px 0 4px}p{margin:6px 0 10px;max-width:80ch}
.dim{color:var(--dim)}.ids{font-size:13px;color:var(--dim)}
blockquote{margin:8px 0;padding:2px 14px;border-left:3px solid var(--line)}
figure{margin:14px 0 22px;padding:12px 16px 6px;background:var(--card);
border:1px solid var(--line);border-radius:10px}figcaption{font-weight:600;margin-bottom:6px}
svg{width:100%;height:auto;display:block}.grid{stroke:var(--line);fill:none}
.tick,.axis{fill:var(--dim);font-size:12px}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:13px;color:var(--dim)}
.legend i{display:inline-block;width:16px;height:4px;border-radius:2px;margin-right:6px;
vertical-align:3px}
.scroll{overflow:auto;border:1px solid var(--line);border-radius:10px;background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:4px 9px;border-bottom:1px solid var(--line)}th{color:var(--dim);
font-weight:600}th:first-child,td:first-child{text-align:left}
)css";

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

Figure escaped(Figure figure) {
  for (std::string* text : {&figure.title, &figure.x_label, &figure.y_label}) *text = escape(*text);
  for (Series& series : figure.series) series.name = escape(series.name);
  return figure;
}

std::string html_table(const Table& table) {
  std::string html =
      "<h3>" + escape(table.title) + "</h3>\n<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& column : table.columns) html += "<th>" + escape(column) + "</th>";
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + escape(cell) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string markdown_table(const Table& table) {
  std::string text = "| ";
  std::string rule = "|";
  for (const std::string& column : table.columns) {
    text += column + " | ";
    rule += rule.size() == 1 ? "---|" : "---:|";
  }
  text.pop_back();
  text += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const std::string& cell : row) {
      text += " ";
      for (const char c : cell) text += c == '|' ? std::string("\\|") : std::string(1, c);
      text += " |";
    }
    text += "\n";
  }
  return text;
}

/// Lines of at most 100 columns; `indent` in front of all but the first.
std::string wrapped(const std::string& text, const std::string& indent = "") {
  std::string out;
  std::string line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (line.size() > indent.size() && line.size() + word.size() > 100) {
      out += line + "\n";
      line = indent;
    }
    if (line.size() > (out.empty() ? 0 : indent.size())) line += " ";
    line += word;
    at = end + 1;
  }
  return out + line + "\n";
}

constexpr const char* kIntroduction =
    "The MPA analysis draft (draft-elzur-iwarp-mpa-tcp-analysis-00) argues for header alignment "
    "and "
    "against forbidding packing, by arithmetic. Here the same questions are put to the stack "
    "itself: "
    "two TCP engines with their framing layers on a simulated link, in virtual time. The same "
    "seeds "
    "give the same figures on any machine.";

constexpr const char* kFigures =
    "Wire octets count everything that keeps an Ethernet busy: a TCP segment and 58 octets of IPv4 "
    "header, Ethernet header, FCS, preamble and gap. EMSS is the MTU less 40 (no timestamps).";

}  // namespace

std::string to_html(const std::vector<Experiment>& experiments, const std::string& how) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>softrnic: the analysis draft as experiments</title>\n<style>" +
      std::string(kStyle) +
      "</style></head><body>\n<h1>The analysis draft as experiments</h1>\n<p>" +
      escape(kIntroduction) + "</p>\n<p class=\"dim\">" + escape(kFigures) +
      "</p>\n<p class=\"dim\">" + escape(how) + "</p>\n";
  for (const Experiment& e : experiments) {
    html += "<h2 id=\"" + e.name + "\">" + escape(e.title) + "</h2>\n<p class=\"ids\">" +
            escape(e.requirements) + "</p>\n<blockquote><p>" + escape(e.draft) +
            "</p></blockquote>\n<p class=\"dim\">" + escape(e.setup) + "</p>\n<ul>\n";
    for (const std::string& finding : e.findings) html += "<li>" + escape(finding) + "</li>\n";
    html += "</ul>\n";
    for (const Figure& figure : e.figures) {
      const Figure safe = escaped(figure);
      html +=
          "<figure><figcaption>" + safe.title + "</figcaption>\n" + to_svg(safe) + "</figure>\n";
    }
    for (const Table& table : e.tables) {
      if (table.detail) html += "<details><summary>" + escape(table.title) + "</summary>\n";
      html += html_table(table);
      if (table.detail) html += "</details>\n";
    }
  }
  return html + "</body></html>\n";
}

std::string to_markdown(const std::vector<Experiment>& experiments, const std::string& how) {
  std::string text = "# The analysis draft as experiments\n\n" + wrapped(kIntroduction) + "\n" +
                     wrapped(kFigures) + "\n" +
                     wrapped(
                         "This page was written by the program (`./scripts/experiment "
                         "--write-docs`); the plots are in `out/experiments/report.html`, the "
                         "tables beside it as CSV. " +
                         how);
  for (const Experiment& e : experiments) {
    text += "\n## " + e.title + "\n\n" + wrapped("`--only " + e.name + "`. " + e.requirements) +
            "\n" + wrapped("**The draft:** " + e.draft) + "\n" + wrapped("**Set-up:** " + e.setup) +
            "\n**Measured:**\n\n";
    for (const std::string& finding : e.findings) text += wrapped("- " + finding, "  ");
    for (const Table& table : e.tables) {
      const std::string file = table.title + " (`" + table.name + ".csv`)";
      text += "\n" + wrapped(file + (table.detail ? " is in the file and on the page." : ":"));
      if (!table.detail) text += "\n" + markdown_table(table);
    }
  }
  return text;
}

std::string to_csv(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text;
    for (const std::string& cell : cells) {
      if (&cell != cells.data()) text += ",";
      const bool quoted = cell.find_first_of(",\"\n") != std::string::npos;
      if (!quoted) {
        text += cell;
        continue;
      }
      text += '"';
      for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
      text += '"';
    }
    return text + "\n";
  };
  std::string csv = line(table.columns);
  for (const auto& row : table.rows) csv += line(row);
  return csv;
}

}  // namespace rnic::experiment
