// The 48-bit key of ULP framing against MPA's markers.

#include <algorithm>
#include <cmath>

#include "base/prng.hpp"
#include "experiments.hpp"
#include "wire/tuf.hpp"

namespace rnic::experiment {

namespace {

constexpr Framing kFramings[] = {Framing::Mpa, Framing::MpaMarkers, Framing::TufKey,
                                 Framing::TufMarkers};

void overhead(Experiment& e) {
  Table table{
      "key-mode-overhead",
      "4 MB in messages of 64 KB, nothing lost",
      {"framing", "segments", "stream octets", "wire octets", "payload / stream", "payload / wire"},
      {}};
  for (const Framing framing : kFramings) {
    const Transfer run = transfer(hard_path(framing, 0, 0, 1), 64);
    table.rows.push_back(
        {to_string(framing), number(run.segments), number(run.stream_octets),
         number(run.wire_octets),
         percent(static_cast<double>(run.payload) / static_cast<double>(run.stream_octets), 2),
         percent(run.efficiency(), 2)});
    e.findings.push_back(std::string(to_string(framing)) + ": " + percent(run.efficiency(), 2) +
                         " of the wire is payload.");
  }
  e.findings.push_back(
      "ULP framing has no CRC of its own, which saves it 4 octets a PDU that MPA has.");
  e.tables.push_back(std::move(table));
}

/// How much of what came ahead of the order was placed at once.
void placed_early(Experiment& e, const Options& options) {
  const uint32_t seeds = options.extent == Extent::Quick ? 1 : options.seeds;
  Table table{"key-mode-placed-early",
              "Payload placed on arrival, of the stream octets that came ahead of the order",
              {"framing", "loss of segments", "segments cut", "octets ahead of the order",
               "placed on arrival", "peak of held octets", "complete"},
              {}};
  Figure figure{"Placed on arrival although a segment before it was missing (1 % loss)",
                "segments cut by a middlebox, %",
                "share, %",
                false,
                false,
                {}};
  for (const Framing framing : kFramings) {
    Series series{to_string(framing), {}};
    for (const double loss : {0.001, 0.01, 0.03}) {
      for (const double split : {0.0, 0.1, 0.5, 1.0}) {
        uint64_t ahead = 0;
        uint64_t early = 0;
        uint64_t peak = 0;
        bool complete = true;
        for (uint32_t i = 0; i < seeds; ++i) {
          const Transfer run = transfer(hard_path(framing, loss, split, options.seed + i), 64);
          ahead += run.out_of_order;
          early += run.early;
          peak = std::max(peak, run.held_peak);
          complete = complete && run.complete;
        }
        const double share =
            ahead == 0 ? 0 : static_cast<double>(early) / static_cast<double>(ahead);
        table.rows.push_back({to_string(framing), percent(loss), percent(split, 0), number(ahead),
                              percent(share), number(peak), complete ? "yes" : "NO"});
        if (loss != 0.01) continue;
        series.points.emplace_back(split * 100, share * 100);
        if (split == 0 || split == 1) {
          e.findings.push_back(std::string(to_string(framing)) + ", 1 % loss, " +
                               percent(split, 0) + " of the segments cut: " + percent(share) +
                               " of what came ahead of the order was placed on arrival.");
        }
      }
    }
    figure.series.push_back(std::move(series));
  }
  e.figures.push_back(std::move(figure));
  e.tables.push_back(std::move(table));
  e.findings.push_back(
      "ULP framing's markers tell where the next PDU begins, MPA's where the present one did: the "
      "PDU right behind a hole is not found by its own markers, and is held.");
}

/// How often chance makes a segment look like a whole framing PDU, by bits of the key.
void false_positives(Experiment& e, const Options& options) {
  constexpr uint32_t kBits = 20;
  const uint64_t draws = options.extent == Extent::Quick    ? 1u << 20
                         : options.extent == Extent::Normal ? 1u << 24
                                                            : 1u << 27;
  base::Prng prng(42);
  const wire::TufKey key = prng.next() & wire::kTufKeyMask;
  std::vector<uint64_t> hits(kBits + 1);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < draws; ++i) {
    std::array<uint8_t, 64> segment{};
    base::store_be64(segment.data(), prng.next());
    const wire::TufHeader header = wire::load_tuf_header(segment.data());
    const uint64_t different = header.key ^ key;
    for (uint32_t bits = 0; bits <= kBits; ++bits) {
      if ((different >> (48 - bits)) != 0) break;
      ++hits[bits];
    }
    if (wire::is_tuf_frame(segment, key)) ++wrong;
  }
  Figure figure{"A random segment that carries the first bits of the key",
                "bits of the key",
                "probability",
                false,
                true,
                {{"measured", {}}, {"2^-bits", {}}}};
  Table table{"key-mode-false-positives",
              "Random segments that carry the first bits of the key, of " + number(draws),
              {"bits", "segments", "measured", "expected"},
              {}};
  for (uint32_t bits = 0; bits <= 48; ++bits) {
    const double expected = std::ldexp(1.0, -static_cast<int>(bits));
    figure.series[1].points.emplace_back(bits, expected);
    if (bits > kBits) continue;
    const double measured = static_cast<double>(hits[bits]) / static_cast<double>(draws);
    figure.series[0].points.emplace_back(bits, measured);
    if (bits % 4 == 0) {
      table.rows.push_back(
          {number(bits), number(hits[bits]), number(measured, 8), number(expected, 8)});
    }
  }
  const double second = 1e10 / (1518 + 20) / 8;  // segments of 10 Gb/s
  e.findings.push_back(
      "False positives follow 2^-bits as far as they can be counted (" + number(hits[16]) + " of " +
      number(draws) + " random segments carry 16 bits of the key; " + number(wrong) +
      " looked like a whole framing PDU). With all 48 bits and a right length by chance, at " +
      number(second, 0) + " segments a second (10 Gb/s, none of them aligned), one in " +
      number(std::ldexp(1.0, 48) / second / 86400 / 365.25, 1) +
      " years passes the key; the length field, 16 bits more, makes it " +
      number(std::ldexp(1.0, 64) / second / 86400 / 365.25 / 1000, 0) +
      " thousand. A sender that meets its own key by chance makes that segment shorter (the "
      "look-alike rule). A marker of MPA is never guessed: its place follows from the stream "
      "offset, and the FPDU that it points to has to pass its CRC.");
  e.figures.push_back(std::move(figure));
  e.tables.push_back(std::move(table));
}

}  // namespace

Experiment key_mode(const Options& options) {
  Experiment e;
  e.name = "key-mode";
  e.title = "ULP framing's key against MPA's markers";
  e.requirements = "MPAA-7-01, MPAA-7.1-01";
  e.draft =
      "The analysis draft takes alignment to be detectable in every segment (section 7.1). MPA "
      "finds an FPDU behind a hole by markers, ULP framing (draft-ietf-tsvwg-tcp-ulp-frame-00) by "
      "a "
      "48-bit key and a length at the start of every segment.";
  e.setup =
      "One connection, EMSS 1460, 10 Gb/s, round trip 1 ms, 4 MB in messages of 64 KB, loss of "
      "data segments by chance, and a middlebox that cuts a share of the segments in two; means of "
      "the seeds. ULP framing with packing allowed, its marker mode with markers every 512 octets.";
  overhead(e);
  placed_early(e, options);
  false_positives(e, options);
  return e;
}

}  // namespace rnic::experiment
