// What the runtime of a sanitizer asks the libraries of a program, answered in the door. A program
// that answers itself is asked before. A door that has a sanitizer does without this file.

#define RNIC_ANSWER extern "C" __attribute__((visibility("default")))

/// A program with AddressSanitizer would not start where another library than the runtime is first.
/// The door may be: it has none of the names by which memory is allocated. The runtime's guess at
/// blocks of threads is off, since it may take any 16 octets for a header (glibc 2.36), while the
/// loader's allocations are roots of LeakSanitizer's without it.
RNIC_ANSWER const char* __asan_default_options() {
  return "verify_asan_link_order=0:intercept_tls_get_addr=0";
}

RNIC_ANSWER const char* __lsan_default_options() { return "intercept_tls_get_addr=0"; }

/// ThreadSanitizer sees the plugin's locks and copies but not its atomics, and would call a race
/// what they order. So it leaves out what the plugin does: of hardware it would see nothing, too.
RNIC_ANSWER const char* __tsan_default_suppressions() {
  return "called_from_lib:librnic-rdmav\ncalled_from_lib:librnic-dpdk-rdmav\n";
}
