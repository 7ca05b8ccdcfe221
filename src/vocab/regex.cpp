// PCRE2 behind a small interface. JIT code runs on PCRE2's own 32 KiB of machine stack; a match that needs
// more is tried again on a heap stack, then by the interpreter, which keeps all of its state on the heap.
#include "vocab/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/error.h"
#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

constexpr std::uint32_t kMatchLimit = 50'000'000;
constexpr std::uint32_t kHeapLimitKib = 256 * 1024;
constexpr std::size_t kJitStackBytes = 16u << 20;

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};
template <typename T>
using Handle = std::unique_ptr<T, Free>;

template <typename T>
Handle<T> owned(T* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return Handle<T>(pointer);
}

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

bool is_limit(int code) {
  return code == PCRE2_ERROR_JIT_STACKLIMIT || code == PCRE2_ERROR_MATCHLIMIT ||
         code == PCRE2_ERROR_HEAPLIMIT || code == PCRE2_ERROR_DEPTHLIMIT;
}

Handle<pcre2_match_context> new_match_context() {
  auto context = owned(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  return context;
}

}  // namespace

struct Regex::Impl {
  std::string pattern;
  Handle<pcre2_code> code;
  Handle<pcre2_match_context> context;
  bool jit = false;

  struct Span {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  bool find(std::string_view text, std::size_t from, pcre2_match_data* data, Span& match) const;
  int match_with_more_room(PCRE2_SPTR text, std::size_t size, std::size_t from, pcre2_match_data* data) const;
};

Regex::Regex(std::string pattern) : impl_(std::make_unique<Impl>()) {
  impl_->pattern = std::move(pattern);
  int error = 0;
  std::size_t at = 0;
  impl_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(impl_->pattern.data()), impl_->pattern.size(),
                                  PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
  if (impl_->code == nullptr) {
    fail(ErrorCode::internal, "pattern '{}' does not compile: {} at {}", impl_->pattern, message_of(error),
         at);
  }
  impl_->jit = pcre2_jit_compile(impl_->code.get(), PCRE2_JIT_COMPLETE) == 0;
  impl_->context = new_match_context();
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

int Regex::Impl::match_with_more_room(PCRE2_SPTR text, std::size_t size, std::size_t from,
                                      pcre2_match_data* data) const {
  if (jit) {
    const auto roomy = new_match_context();
    const auto stack = owned(pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr));
    pcre2_jit_stack_assign(roomy.get(), nullptr, stack.get());
    const int result = pcre2_jit_match(code.get(), text, size, from, 0, data, roomy.get());
    if (!is_limit(result)) return result;
  }
  return pcre2_match(code.get(), text, size, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, context.get());
}

bool Regex::Impl::find(std::string_view text, std::size_t from, pcre2_match_data* data, Span& match) const {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int result =
      jit ? pcre2_jit_match(code.get(), subject, text.size(), from, 0, data, context.get())
          : pcre2_match(code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context.get());
  if (is_limit(result)) result = match_with_more_room(subject, text.size(), from, data);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
  if (result < 0) {
    fail(ErrorCode::unsupported, "splitting text at byte {}: pattern '{}': {}", from, pattern,
         message_of(result));
  }
  const PCRE2_SIZE* const offsets = pcre2_get_ovector_pointer(data);
  match = {offsets[0], offsets[1]};
  return true;
}

void Regex::split(std::string_view text, std::size_t offset, std::vector<std::size_t>& ends) const {
  const auto data = owned(pcre2_match_data_create(1, nullptr));
  std::size_t at = 0;
  Impl::Span match;
  while (at < text.size() && impl_->find(text, at, data.get(), match)) {
    if (match.end == match.begin) break;  // no pattern of the table matches nothing
    if (match.begin > at) ends.push_back(offset + match.begin);
    ends.push_back(offset + match.end);
    at = match.end;
  }
  if (at < text.size()) ends.push_back(offset + text.size());
}

namespace {

// Characters to exchange. The kinds are those of Unicode 15.1, which byte-level tokenizers of the field use;
// PCRE2 10.42 knows 14.0. U+180E is no white space since Unicode 6.3, but PCRE2 takes it for some.
struct Exchange {
  std::uint32_t first;
  std::uint32_t last;
  std::string_view with;  // of the same length in UTF-8, and in the same ranges of the patterns
};
constexpr std::string_view kLetter = "\xF0\x90\x94\x80";       // U+10500
constexpr std::string_view kHan = "\xF0\xAB\x9C\xB8";          // U+2B738
constexpr std::string_view kNumber = "\xF0\x90\x84\x87";       // U+10107
constexpr std::string_view kMark = "\xF0\x9D\x85\xA5";         // U+1D165
constexpr std::string_view kKannadaMark = "\xE0\xB2\xBC";      // U+0CBC
constexpr std::string_view kLaoMark = "\xE0\xBA\xB1";          // U+0EB1
constexpr std::string_view kPunctuation = "\xF0\x90\x84\x80";  // U+10100
constexpr std::string_view kSymbol = "\xF0\x9F\x98\x80";       // U+1F600
constexpr std::string_view kShortSymbol = "\xE2\xBF\xB0";      // U+2FF0
constexpr std::string_view kNeither = "\xEE\x80\x80";          // U+E000, private use
constexpr std::string_view kFormat = "\xE2\x80\x8E";           // U+200E
constexpr std::array kExchanges = std::to_array<Exchange>(
    {{0xCF3, 0xCF3, kKannadaMark},     {0xECE, 0xECE, kLaoMark},       {0x180E, 0x180E, kFormat},
     {0x2FFC, 0x2FFF, kShortSymbol},   {0x31EF, 0x31EF, kShortSymbol}, {0xD800, 0xDFFF, kNeither},
     {0x10EFD, 0x10EFF, kMark},        {0x1123F, 0x11240, kLetter},    {0x11241, 0x11241, kMark},
     {0x11B00, 0x11B09, kPunctuation}, {0x11F00, 0x11F01, kMark},      {0x11F02, 0x11F02, kLetter},
     {0x11F03, 0x11F03, kMark},        {0x11F04, 0x11F10, kLetter},    {0x11F12, 0x11F33, kLetter},
     {0x11F34, 0x11F3A, kMark},        {0x11F3E, 0x11F42, kMark},      {0x11F43, 0x11F4F, kPunctuation},
     {0x11F50, 0x11F59, kNumber},      {0x1342F, 0x1342F, kLetter},    {0x13440, 0x13440, kMark},
     {0x13441, 0x13446, kLetter},      {0x13447, 0x13455, kMark},      {0x1B132, 0x1B132, kLetter},
     {0x1B155, 0x1B155, kLetter},      {0x1D2C0, 0x1D2D3, kNumber},    {0x1DF25, 0x1DF2A, kLetter},
     {0x1E030, 0x1E06D, kLetter},      {0x1E08F, 0x1E08F, kMark},      {0x1E4D0, 0x1E4EB, kLetter},
     {0x1E4EC, 0x1E4EF, kMark},        {0x1E4F0, 0x1E4F9, kNumber},    {0x1F6DC, 0x1F6DC, kSymbol},
     {0x1F774, 0x1F776, kSymbol},      {0x1F77B, 0x1F77F, kSymbol},    {0x1F7D9, 0x1F7D9, kSymbol},
     {0x1FA75, 0x1FA77, kSymbol},      {0x1FA87, 0x1FA88, kSymbol},    {0x1FAAD, 0x1FAAF, kSymbol},
     {0x1FABB, 0x1FABD, kSymbol},      {0x1FABF, 0x1FABF, kSymbol},    {0x1FACE, 0x1FACF, kSymbol},
     {0x1FADA, 0x1FADB, kSymbol},      {0x1FAE8, 0x1FAE8, kSymbol},    {0x1FAF7, 0x1FAF8, kSymbol},
     {0x2B739, 0x2B739, kHan},         {0x2EBF0, 0x2EE5D, kLetter},    {0x31350, 0x323AF, kLetter}});

std::uint32_t code_point_at(std::string_view text, std::size_t at, std::size_t length) {
  std::uint32_t code_point = static_cast<std::uint8_t>(text[at]) & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    code_point = (code_point << 6) | (static_cast<std::uint8_t>(text[at + i]) & 0x3Fu);
  }
  return code_point;
}

const Exchange* exchange_for(std::uint32_t code_point) {
  const auto* const found = std::lower_bound(kExchanges.begin(), kExchanges.end(), code_point,
                                             [](const Exchange& e, std::uint32_t c) { return e.last < c; });
  return found != kExchanges.end() && found->first <= code_point ? found : nullptr;
}

// Lead bytes of every character in the table.
constexpr bool may_be_exchanged(char lead) {
  const auto byte = static_cast<std::uint8_t>(lead);
  return (byte >= 0xE0 && byte <= 0xE3) || byte == 0xED || byte == 0xF0;
}

}  // namespace

std::string_view prepare_subject(std::string_view text, std::string& storage) {
  bool exchanged = false;
  for (std::size_t at = 0; at < text.size();) {
    if (!may_be_exchanged(text[at])) {
      ++at;
      continue;
    }
    const std::size_t length = length_by_lead_byte(text[at]);
    if (length > text.size() - at) break;
    if (const Exchange* exchange = exchange_for(code_point_at(text, at, length))) {
      if (!exchanged) storage.assign(text);
      exchanged = true;
      storage.replace(at, length, exchange->with);
    }
    at += length;
  }
  return exchanged ? std::string_view(storage) : text;
}

}  // namespace quipu::vocab
