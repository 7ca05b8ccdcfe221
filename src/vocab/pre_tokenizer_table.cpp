// The table of pre-tokenizers: the splitting patterns (PCRE2, with Unicode properties) and which names use
// them. A pattern may take linear time only and keep no more than a few places to go back to: quantifiers are
// possessive wherever what follows cannot need a character back, and a run is looked at as a whole only once.
// The words are those that files are tokenized into in practice: where programs of the field let an
// upper-case class be "letters but a to z", it is so here.
#include "vocab/pre_tokenizer.h"

namespace quipu::vocab {

namespace {

using Text = std::string;

// In upper case too; (?i) would let U+017F and U+212A count as s and k.
const Text kContraction = "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])";
const Text kMaybeContraction = "(?:" + kContraction + ")?+";
const Text kWord = R"([^\r\n\p{L}\p{N}]?+\p{L}++)";
const Text kWordWithMarks = R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]++)";
const Text kThrees = R"(\p{N}{1,3}+)";
const Text kPunctuation = R"( ?[^\s\p{L}\p{N}]++[\r\n]*+)";
const Text kPunctuationAndSlashes = R"( ?[^\s\p{L}\p{N}]++[\r\n/]*+)";
// A run of white space up to its last line break.
const Text kLineBreaks = R"((?:[^\S\r\n]*+[\r\n]++)++)";
// A run of white space but for what belongs to the word after it, or all of it.
const Text kSpaces = R"(\s+(?!\S)|\s+)";

Text either(std::initializer_list<Text> alternatives) {
  Text all;
  for (const Text& alternative : alternatives) all += (all.empty() ? "" : "|") + alternative;
  return all;
}

// Words that begin in upper and go on in lower case, where letters beyond ASCII count as both: upper* lower+,
// else upper+ lower*. `letter` is a pattern of one letter.
Text upper_lower(const Text& letter, const Text& tail) {
  const Text before = R"([^\r\n\p{L}\p{N}]?)";
  const Text upper = "(?:(?![a-z])" + letter + ")";
  const Text lower = "(?:(?![A-Z])" + letter + ")";
  const Text beyond_ascii = "(?:(?![A-Za-z])" + letter + ")";
  const Text ends_lower = upper + "*+[a-z]" + lower + "*+|(?:[A-Z]*+" + beyond_ascii + ")++";
  return either({before + "(?:" + ends_lower + ")" + tail, before + "[A-Z]++" + tail});
}

const Text kGpt2 =
    either({"'(?:[stmd]|re|ve|ll)", R"( ?\p{L}++)", R"( ?\p{N}++)", R"( ?[^\s\p{L}\p{N}]++)", kSpaces});
const Text kLlama3 = either({kContraction, kWord, kThrees, kPunctuation, kLineBreaks, kSpaces});
const Text kQwen2 = either({kContraction, kWord, R"(\p{N})", kPunctuation, kLineBreaks, kSpaces});
const Text kQwen35 = either(
    {kContraction, kWordWithMarks, R"(\p{N})", R"( ?[^\s\p{L}\p{M}\p{N}]++[\r\n]*+)", kLineBreaks, kSpaces});
const Text kQwen2Uncontracted = either({kWord, R"(\p{N})", kPunctuation, kLineBreaks, kSpaces});
const Text kQwen2LongNumbers =
    either({kContraction, kWord, R"(\p{N}++)", kPunctuation, kLineBreaks, kSpaces});
const Text kSeedCoder =
    either({kContraction, kWord, R"(\p{N})", R"( ?[^\s\p{L}\p{N}]++)", kLineBreaks, kSpaces});
// White space in pieces of powers of two.
const Text kJais2 =
    either({kContraction, kWord, kThrees, kPunctuation, kLineBreaks, R"(\s{512}(?!\S)|\s{256}(?!\S))",
            R"(\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S))",
            R"(\s{1,2}(?!\S)|\s)"});
// Words with single spaces between them stay together.
const Text kExaoneMoe = either({kContraction, R"([^\r\n\p{L}\p{N}]?+(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++)",
                                R"(\p{N})", R"( ?[^\s\p{L}\p{N}]++[\r\n/]?+)", kLineBreaks, kSpaces});
const Text kTekken =
    either({upper_lower(R"(\p{L})", ""), R"(\p{N})", kPunctuationAndSlashes, kLineBreaks, kSpaces});
