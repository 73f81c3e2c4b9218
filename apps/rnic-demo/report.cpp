#include <cstdio>

#include "rnic-demo/demo.hpp"

namespace rnic::demo {

namespace {

constexpr const char* kStyle = R"css(
:root{--ink:#1b2330;--dim:#5c6778;--line:#dfe4ea;--back:#fbfcfd;--card:#fff;--in:#5b8def;
--early:#12a594;
--held:#e0a100;--again:#d6453d;--crc:#a534c9;--del:#1b2330}
@media(prefers-color-scheme:dark){:root{--ink:#e8ecf2;--dim:#9aa6b6;--line:#2c3440;
--back:#12161c;--card:#181e26;
--in:#6f9df5;--early:#2bc4b2;--held:#f0b93a;--again:#f0675f;--crc:#c96be8;--del:#e8ecf2}}
body{margin:0 auto;max-width:1100px;padding:32px 20px 64px;background:var(--back);
color:var(--ink);
font:15px/1.55 system-ui,sans-serif}
h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:40px 0 8px}p{margin:6px 0 12px}
.lead{color:var(--dim);max-width:75ch}.verdict{font-size:17px;font-weight:600;padding:10px 14px;
border-radius:8px;
display:inline-block;background:color-mix(in srgb,var(--early) 16%,transparent)}
.verdict.bad{background:color-mix(in srgb,var(--again) 22%,transparent)}
figure{margin:14px 0 26px;padding:14px 16px 6px;background:var(--card);
border:1px solid var(--line);border-radius:10px}
figcaption{font-weight:600;margin-bottom:6px}svg{width:100%;height:auto;display:block}
.grid{stroke:var(--line);fill:none}.tick,.axis{fill:var(--dim);font-size:12px}
.mark{fill:none;stroke-width:2.6;stroke-linecap:round}.delivered{fill:none;stroke:var(--del);
stroke-width:1.1;opacity:.75}
.in-order{stroke:var(--in);background:var(--in)}.early{stroke:var(--early);
background:var(--early)}
.held{stroke:var(--held);background:var(--held)}.again{stroke:var(--again);
background:var(--again)}
.crc{stroke:var(--crc);background:var(--crc)}.mark.again,.mark.crc{stroke-width:4.2}
.mark.in-order,.mark.early,.mark.held,.mark.again,.mark.crc{background:none}
.legend{display:flex;flex-wrap:wrap;gap:6px 20px;font-size:13px;color:var(--dim)}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;
vertical-align:-1px}
.legend i.line{height:2px;background:var(--del);vertical-align:4px;width:18px}
.legend b{color:var(--ink)}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:4px 9px;border-bottom:1px solid var(--line)}th{color:var(--dim);
font-weight:600}
th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}
.facts td{text-align:left}.facts td:first-child{color:var(--dim);white-space:nowrap}
tr.headline td{font-weight:600}.no{color:var(--again);font-weight:700}
.scroll{max-height:560px;overflow:auto;border:1px solid var(--line);border-radius:10px;
background:var(--card)}
.scroll th{position:sticky;top:0;background:var(--card)}
pre{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px;
overflow:auto;font-size:12.5px}
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

std::string row(const Run& run) {
  char text[640];
  std::snprintf(
      text, sizeof text,
      "<tr%s><td>%s</td><td>%s</td><td>%s</td><td>%llu</td><td>%.3f</td><td>%.0f</td>"
      "<td>%.1f</td><td>%llu</td><td>%llu</td><td>%llu</td><td>%llu</td><td%s</td></tr>\n",
      is_headline_size(run.size) ? " class=\"headline\"" : "", workload::to_string(run.operation),
      to_string(run.wire), size_text(run.size).c_str(),
      static_cast<unsigned long long>(run.messages), run.goodput_gbps, run.msgs_per_s,
      run.aligned_pct, static_cast<unsigned long long>(run.ooo_placed_octets),
      static_cast<unsigned long long>(run.held_octets),
      static_cast<unsigned long long>(run.retransmissions),
      static_cast<unsigned long long>(run.crc_drops), run.verified ? ">yes" : " class=\"no\">NO");
  return text;
}

void header(std::string& html, const Campaign& campaign) {
  size_t verified = 0;
  uint64_t placed = 0;
  uint64_t dropped = 0;
  for (const Run& run : campaign.runs) {
    verified += run.verified ? 1 : 0;
    if (run.wire != Wire::Hostile) continue;
    placed += run.ooo_placed_octets;
    dropped += run.crc_drops;
  }
  const bool good = campaign.complete && verified == campaign.runs.size();
  html +=
      "<h1>softrnic: two soft RNICs, verified</h1>\n<p class=\"lead\">Two software iWARP NICs in "
      "one process, each with its own TCP/IP stack, queue pairs and registered memory, move data "
      "by Send, RDMA Write, RDMA Read and Immediate Data, and carry out atomics, over a clean wire "
      "and over a hostile one. Every octet is compared at the far end; of each atomic, what it "
      "found and what it left.</p>\n<p class=\"verdict" +
      std::string(good ? "" : " bad") + "\">" + std::to_string(verified) + " of " +
      std::to_string(campaign.runs.size()) + " runs verified" +
      (campaign.complete ? "" : ", campaign incomplete") +
      "</p>\n<p class=\"lead\">On the hostile wire " + std::to_string(placed) +
      " octets were placed in their final memory out of order, and " + std::to_string(dropped) +
      " segments with a wrong MPA CRC were dropped before TCP took them, so "
      "that the sender sent them again.</p>\n";
}

void pictures(std::string& html, const Campaign& campaign) {
  if (campaign.pictures.empty()) return;
  html +=
      "<h2>One message of 1 MB on the hostile wire</h2>\n<p class=\"lead\">Each mark is a segment: "
      "when it "
      "arrived (across) and where in the stream it stands (up). Marks above the dark line came "
      "early: "
      "those <em>placed out of order</em> were located by an MPA marker, checked, and written "
      "straight "
      "into the application's memory; those <em>held</em> had to wait. The dark line is what has "
      "been "
      "delivered in order; it stands still at a gap and jumps when the gap is filled. "
      "<em>Retransmitted</em> marks show when the sender sent a segment again.</p>\n";
  for (const Picture& picture : campaign.pictures) {
    html += "<figure><figcaption>" + std::string(workload::to_string(picture.operation)) +
            ", 1 MB</figcaption>\n" + to_svg(picture) + "</figure>\n";
  }
}

}  // namespace

