// Byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019): text is cut into words by the
// pre-tokenizer, and the bytes of a word (or its characters, see Spelling) are merged by the ranks in
// `tokenizer.ggml.merges`. Everything works on plain bytes: the byte alphabet of a file's texts is undone
// when the vocabulary is loaded.
#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "vocab/algorithm.h"
#include "vocab/byte_alphabet.h"
#include "vocab/escaped_spaces.h"
#include "vocab/merge.h"
#include "vocab/pair_table.h"
#include "vocab/pre_tokenizer.h"
#include "vocab/utf8.h"

namespace quipu::vocab {

namespace {

constexpr const char* kPreKey = "tokenizer.ggml.pre";
constexpr const char* kMergesKey = "tokenizer.ggml.merges";
constexpr Token kDefaultEnd = 11;  // beginning and end of a text where a file says nothing

// Files of this tokenizer have one way of splitting, whatever they name.
bool is_gemma4(const gguf::Metadata& metadata) {
  const std::string* const model = metadata.get_string("tokenizer.ggml.model");
  return model != nullptr && *model == "gemma4";
}

const PreTokenizerRow& pre_tokenizer_of(const gguf::Metadata& metadata) {
  if (is_gemma4(metadata)) return *find_pre_tokenizer("gemma4");
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
      : n_tokens_(inputs.tokens.texts.size()), row_(pre_tokenizer_of(inputs.metadata)), pre_tokenizer_(row_) {
    add_tokens(inputs.tokens);
    add_merges(inputs.metadata);
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char character = static_cast<char>(byte);
      byte_symbols_[byte] = symbols_.find_or_add({&character, 1});
    }
    if (in_byte_alphabet()) {
      std::ranges::transform(byte_symbols_, byte_tokens_.begin(),
                             [this](std::int32_t symbol) { return symbol < n_tokens_ ? symbol : kNoToken; });
    } else {
      byte_tokens_ = find_byte_tokens(inputs.tokens);
    }
  }

  void encode(std::string_view text, bool /*after_special*/, std::vector<Token>& out) const override {
    std::string storage;
    std::string_view valid = repair_utf8(text, storage);
    if (row_.spelling == Spelling::plain_with_escaped_spaces) {
      storage = escape_spaces(valid);
      valid = storage;
    }
    std::vector<std::size_t> ends;
    pre_tokenizer_.split(valid, ends);
    Word scratch;
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      encode_word(valid.substr(begin, end - begin), scratch, out);
      begin = end;
    }
  }

 private:
  struct Word {
    std::vector<Part> parts;
    Merger merger;
  };

  bool in_byte_alphabet() const { return row_.spelling == Spelling::byte_alphabet; }

  std::string decode(std::string_view token_text) const override {
    switch (row_.spelling) {
      case Spelling::byte_alphabet: return bytes_of_text_leniently(token_text);
      case Spelling::plain_with_escaped_spaces: return unescape_spaces(token_text);
      case Spelling::plain: break;
    }
    return std::string(token_text);
  }

  // What the symbol of a text in the file is made of; false if the text is not spelled as it should be.
  bool append_symbol(std::string_view text, std::string& bytes) const {
    if (in_byte_alphabet()) return append_bytes_of_text(text, bytes);
    bytes.append(text);
    return true;
  }

  void add_tokens(const TokenTable& tokens) {
    symbols_.reserve(static_cast<std::size_t>(n_tokens_));
    std::string bytes;
    for (Token token = 0; token < n_tokens_; ++token) {
      bytes.clear();
      const bool well_spelled = append_symbol(tokens.texts[token], bytes);
      symbols_.append(bytes);
      if (well_spelled && tokens.may_come_from_text(token)) symbols_.publish(token);
    }
  }

