// Any bytes given to the GGUF reader: it refuses them with an Error, or every value and every byte of every
// tensor can be read. Anything else (a crash, another exception, a hang, an internal error) is a find.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "gguf/reader.h"
#include "gguf/writer.h"
#include "quipu/error.h"

namespace {

using quipu::Error;
using quipu::ErrorCode;
using quipu::gguf::Metadata;
using quipu::gguf::Reader;

volatile std::uint64_t sink;  // keeps the reads

/// Runs a getter; a refusal is fine.
template <typename Get>
void ask(Get&& get) {
  try {
    get();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) std::abort();
  }
}

void read_metadata(const Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    sink = sink + quipu::gguf::to_display(value).size();
    if (metadata.find(key) != &value) std::abort();
    ask([&, &name = key] { (void)metadata.get_u32(name); });
    ask([&, &name = key] { (void)metadata.get_i64(name); });
    ask([&, &name = key] { (void)metadata.get_f32(name); });
    ask([&, &name = key] { (void)metadata.get_bool(name); });
    ask([&, &name = key] { (void)metadata.get_string(name); });
    ask([&, &name = key] { (void)metadata.get_strings(name); });
    ask([&, &name = key] { (void)metadata.get_u32s(name); });
    ask([&, &name = key] { (void)metadata.get_i32s(name); });
    ask([&, &name = key] { (void)metadata.get_f32s(name); });
    ask([&, &name = key] { (void)metadata.get_u32_per_layer(name, 3); });
  }
}

void read_tensors(const Reader& reader) {
  std::vector<std::byte> copy;
  for (const auto& tensor : reader.tensors()) {
    if (reader.find_tensor(tensor.name) != &tensor) std::abort();
    std::uint64_t sum = 0;
    for (const std::byte byte : reader.data(tensor)) sum += static_cast<std::uint64_t>(byte);
    copy.resize(tensor.bytes);
    reader.read_data(tensor, 0, copy);
    for (const std::byte byte : copy) sum -= static_cast<std::uint64_t>(byte);
    if (sum != 0) std::abort();
    reader.release(tensor);
  }
}

/// What was read can be written and comes back the same, where the writer (which is stricter) takes it.
void write_again(const Reader& reader) {
  if (reader.alignment() > 4096) return;
  std::vector<quipu::gguf::TensorToWrite> tensors;
  for (const auto& tensor : reader.tensors()) {
    tensors.push_back(
        quipu::gguf::tensor_in_memory(tensor.name, tensor.type, tensor.dims, reader.data(tensor)));
  }
  ask([&] {
    const std::vector<std::byte> bytes = write_memory(reader.metadata(), tensors);
    const Reader again = Reader::from_memory(bytes, "again");
    if (again.tensors().size() != tensors.size()) std::abort();
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Reader reader = Reader::from_memory(std::as_bytes(std::span(data, size)), "fuzz");
    read_metadata(reader.metadata());
    read_tensors(reader);
    write_again(reader);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal || error.message().find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
