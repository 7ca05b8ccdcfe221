// Byte-level byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019): text is cut into words by the
// pre-tokenizer, and the bytes of a word are merged by the ranks in `tokenizer.ggml.merges`.
// Everything works on plain bytes: the byte alphabet of the file's texts is undone when the vocabulary is
// loaded.
#include <array>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "vocab/algorithm.h"
#include "vocab/byte_alphabet.h"
#include "vocab/merge.h"
#include "vocab/pair_table.h"
#include "vocab/pre_tokenizer.h"
#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

constexpr const char* kPreKey = "tokenizer.ggml.pre";
constexpr const char* kMergesKey = "tokenizer.ggml.merges";

const PreTokenizerRow& pre_tokenizer_of(const gguf::Metadata& metadata) {
  const std::string* const name = metadata.get_string(kPreKey);
  const std::string_view wanted = name == nullptr || name->empty() ? "default" : std::string_view(*name);
  const PreTokenizerRow* const row = find_pre_tokenizer(wanted);
  if (row == nullptr) {
    fail(ErrorCode::unsupported, "{}: pre-tokenizer '{}' ({}) is not supported", metadata.origin(), wanted,
         kPreKey);
  }
  return *row;
}

class Bpe final : public Algorithm {
 public:
  explicit Bpe(const AlgorithmInputs& inputs)
      : n_tokens_(inputs.tokens.texts.size()),
        unknown_(inputs.unknown),
        ignore_merges_(pre_tokenizer_of(inputs.metadata).ignore_merges),
        pre_tokenizer_(pre_tokenizer_of(inputs.metadata)) {
    add_tokens(inputs.tokens.texts);
    add_merges(inputs.metadata);
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char character = static_cast<char>(byte);
      byte_symbols_[byte] = symbols_.find_or_add({&character, 1});
    }
  }

  void encode(std::string_view text, bool /*after_special*/, std::vector<Token>& out) const override {
    std::string storage;
    const std::string_view valid = repair_utf8(text, storage);
    std::vector<std::size_t> ends;
    pre_tokenizer_.split(valid, ends);
    Word scratch;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      encode_word(valid.substr(begin, end - begin), scratch, out);
      begin = end;
    }
  }

  std::string piece(std::string_view token_text) const override {
    return bytes_of_text_leniently(token_text);
  }

 private:
  struct Word {
    std::vector<Part> parts;
    Merger merger;
  };

  void add_tokens(const TextTable& texts) {
    symbols_.reserve(static_cast<std::size_t>(n_tokens_));
    std::string bytes;
    for (Token token = 0; token < n_tokens_; ++token) {
      bytes.clear();
      const bool in_alphabet = append_bytes_of_text(texts[token], bytes);
      symbols_.append(bytes);
      if (in_alphabet) symbols_.publish(token);
    }
  }

  // What merges name need not be a token: it may only be on the way to one.
  void add_merges(const gguf::Metadata& metadata) {
    const std::vector<std::string>* const merges = metadata.get_strings(kMergesKey);
    if (merges == nullptr)
      fail(ErrorCode::bad_file, "{}: key '{}' is missing", metadata.origin(), kMergesKey);
    if (merges->size() >= std::numeric_limits<std::uint32_t>::max() / 4) {
      fail(ErrorCode::bad_file, "{}: key '{}': {} entries are too many", metadata.origin(), kMergesKey,
           merges->size());
    }
    pairs_.reserve(merges->size());
    std::size_t n_skipped = 0;
    std::string bytes;
    for (std::size_t rank = 0; rank < merges->size(); ++rank) {
      if (!add_merge((*merges)[rank], static_cast<std::uint32_t>(rank), bytes)) ++n_skipped;
    }
    if (n_skipped > 0) {
      log_warning("{}: key '{}': {} of {} entries are not two texts in the byte alphabet and are left out",
                  metadata.origin(), kMergesKey, n_skipped, merges->size());
    }
  }

  bool add_merge(std::string_view merge, std::uint32_t rank, std::string& bytes) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) return false;
    bytes.clear();
    if (!append_bytes_of_text(merge.substr(0, space), bytes)) return false;
    const std::size_t cut = bytes.size();
    if (!append_bytes_of_text(merge.substr(space + 1), bytes) || bytes.size() == cut) return false;
    const std::string_view both = bytes;
    const std::int32_t left = symbols_.find_or_add(both.substr(0, cut));
    const std::int32_t right = symbols_.find_or_add(both.substr(cut));
    pairs_.add(left, right, {rank, symbols_.find_or_add(both)});
    return true;
  }

  void encode_word(std::string_view word, Word& scratch, std::vector<Token>& out) const {
    if (ignore_merges_) {
      const Token token = symbols_.find(word);
      if (token != kNoToken && token < n_tokens_) {
        out.push_back(token);
        return;
      }
    }
    if (word.size() >= std::numeric_limits<std::uint32_t>::max()) {
      fail(ErrorCode::invalid_argument, "a word of {} bytes is too long to tokenize", word.size());
    }
    scratch.parts.clear();
    for (std::uint32_t i = 0; i < word.size(); ++i) {
      scratch.parts.push_back({i, 1, byte_symbols_[static_cast<std::uint8_t>(word[i])]});
    }
    scratch.merger.merge(scratch.parts,
                         [&](const Part& left, const Part& right) { return pairs_.find(left.id, right.id); });
    for (const Part& part : scratch.parts) append(part.id, out);
  }

  // A symbol that is no token becomes the tokens of its bytes; a byte without one is unknown.
  void append(std::int32_t symbol, std::vector<Token>& out) const {
    if (symbol < n_tokens_) {
      out.push_back(symbol);
      return;
    }
    for (const char c : symbols_[symbol]) {
      const Token token = byte_symbols_[static_cast<std::uint8_t>(c)];
      if (token < n_tokens_) {
        out.push_back(token);
      } else if (unknown_ != kNoToken) {
        out.push_back(unknown_);
      }
    }
  }

  Token n_tokens_;
  Token unknown_;
  bool ignore_merges_;
  PreTokenizer pre_tokenizer_;
  TextTable symbols_;  // by bytes: first the tokens under their ids, then what only merges or bytes need
  PairTable pairs_;
  std::array<std::int32_t, 256> byte_symbols_{};
};

}  // namespace

Traits bpe_traits(const gguf::Metadata& metadata) {
  const PreTokenizerRow& row = pre_tokenizer_of(metadata);
  if (!metadata.contains(kPreKey)) {
    log_warning("{}: key '{}' is missing: a default pre-tokenizer is used, which may not be the model's",
                metadata.origin(), kPreKey);
  }
  return {.special = {.bos = 11, .eos = 11}, .add_bos = row.add_bos, .clean_spaces = row.clean_spaces};
}

std::unique_ptr<Algorithm> make_bpe(const AlgorithmInputs& inputs) {
  return std::make_unique<Bpe>(inputs);
}

}  // namespace quipu::vocab
