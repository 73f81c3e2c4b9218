// Registered memory the way an application has it: which memory may be, and how offsets, keys,
// domains and queue pairs are chosen.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "verbs/mapped_memory.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

/// Pages of the process that nobody else has; unmapped at the end.
class Pages {
 public:
  Pages(size_t count, int protection, int flags = 0, int file = -1)
      : size_(count * kPage),
        at_(mmap(nullptr, size_, protection,
                 (file < 0 ? MAP_ANONYMOUS | MAP_PRIVATE : MAP_SHARED) | flags, file, 0)) {}
  ~Pages() {
    if (is_mapped()) munmap(at_, size_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] bool is_mapped() const { return at_ != MAP_FAILED; }
  [[nodiscard]] std::span<std::byte> all() const { return {static_cast<std::byte*>(at_), size_}; }
  void unmap(size_t page) const { EXPECT_EQ(munmap(all().data() + page * kPage, kPage), 0); }
  void protect(size_t page, int protection) const {
    EXPECT_EQ(mprotect(all().data() + page * kPage, kPage, protection), 0);
  }
  /// How many of its pages the machine backs.
  [[nodiscard]] size_t resident() const {
    std::vector<unsigned char> pages(size_ / kPage);
    EXPECT_EQ(mincore(at_, size_, pages.data()), 0);
    return static_cast<size_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1) != 0; }));
  }

  static const size_t kPage;

 private:
  size_t size_;
  void* at_;
};
const size_t Pages::kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

class MemoryTest : public ::testing::TestWithParam<bool> {
 protected:
  template <typename T>
  static ErrorCode code_of(const tl::expected<T, Error>& result) {
    EXPECT_FALSE(result.has_value());
    return result ? ErrorCode{} : result.error().code;
  }
  /// One Write of the region's octets into `far`, and a Read of them back.
  void expect_reachable(MemoryRegion& region, std::span<std::byte> memory) {
    const auto size = static_cast<uint32_t>(region.length());
    Memory near(a_.pd, octets(size, 77), Access::LocalWrite);
    SendRequest write = request(Opcode::Write, near.all(), 1);
    write.remote = {region.stag(), region.address()};
    must(a_.qp.post_send(write));
    world_.expect_done(a_.send_cq, 1, size);
    SendRequest read = request(Opcode::Read, near.all(), 2);
    read.remote = write.remote;
    const std::vector<uint8_t> sent = near.data;
    std::ranges::fill(near.data, uint8_t{0});
    must(a_.qp.post_send(read));
    world_.expect_done(a_.send_cq, 2, size);
    EXPECT_EQ(near.data, sent);
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(sent)), memory));
  }
  /// Posts a Write of one octet there, which the far device has to refuse.
  void expect_unreachable(uint32_t stag, uint64_t offset) {
    Memory near(a_.pd, octets(1, 1), Access::LocalRead);
    SendRequest write = request(Opcode::Write, near.all(), 9);
    write.remote = {stag, offset};
    must(a_.qp.post_send(write));
    EXPECT_TRUE(world_.await<event::TerminateSent>(world_.right, b_.qp.number()));
  }

  World world_{loopback_config(GetParam())};
  Side a_{world_.left};
  Side b_{world_.right};
};
INSTANTIATE_TEST_SUITE_P(InlineAndThreaded, MemoryTest, ::testing::Bool());