std::string to_html(const Campaign& campaign) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>softrnic demo</title>\n<style>" +
      std::string(kStyle) + "</style></head><body>\n";
  header(html, campaign);
  html += "<table class=\"facts\">\n";
  for (const auto& [name, value] : campaign.facts) {
    html += "<tr><td>" + escape(name) + "</td><td>" + escape(value) + "</td></tr>\n";
  }
  html += "</table>\n";
  pictures(html, campaign);
  html +=
      "<h2>Every run</h2>\n<p class=\"lead\">Goodput counts payload only; Gb/s are 10<sup>9</sup> "
      "bits. "
      "Aligned: data segments that begin and end at an FPDU boundary.</p>\n"
      "<div "
      "class=\"scroll\"><table><thead><tr><th>op</th><th>wire</th><th>size</th><th>messages</th>"
      "<th>Gb/s</th><th>messages/s</th><th>aligned %</th><th>octets placed out of order</th>"
      "<th>octets held</th><th>retransmissions</th><th>CRC drops</th><th>verified</th></tr></thead>"
      "<tbody>\n";
  for (const Run& run : campaign.runs) html += row(run);
  html += "</tbody></table></div>\n<h2>Configuration</h2>\n<pre>" + escape(campaign.configuration) +
          "</pre>\n</body></html>\n";
  return html;
}

}  // namespace rnic::demo