  // What merges name need not be a token: it may only be on the way to one.
  void add_merges(const gguf::Metadata& metadata) {
    const std::vector<std::string>* const merges = metadata.get_strings(kMergesKey);
    if (merges == nullptr && row_.may_lack_merges) {
      pairs_.reserve(0);
      return;
    }
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
      log_warning("{}: key '{}': {} of {} entries are not two texts spelled as tokens are, and are left out",
                  metadata.origin(), kMergesKey, n_skipped, merges->size());
    }
  }

  bool add_merge(std::string_view merge, std::uint32_t rank, std::string& bytes) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) return false;
    bytes.clear();
    if (!append_symbol(merge.substr(0, space), bytes)) return false;
    const std::size_t cut = bytes.size();
    if (!append_symbol(merge.substr(space + 1), bytes) || bytes.size() == cut) return false;
    const std::string_view both = bytes;
    const std::int32_t left = symbols_.find_or_add(both.substr(0, cut));
    const std::int32_t right = symbols_.find_or_add(both.substr(cut));
    pairs_.add(left, right, {rank, symbols_.find_or_add(both)});
    return true;
  }

  void encode_word(std::string_view word, Word& scratch, std::vector<Token>& out) const {
    if (row_.ignore_merges ||
        (row_.newlines_in_one && word.find_first_not_of('\n') == std::string_view::npos)) {
      const Token token = symbols_.find(word);
      if (token != kNoToken && token < n_tokens_) {
        out.push_back(token);
        return;
      }
    }
    if (word.size() >= std::numeric_limits<std::uint32_t>::max()) {
      fail(ErrorCode::invalid_argument, "a word of {} bytes is too long to tokenize", word.size());
    }
    split_into_symbols(word, scratch.parts);
    scratch.merger.merge(scratch.parts, [&](const Part& left, const Part& right) {
      return left.id < 0 || right.id < 0 ? Merge{} : pairs_.find(left.id, right.id);
    });
    for (const Part& part : scratch.parts) {
      if (part.id >= 0 && part.id < n_tokens_) {
        out.push_back(part.id);
      } else {
        append_bytes(word.substr(part.begin, part.length), out);
      }
    }
  }

  void split_into_symbols(std::string_view word, std::vector<Part>& parts) const {
    parts.clear();
    if (in_byte_alphabet()) {
      for (std::uint32_t i = 0; i < word.size(); ++i) {
        parts.push_back({i, 1, byte_symbols_[static_cast<std::uint8_t>(word[i])]});
      }
      return;
    }
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t length = std::min(length_by_lead_byte(word[at]), word.size() - at);
      parts.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       symbols_.find(word.substr(at, length))});
      at += length;
    }
  }

  // A symbol that is no token becomes the tokens of its bytes. One without a token is left out, even where
  // the file names an unknown token: that is what models of this kind see.
  void append_bytes(std::string_view bytes, std::vector<Token>& out) const {
    for (const char c : bytes) {
      const Token token = byte_tokens_[static_cast<std::uint8_t>(c)];
      if (token != kNoToken) out.push_back(token);
    }
  }

  Token n_tokens_;
  const PreTokenizerRow& row_;
  PreTokenizer pre_tokenizer_;
  TextTable symbols_;  // by bytes: first the tokens under their ids, then what only merges or bytes need
  PairTable pairs_;
  std::array<std::int32_t, 256> byte_symbols_{};
  std::array<Token, 256> byte_tokens_{};
};

}  // namespace

Traits bpe_traits(const gguf::Metadata& metadata) {
  const PreTokenizerRow& row = pre_tokenizer_of(metadata);
  if (!metadata.contains(kPreKey) && !is_gemma4(metadata)) {
    log_warning("{}: key '{}' is missing: a default pre-tokenizer is used, which may not be the model's",
                metadata.origin(), kPreKey);
  }
  Traits traits{.special = {},
                .add_bos = row.add_bos,
                .add_separator = row.add_separator,
                .force_bos = row.force_bos,
                .clean_spaces = row.clean_spaces};
  if (is_gemma4(metadata)) return traits;
  traits.special.eos = kDefaultEnd;
  if (!row.no_bos) traits.special.bos = kDefaultEnd;
  return traits;
}

std::unique_ptr<Algorithm> make_bpe(const AlgorithmInputs& inputs) {
  return std::make_unique<Bpe>(inputs);
}

}  // namespace quipu::vocab