// The heap, the stack, a file, memory of no octet, hugepages where the machine has some; and not a
// page of it is touched by registering it.
TEST_P(MemoryTest, AnyMemoryOfTheProcess_VERBS_29) {
  world_.connect(a_, b_);
  std::array<std::byte, 3000> on_the_stack{};
  std::vector<std::byte> on_the_heap(70'001);
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(ftruncate(fileno(file), static_cast<off_t>(4 * Pages::kPage)), 0);
  const Pages in_a_file(4, PROT_READ | PROT_WRITE, 0, fileno(file));
  const Pages anonymous(8, PROT_READ | PROT_WRITE);
  const std::vector<std::span<std::byte>> all{on_the_stack, on_the_heap, in_a_file.all(),
                                              anonymous.all()};
  EXPECT_EQ(anonymous.resident(), 0u);
  for (const std::span<std::byte> memory : all) {
    MemoryRegion region = must(b_.pd.register_memory(memory, kEverything));
    EXPECT_EQ(anonymous.resident(), 0u) << "nothing of it was touched";
    if (memory.data() == anonymous.all().data()) continue;
    expect_reachable(region, memory);
    must(region.deregister());
  }
  const MemoryRegion empty = must(b_.pd.register_memory({}, kEverything));
  EXPECT_EQ(empty.length(), 0u);
  EXPECT_NE(empty.stag(), 0u);
  std::fclose(file);
}

TEST_P(MemoryTest, HugePages) {
  const Pages huge((2u << 20) / Pages::kPage, PROT_READ | PROT_WRITE, MAP_HUGETLB);
  if (!huge.is_mapped()) GTEST_SKIP() << "no hugepage is free";
  world_.connect(a_, b_);
  MemoryRegion region = must(b_.pd.register_memory(huge.all(), kEverything));
  expect_reachable(region, huge.all());
}

// DDP-8.3.2-02 VERBS-29: what is not the process's own, or what it may itself not do, no STag gives
// to anybody. A range is looked at to its last octet.
// RDMAP-8.1-01: RFC 5040 s.8.1.2(4)
TEST_P(MemoryTest, OnlyMemoryThatTheProcessHas_SEC_7_3_01) {
  const Pages pages(8, PROT_READ | PROT_WRITE);
  pages.unmap(2);
  pages.protect(4, PROT_READ);
  pages.protect(6, PROT_NONE);
  const auto octets = [&](size_t from, size_t to) { return pages.all().subspan(from, to - from); };
  const size_t page = Pages::kPage;
  struct Row {
    std::span<std::byte> memory;
    bool readable;
    bool writable;
  };
  for (const Row& row :
       {Row{octets(0, 2 * page), true, true}, Row{octets(0, 2 * page + 1), false, false},
        Row{octets(2 * page, 2 * page + 1), false, false},
        Row{octets(3 * page - 1, 3 * page + 1), false, false},
        Row{octets(3 * page, 4 * page), true, true},
        Row{octets(3 * page, 4 * page + 1), true, false},
        Row{octets(5 * page - 1, 6 * page), true, false},
        Row{octets(5 * page, 6 * page), true, true},
        Row{octets(5 * page, 6 * page + 1), false, false},
        Row{octets(7 * page - 1, 8 * page), false, false}}) {
    for (const AccessSet rights :
         {AccessSet(Access::LocalRead), AccessSet(Access::RemoteRead), AccessSet(Access::Bind)}) {
      EXPECT_EQ(b_.pd.register_memory(row.memory, rights).has_value(), row.readable);
    }
    for (const AccessSet rights :
         {AccessSet(Access::LocalWrite), AccessSet(Access::RemoteWrite),
          AccessSet(Access::RemoteAtomic), Access::RemoteRead | Access::RemoteWrite}) {
      const auto region = b_.pd.register_memory(row.memory, rights);
      EXPECT_EQ(region.has_value(), row.writable);
      if (region) continue;
      EXPECT_EQ(region.error().code, ErrorCode::InvalidArgument);
      EXPECT_NE(region.error().message.find("the octet at 0x"), std::string::npos);
    }
  }
  // The same of pieces, and of a region that is registered anew.
  const std::vector<std::span<std::byte>> one_bad{octets(0, page), octets(2 * page, 2 * page + 1)};
  EXPECT_EQ(code_of(b_.pd.register_pieces(one_bad, {.access = Access::LocalRead})),
            ErrorCode::InvalidArgument);
  MemoryRegion region = must(b_.pd.register_memory(octets(4 * page, 5 * page), Access::LocalRead));
  EXPECT_EQ(code_of(b_.pd.reregister(region, {.access = AccessSet(Access::RemoteWrite)})),
            ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of(b_.pd.reregister(region, {.memory = octets(0, 3 * page)})),
            ErrorCode::InvalidArgument);
  must(b_.pd.reregister(region, {.memory = octets(0, page)}));
}

// The offset of the first octet is the memory's address, 0 or any other number, and the region is
// reached there and nowhere beside it.
TEST_P(MemoryTest, OffsetsBeginWhereTheApplicationSays) {
  world_.connect(a_, b_);
  std::vector<std::byte> memory(5000);
  const auto address = reinterpret_cast<uint64_t>(memory.data());
  for (const auto offset :
       {std::optional<uint64_t>{}, std::optional<uint64_t>{0},
        std::optional<uint64_t>{0x123456789abc}, std::optional<uint64_t>{UINT64_MAX - 4999}}) {
    MemoryRegion region =
        must(b_.pd.register_memory(memory, {.access = kEverything, .offset = offset}));
    EXPECT_EQ(region.address(), offset.value_or(address));
    EXPECT_EQ(region.sge(10, 5).address, offset.value_or(address) + 10);
    expect_reachable(region, memory);
  }
  const auto beyond =
      b_.pd.register_memory(memory, {.access = kEverything, .offset = UINT64_MAX - 4998});
  EXPECT_EQ(code_of(beyond), ErrorCode::InvalidArgument);
  const MemoryRegion region =
      must(b_.pd.register_memory(memory, {.access = kEverything, .offset = 7000}));
  expect_unreachable(region.stag(), 12'000);
}

TEST_P(MemoryTest, PiecesAreOneRegion) {
  world_.connect(a_, b_);
  std::vector<std::byte> memory(9000);
  const std::span all(memory);
  const std::vector<std::span<std::byte>> pieces{all.subspan(8000, 1000), all.subspan(0, 1),
                                                 all.subspan(100, 0), all.subspan(3000, 2500)};
  MemoryRegion region = must(b_.pd.register_pieces(pieces, {.access = kEverything}));
  EXPECT_EQ(region.address(), 0u);
  EXPECT_EQ(region.length(), 3501u);
  Memory near(a_.pd, octets(3501, 5), Access::LocalRead);
  SendRequest write = request(Opcode::Write, near.all(), 1);
  write.remote = {region.stag(), 0};
  must(a_.qp.post_send(write));
  world_.expect_done(a_.send_cq, 1, 3501);
  std::vector<std::byte> found;
  ASSERT_TRUE(world_.wait([&] {
    found.clear();
    for (const auto piece : pieces) found.insert(found.end(), piece.begin(), piece.end());
    return std::ranges::equal(found, std::as_bytes(std::span(near.data)));
  }));
  EXPECT_EQ(memory[1], std::byte{0});
  EXPECT_EQ(memory[7999], std::byte{0});
}

// The key is the application's to choose, with each registration another one if it likes; the
// former STag is dead once the region was registered anew, though its memory is the same.
TEST_P(MemoryTest, RegisteredAnew) {
  world_.connect(a_, b_);
  std::vector<std::byte> memory(1000);
  MemoryRegion region = must(b_.pd.register_memory(memory, {.access = kEverything, .key = 0x11}));
  const uint32_t before = region.stag();
  EXPECT_EQ(before & 0xff, 0x11u);
  must(b_.pd.reregister(region, {.offset = 0, .key = 0x12}));
  EXPECT_EQ(region.stag(), (before & ~0xffu) | 0x12);
  EXPECT_EQ(region.address(), 0u);
  expect_reachable(region, memory);
  EXPECT_EQ(code_of(b_.pd.reregister(region, {.key = 0x12})), ErrorCode::InvalidArgument);
  std::vector<std::byte> other(2000);
  must(b_.pd.reregister(region, {.memory = other}));
  EXPECT_NE(region.stag() & 0xff, 0x12u);
  EXPECT_EQ(region.address(), reinterpret_cast<uint64_t>(other.data()));
  EXPECT_EQ(region.length(), 2000u);
  expect_reachable(region, other);
  // Of another domain, it is not this queue pair's any more.
  ProtectionDomain elsewhere = must(world_.right.alloc_pd());
  must(elsewhere.reregister(region, {}));
  EXPECT_EQ(code_of(elsewhere.destroy()), ErrorCode::WrongState) << "it has a region now";
  expect_unreachable(region.stag(), region.address());
  must(region.deregister());
  must(elsewhere.destroy());
  EXPECT_EQ(code_of(elsewhere.reregister(region, {})), ErrorCode::WrongState);
}

TEST_P(MemoryTest, OfAnotherDeviceNothingIsTaken) {
  std::vector<std::byte> memory(16);
  MemoryRegion region = must(b_.pd.register_memory(memory, kEverything));
  EXPECT_EQ(code_of(a_.pd.reregister(region, {})), ErrorCode::InvalidArgument);
  EXPECT_EQ(code_of(a_.pd.register_memory(memory, {.access = kEverything, .queue_pair = &b_.qp})),
            ErrorCode::InvalidArgument);
  const QueuePair none;
  EXPECT_EQ(code_of(a_.pd.register_memory(memory, {.access = kEverything, .queue_pair = &none})),
            ErrorCode::WrongState);
  EXPECT_EQ(code_of(a_.pd.register_memory(memory, Access::RemoteInvalidate)),
            ErrorCode::InvalidArgument);
}

// SEC-6.1.1-01: a region is for all queue pairs of its domain, or for one of them.
TEST_P(MemoryTest, OfOneQueuePairOrOfOneDomain_VERBS_05) {
  QueuePair other = must(b_.pd.create_qp(b_.send_cq, b_.receive_cq));
  world_.connect(a_, b_);
  std::vector<std::byte> memory(100);
  MemoryRegion shared = must(b_.pd.register_memory(memory, kEverything));
  expect_reachable(shared, memory);
  MemoryRegion own =
      must(b_.pd.register_memory(memory, {.access = kEverything, .queue_pair = &b_.qp}));
  expect_reachable(own, memory);
  const MemoryRegion others =
      must(b_.pd.register_memory(memory, {.access = kEverything, .queue_pair = &other}));
  expect_unreachable(others.stag(), others.address());
}

// A queue pair that comes later may have the number of one before it, and never has its regions.
TEST_P(MemoryTest, ARegionOfAQueuePairThatIsGoneIsNobodys_VERBS_05) {
  std::vector<std::byte> memory(100);
  const MemoryRegion own =
      must(b_.pd.register_memory(memory, {.access = kEverything, .queue_pair = &b_.qp}));
  must(b_.qp.destroy());
  b_.qp = must(b_.pd.create_qp(b_.send_cq, b_.receive_cq));
  world_.connect(a_, b_);
  expect_unreachable(own.stag(), own.address());
}

// --- what the kernel says ---

TEST(MappedMemory, AMapIsReadLineByLine) {
  const std::string maps =
      "1000-2000 r--p 00000000 00:00 0 \n"
      "2000-4000 rw-p 00000000 00:00 0   [heap]\n"
      "7f0000000000-7f0000001000 ---p 00000000 08:01 131 /lib/x y.so\n"
      "something else\n"
      "ffffffffff600000-ffffffffff601000 -w-s 00000000 00:00 0\n";
  EXPECT_FALSE(verbs::mapping_in(maps, 0xfff));
  const auto first = verbs::mapping_in(maps, 0x1fff);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->begin, 0x1000u);
  EXPECT_EQ(first->end, 0x2000u);
  EXPECT_TRUE(first->readable && !first->writable);
  EXPECT_TRUE(verbs::mapping_in(maps, 0x2000)->writable);
  EXPECT_FALSE(verbs::mapping_in(maps, 0x4000));
  EXPECT_FALSE(verbs::mapping_in(maps, 0x7f0000000fff)->readable);
  EXPECT_TRUE(verbs::mapping_in(maps, 0xffffffffff600000)->writable);
  EXPECT_FALSE(verbs::mapping_in("", 0));
}

// By questions and by the text the kernel says the same.
TEST(MappedMemory, BothWaysOfAskingAgree) {
  const verbs::ProcessMaps maps;
  const Pages pages(4, PROT_READ | PROT_WRITE);
  pages.protect(1, PROT_READ);
  pages.unmap(2);
  std::string text;
  std::FILE* const file = std::fopen("/proc/self/maps", "r");
  ASSERT_NE(file, nullptr);
  for (int c = 0; (c = std::fgetc(file)) != EOF;) text.push_back(static_cast<char>(c));
  std::fclose(file);
  const auto find = [&](uint64_t at) { return verbs::mapping_in(text, at); };
  for (size_t from = 0; from < pages.all().size(); from += Pages::kPage / 2) {
    for (size_t length : {size_t{1}, Pages::kPage, 2 * Pages::kPage}) {
      const auto memory = pages.all().subspan(from, std::min(length, pages.all().size() - from));
      for (const bool writable : {false, true}) {
        EXPECT_EQ(maps.check("test", memory, writable).has_value(),
                  verbs::check_mapped("test", memory, writable, find).has_value())
            << from << " " << length << " " << writable;
      }
    }
  }
}

TEST(MappedMemory, ARangeMayEndWithTheAddressSpace) {
  const auto top = [](uint64_t at) -> std::optional<verbs::Mapping> {
    if (at < UINT64_MAX - 99) return std::nullopt;
    return verbs::Mapping{.begin = UINT64_MAX - 99, .end = UINT64_MAX, .readable = true};
  };
  const auto range = [](uint64_t at, size_t n) {
    return std::span(reinterpret_cast<const std::byte*>(at), n);
  };
  EXPECT_TRUE(verbs::check_mapped("test", range(UINT64_MAX - 99, 99), false, top));
  EXPECT_FALSE(verbs::check_mapped("test", range(UINT64_MAX - 99, 101), false, top));
  EXPECT_FALSE(verbs::check_mapped("test", range(UINT64_MAX - 100, 5), false, top));
}

}  // namespace
}  // namespace rnic::test