const Text kGpt4o = either(
    {upper_lower(R"(\p{L})", kMaybeContraction), kThrees, kPunctuationAndSlashes, kLineBreaks, kSpaces});
const Text kGranite = either({upper_lower(R"([\p{L}\p{M}])", kMaybeContraction), kThrees,
                              kPunctuationAndSlashes, kLineBreaks, kSpaces});
const Text kTinyAya =
    either({kWordWithMarks + kMaybeContraction, kThrees, kPunctuationAndSlashes, kLineBreaks, kSpaces});
const Text kYoutu =
    either({kWordWithMarks + kMaybeContraction, R"(\p{N})", kPunctuationAndSlashes, kLineBreaks, kSpaces});

const Text kHan =
    R"(\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2EBEF}\x{F900}-\x{FAFF})"
    R"(\x{2F800}-\x{2FA1F})";
const Text kKimi =
    either({"[" + kHan + "]++", R"([^\r\n\p{L}\p{N}]?+(?:(?![)" + kHan + R"(])\p{L})++)" + kMaybeContraction,
            kThrees, kPunctuation, kLineBreaks, kSpaces});

// Passes of those that have several.
const Text kDigit = R"(\p{N})";
const Text kNumber = R"(\p{N}++)";
const Text kThreeDigits = "[0-9]{3}";
const Text kLineBreak = R"([\r\n])";
const Text kLines = R"([^\n]++|\n++)";
const Text kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]++)";
// U+0800 to U+9FA5 and Hangul, without white space.
const Text kEastAsian =
    R"([\x{800}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-)"
    R"(\x{2FFF}\x{3001}-\x{9FA5}\x{AC00}-\x{D7FF}]++)";
const Text kHanAndKana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]++)";
const Text kScriptsWithoutSpaces =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{30FF}\x{FF65}-\x{FF9F})"
    R"(\x{2F00}-\x{2FDF}\x{E40}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
    R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]++)";
const Text kYoutuScripts = either({R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]++)",
                                   R"([\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A})"
                                   R"(\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]++)",
                                   R"([\x{3105}-\x{312F}]++)", kHanAndKana});
// Letters of scripts with cases, by their ranges.
const Text kCasedLetters =
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C})"
    R"(\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
    R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})"
    R"(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4})"
    R"(\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F})"
    R"(\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
    R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943})";
const Text kPunctuationInRanges =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3001}\x{3002}]++)";
const Text kSpacesAtTheEnd = R"((?<!\s)\s++\z)";
const Text kAsciiWord = R"([!-/:-@\[-`{-~][A-Za-z]++)";
const Text kMarkedWord = R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]++)";
const Text kSymbols = R"( ?[\p{P}\p{S}]++)";
const Text kDeepseekV3 = either({kAsciiWord, kMarkedWord, kSymbols + R"([\r\n]*+)", kLineBreaks, kSpaces});
const Text kSpark = either({kAsciiWord, kMarkedWord, kSymbols, kLineBreak, kSpaces});
// Digits in threes from the right, twice; what differs is what goes with the groups at both ends. The first
// group of a run comes with the text before it.
const Text kThreesAfterText =
    R"([^\p{N}]*+(?<!\p{N})\p{N}{1,3}(?=(?:\p{N}{3})*+(?!\p{N}))|\p{N}{3}|[^\p{N}]++)";
// What is before the first whole three goes with the text before it, what follows a run with the run.
const Text kNoWholeThree = R"((?:[^0-9]++|(?<![0-9])[0-9]{1,2}(?=(?:[0-9]{3})*+(?![0-9]))))";
const Text kThreesWithText = kNoWholeThree + "++|[0-9]{3}" + kNoWholeThree + "*+";

}  // namespace

