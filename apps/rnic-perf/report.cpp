#include <algorithm>
#include <iostream>

#include "rnic-perf/perf.hpp"

namespace rnic::perf {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double percentile_us(std::vector<int64_t>& nanoseconds, double p) {
  if (nanoseconds.empty()) return 0;
  const auto at = static_cast<size_t>(p * static_cast<double>(nanoseconds.size() - 1));
  std::nth_element(nanoseconds.begin(), nanoseconds.begin() + static_cast<ptrdiff_t>(at),
                   nanoseconds.end());
  return static_cast<double>(nanoseconds[at]) / 1000.0;
}

void print_table(const nlohmann::ordered_json& result) {
  for (const auto& [key, value] : result.items()) {
    std::cout << "  " << key << std::string(key.size() < 18 ? 18 - key.size() : 1, ' ')
              << (value.is_string() ? value.get<std::string>() : value.dump()) << "\n";
  }
}

Result<Config> configuration(const Options& options) {
  Config config = workload::default_configuration(options.port, options.both_ends);
  if (!options.config_file.empty()) {
    auto file = Config::from_file(options.config_file);
    if (!file) return file;
    config = std::move(*file);
    workload::apply(options.port, config);
  }
  workload::apply_address(options.own_address, options.device, config);
  for (const std::string& assignment : options.overrides) config.set(assignment);
  // Now, before we add keys of our own: the message is about what the user wrote.
  if (Status status = config.check(); !status) return tl::unexpected(status.error());
  return config;
}

}  // namespace rnic::perf
