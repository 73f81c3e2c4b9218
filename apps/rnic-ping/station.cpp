#include "rnic-ping/station.hpp"

#include <span>
#include <utility>

namespace rnic::ping {

namespace {

constexpr uint32_t kDepth = 16;  // of its queues: one message is under way at a time

}  // namespace

Status Station::open(Device device, uint32_t size) {
  size_ = size;
  auto end = workload::make_end(std::move(device), kDepth);
  if (!end) return tl::unexpected(end.error());
  end_ = std::move(*end);
  auto buffer = workload::Buffer::allocate(2 * uint64_t{size}, workload::Paging::Small);
  if (!buffer) return tl::unexpected(buffer.error());
  buffer_ = std::move(*buffer);
  auto region =
      end_->pd.register_memory(std::as_writable_bytes(buffer_.octets()), Access::LocalWrite);
  if (!region) return tl::unexpected(region.error());
  region_ = std::move(*region);
  auto word = workload::Buffer::allocate(workload::kWordOctets, workload::Paging::Small);
  if (!word) return tl::unexpected(word.error());
  word_ = std::move(*word);
  workload::fill(word_.octets(), kWordPattern);
  auto word_region =
      end_->pd.register_memory(std::as_writable_bytes(word_.octets()), Access::RemoteAtomic);
  if (!word_region) return tl::unexpected(word_region.error());
  word_region_ = std::move(*word_region);
  return {};
}

Status Station::post_receive() {
  ReceiveRequest request;
  request.sges = {region_.sge(size_, size_)};
  return end_->qp.post_receive(request);
}

Status Station::post_send(uint64_t offset, uint32_t length) {
  SendRequest request;
  request.sges = {region_.sge(offset, length)};
  return end_->qp.post_send(request);
}

}  // namespace rnic::ping