const std::vector<PreTokenizerRow>& pre_tokenizers() {
  static const std::vector<PreTokenizerRow> rows = {
      {.names = {"default"},
       .patterns = {R"([\p{P}$+<=>^~|]++)", kGpt2, kNumber, kThreeDigits},
       .clean_spaces = true},
      {.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0",
                 "mellum", "modern-bert", "exaone4", "mpt", "olmo", "jais"},
       .patterns = {kGpt2},
       .clean_spaces = true},
      {.names = {"jina-v1-en", "jina-v2-code", "roberta-bpe"},
       .patterns = {kGpt2},
       .add_separator = true,
       .clean_spaces = true},
      {.names = {"trillion", "granite-docling"}, .patterns = {kGpt2}},
      {.names = {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
                 "jina-v5-nano"},
       .patterns = {kLlama3},
       .add_bos = true,
       .ignore_merges = true,
       .clean_spaces = true},
      {.names = {"dbrx", "smaug-bpe"}, .patterns = {kLlama3}, .clean_spaces = true},
      {.names = {"glm4", "chatglm-bpe"}, .patterns = {kLlama3}, .no_bos = true, .clean_spaces = true},
      {.names = {"minicpm5"},
       .patterns = {kThrees, kQwen2LongNumbers},
       .ignore_merges = true,
       .clean_spaces = true},
      {.names = {"jais-2"}, .patterns = {kJais2}, .clean_spaces = true},
      {.names = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open", "grok-2",
                 "bailingmoe", "bailingmoe2", "llada-moe"},
       .patterns = {kQwen2}},
      {.names = {"stablelm2", "megrez"}, .patterns = {kQwen2}, .clean_spaces = true},
      {.names = {"qwen35"}, .patterns = {kQwen35}},
      {.names = {"ufakzeka"}, .patterns = {kQwen2Uncontracted}},
      {.names = {"seed-coder"}, .patterns = {kSeedCoder}},
      {.names = {"laguna"}, .patterns = {kLines, kQwen2}},
      {.names = {"exaone-moe"}, .patterns = {kExaoneMoe}, .clean_spaces = true},
      {.names = {"starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2"},
       .patterns = {kDigit, kGpt2},
       .clean_spaces = true},
      {.names = {"command-r", "smollm"}, .patterns = {kDigit, kGpt2}},
      {.names = {"falcon"}, .patterns = {R"([\p{P}$+<=>^~|`]++)", kGpt2, kThreeDigits}, .clean_spaces = true},
      {.names = {"deepseek-llm"},
       .patterns = {kLineBreak, R"(\s?[)" + kCasedLetters + "]++", kPunctuationInRanges, kSpacesAtTheEnd,
                    kEastAsian, kNumber}},
      {.names = {"deepseek-coder"},
       .patterns = {kLineBreak, R"(\s?\p{L}++)", R"(\s?\p{P}++)", kEastAsian, kDigit}},
      {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
       .patterns = {kThrees, kHanAndKana, kDeepseekV3}},
      {.names = {"spark2_5"}, .patterns = {kThrees, kHanAndKana, kSpark, kDigit}},
      {.names = {"afmoe"}, .patterns = {kThreesAfterText, kScriptsWithoutSpaces, kDeepseekV3}},
      {.names = {"bloom", "gpt3-finnish"}, .patterns = {kBloom}, .clean_spaces = true},
      {.names = {"poro-chat"}, .patterns = {kBloom}},
      {.names = {"viking"}, .patterns = {kBloom, kDigit}},
      {.names = {"tekken"}, .patterns = {kTekken}, .add_bos = true, .ignore_merges = true},
      {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, .patterns = {kGpt4o}},
      {.names = {"granite-embed-multi-97m"}, .patterns = {kGranite}, .ignore_merges = true},
      {.names = {"youtu"}, .patterns = {kYoutuScripts, kYoutu}, .ignore_merges = true},
      {.names = {"tiny_aya", "cohere2moe", "cohere2_moe"}, .patterns = {kThreesAfterText, kTinyAya}},
      {.names = {"superbpe"}, .patterns = {kNumber, kThreesWithText}},
      {.names = {"chameleon"},
       .patterns = {"<sentinel:[0-9]++>", "IMGIMG[A-I]{1,4}Z", R"([\t\n]|    |  )", kDigit,
                    R"([\p{P}!-/:-@\[-`{-~])", kGpt2},
       .add_bos = true},
      {.names = {"kimi-k2"}, .patterns = {kKimi}, .may_lack_merges = true},
      {.names = {"gemma4", "granite-embed-multi-311m"},
       .patterns = {kLines},
       .force_bos = true,
       .newlines_in_one = true,
       .clean_spaces = true,
       .spelling = Spelling::plain_with_escaped_spaces},
      {.names = {"sarvam-moe"}, .patterns = {kLines}, .spelling = Spelling::plain_with_escaped_spaces},
      {.names = {"whitespace"}, .patterns = {R"(\S++)"}, .clean_spaces = true, .spelling = Spelling::plain},
  };
  return rows;
}

}  // namespace quipu::vocab
